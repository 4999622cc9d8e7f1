"""``fingerprint``: a body's canonical form, and in what two bodies differ: why is this another request?"""

from __future__ import annotations

import json
from typing import BinaryIO, TypeAlias

import click

from idemcore.canonical import Canonicalizer
from idemcore.cli.options import answer, json_option
from idemcore.errors import CanonicalizationError


class _Number(str):
    """A number's canonical text, kept apart from a string that looks like it."""

    __slots__ = ()


Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | bool | None"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.File("rb"), metavar="FILE|- [FILE]")
@click.option("--exclude", multiple=True, metavar="POINTER", help="A member that does not count; repeatable.")
@click.option("--diff", is_flag=True, help="Compare two files: exit status 0 if they are one request, else 1.")
@json_option
def fingerprint(files: tuple[BinaryIO, ...], exclude: tuple[str, ...], diff: bool, as_json: bool) -> None:
    """Print the canonical form and the fingerprint of a JSON body, or name what differs between two.

    A body is one part of an HTTP request: the fingerprint that `show` prints covers method, path, query and
    media type too, so it is another one.
    """
    if len(files) != (2 if diff else 1):
        raise click.UsageError("give two files to compare with --diff, one file otherwise")
    rule = Canonicalizer(exclude=exclude)
    bodies = [file.read() for file in files]
    if diff:
        _compare(rule, bodies[0], bodies[1], as_json)
        return
    (body,) = bodies
    form, reason = _canonical(rule, body)
    tagged = rule.fingerprint_json(body)
    document = {
        "fingerprint": tagged,
        "canonical": form.decode() if form is not None else None,
        "raw_because": reason,
    }
    text = form.decode() if form is not None else f"no canonical form, compared byte for byte: {reason}"
    answer(as_json, document, f"{text}\n{tagged}")


def _compare(rule: Canonicalizer, one: bytes, other: bytes, as_json: bool) -> None:
    same = rule.fingerprint_json(one) == rule.fingerprint_json(other)
    differences: list[dict[str, object]] = []
    if not same:
        forms = [_canonical(rule, body) for body in (one, other)]
        if all(form is not None for form, _ in forms):
            trees = [_tree(form) for form, _ in forms if form is not None]
            _walk("$", trees[0], trees[1], differences)
        else:
            reasons = [reason for _, reason in forms]
            differences.append({"path": "$", "first": reasons[0] or "JSON", "second": reasons[1] or "JSON"})
    lines = [f"{item['path']}: {item['first']} -> {item['second']}" for item in differences]
    answer(as_json, {"same": same, "differences": differences}, "\n".join(lines) or "the same request")
    if not same:
        raise SystemExit(1)


def _canonical(rule: Canonicalizer, body: bytes) -> tuple[bytes | None, str | None]:
    try:
        return rule.canonicalize_json(body), None
    except CanonicalizationError as error:
        return None, str(error)


def _tree(form: bytes) -> Tree:
    tree: Tree = json.loads(form, parse_int=_Number, parse_float=_Number)
    return tree


_ABSENT = object()


def _walk(path: str, one: object, other: object, differences: list[dict[str, object]]) -> None:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            step = f".{name}" if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"
            _walk(path + step, one.get(name, _ABSENT), other.get(name, _ABSENT), differences)
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            first = one[index] if index < len(one) else _ABSENT
            second = other[index] if index < len(other) else _ABSENT
            _walk(f"{path}[{index}]", first, second, differences)
    elif type(one) is not type(other) or one != other:
        differences.append({"path": path, "first": _shown(one), "second": _shown(other)})


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "absent"
    if isinstance(value, _Number):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)

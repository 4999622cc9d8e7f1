"""Excluded members are named by JSON Pointers (RFC 6901) whose ``*`` stands for one index or member.

Pointers are read when they are set, so a malformed one is a ConfigurationError at start and never a
surprise at a request. A path that a document does not have is no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from idemcore.errors import ConfigurationError

from .number import Refused

BESIDE = "/\0"
"""How a pointer begins that names what stands beside a document, such as a parameter of a query: the tag
tells of it as of any other, and nothing is left out of a document."""

_MAX_TOKENS = 100
_BAD_ESCAPE = re.compile("~(?![01])")


def normal_pointers(exclude: Iterable[str]) -> tuple[str, ...]:
    """The pointers in one spelling, sorted and without repeats.

    Args:
        exclude: JSON Pointers, or bare names of top-level members.

    Raises:
        ConfigurationError: naming what is wrong with one of them.
    """
    if isinstance(exclude, str):
        raise ConfigurationError(f"exclude takes several pointers, such as [{exclude!r}], not one str")
    try:
        return tuple(sorted({_normal_pointer(pointer) for pointer in exclude}))
    except TypeError:
        raise ConfigurationError("exclude takes JSON Pointers or names, such as ['/trace_id']") from None


def _normal_pointer(pointer: object) -> str:
    if not isinstance(pointer, str):
        raise ConfigurationError(f"exclude holds {type(pointer).__name__}, where only str can be")
    try:
        pointer.encode()
    except UnicodeEncodeError:
        raise ConfigurationError("exclude holds a lone surrogate, which no JSON name can hold") from None
    if not pointer:
        raise ConfigurationError("exclude holds an empty pointer, which would leave out everything")
    if not pointer.startswith("/"):
        if pointer == "*" or "/" in pointer:
            raise ConfigurationError(f"exclude holds {pointer!r}: a JSON Pointer starts with '/'")
        return "/" + pointer.replace("~", "~0")
    if pointer.count("/") > _MAX_TOKENS:
        raise ConfigurationError(f"exclude holds a pointer of more than {_MAX_TOKENS} tokens")
    if _BAD_ESCAPE.search(pointer):
        raise ConfigurationError(f"exclude holds {pointer!r}: '~' is followed by 0 or 1 in a JSON Pointer")
    return pointer


@dataclass(slots=True)
class Exclusion:
    """One level of a compiled set of pointers.

    Attributes:
        leaf: whatever stands here is left out.
        named: what follows a token; the pointers of `star` are part of each of them.
        star: what follows a token that `named` does not have.
    """

    leaf: bool = False
    named: dict[str, Exclusion] = field(default_factory=dict)
    star: Exclusion | None = None

    def under(self, token: str) -> Exclusion | None:
        """What holds below the member or index `token`; None where nothing is left out there."""
        return self.named.get(token, self.star)


def compiled(pointers: Iterable[str]) -> Exclusion | None:
    """The pointers of `normal_pointers` as a tree in which each token has one successor.

    None where they leave nothing out of a document.
    """
    paths = [_tokens(pointer) for pointer in pointers if not pointer.startswith(BESIDE)]
    return _compiled(paths) if paths else None


def _tokens(pointer: str) -> tuple[str | None, ...]:
    """Reference tokens, RFC 6901 section 4; None stands for ``*``."""
    written = pointer[1:].split("/")
    return tuple(None if part == "*" else part.replace("~1", "/").replace("~0", "~") for part in written)


def _compiled(rests: list[tuple[str | None, ...]]) -> Exclusion:
    if () in rests:
        return Exclusion(leaf=True)
    below_star = [rest[1:] for rest in rests if rest[0] is None]
    names = {rest[0] for rest in rests} - {None}
    return Exclusion(
        named={
            name: _compiled([rest[1:] for rest in rests if rest[0] == name] + below_star)
            for name in names
            if name is not None
        },
        star=_compiled(below_star) if below_star else None,
    )


def pruned(
    value: object, exclusion: Exclusion, reduce: Callable[[object], object]
) -> tuple[object, list[tuple[int, object]]]:
    """A copy of `value` without what is excluded, and what was left out, each with its depth.

    Only what lies on the path of a pointer is copied; `value` itself stays as it is. Needs no recursion.
    """
    dropped: list[tuple[int, object]] = []
    root: list[object] = [value]
    todo: list[tuple[Any, Any, Exclusion, int]] = [(root, 0, exclusion, 1)]
    while todo:
        parent, place, here, depth = todo.pop()
        try:
            item: Any = reduce(parent[place])
        except Refused:
            continue  # the writer refuses it too, and knows its path
        if type(item) is dict:
            copied: Any = {}
            for name, member in item.items():
                below = here.under(str.__str__(name)) if isinstance(name, str) else None
                if below is not None and below.leaf:
                    dropped += (depth, name), (depth, member)
                    continue
                copied[name] = member
                if below is not None:
                    todo.append((copied, name, below, depth + 1))
        elif type(item) is list or type(item) is tuple:
            copied = []
            for index, member in enumerate(item):
                below = here.under(str(index))
                if below is not None and below.leaf:
                    dropped.append((depth, member))
                    continue
                if below is not None:
                    todo.append((copied, len(copied), below, depth + 1))
                copied.append(member)
        else:
            continue
        parent[place] = copied
    return root[0], dropped

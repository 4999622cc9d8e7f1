"""The way over msgspec: the same bytes, or no answer at all; chosen, forced and distrusted."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from idemcore.canonical import Canonicalizer, fast
from idemcore.canonical.compiled_json import way_over
from idemcore.errors import CanonicalizationError, ConfigurationError

GOLDEN = Path(__file__).parent / "golden" / "fingerprints.jsonl"
LINES = [line for line in map(json.loads, GOLDEN.read_text().splitlines()) if line["kind"] == "json"]
WAY = way_over(msgspec)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The variable of whoever runs the tests decides nothing, and no verdict is remembered."""
    monkeypatch.delenv(fast.ENVIRONMENT, raising=False)
    yield
    fast._trusted.cache_clear()


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_golden_fingerprints_come_out_of_both_ways(line: dict[str, Any]) -> None:
    """Which way a text went shows nowhere in its fingerprint."""
    settings = dict(line["rule"])
    if "key" in settings:
        settings["key"] = bytes.fromhex(settings["key"])
    for choice in (True, False):
        rule = Canonicalizer(**settings, fast=choice)
        assert rule.fingerprint_json(bytes.fromhex(line["input"])) == line["fingerprint"]


def test_most_texts_do_take_the_fast_way() -> None:
    """Else nothing here would be tested, and nothing would be fast."""
    assert WAY(b'{"b":10.50,"a":[1,true,null,"\\u00e9"]}', None) == '{"a":[1,true,null,"é"],"b":10.5}'.encode()
    assert sum(WAY(text, None) is not None for text in fast.TEXTS) >= 15
    assert Canonicalizer()._fast is not None
    assert Canonicalizer(mode="rfc8785")._fast is None


@pytest.mark.parametrize(
    "body",
    [
        b"1000000000000000000000",
        b"[-1234567890123456789012]",
        '{"\ufb33":1,"\U0001f600":2}'.encode(),
        b'{"a":1,"a":2}',
        b'{"a":1,"\\u0061":1,"b":1.5}',
        b"[" * 513 + b"]" * 513,
        b'["]",' * 600 + b"1" + b"]" * 600,
        b"[" * 100_000,
        b"[" + b"0.12345678901234567," * 20 + b"1e1000000000000]",
        b"{oops",
        b'"\\ud800"',
        b"",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_what_msgspec_does_otherwise_is_left_to_the_other_way(body: bytes) -> None:
    """Long ints, names beyond U+FFFF, duplicates, depth, and everything that is refused: no answer."""
    assert WAY(body, None) is None


@pytest.mark.parametrize("offset", range(11))
def test_ints_of_22_digits_are_found_wherever_they_stand(offset: int) -> None:
    """Only a fifth of the text is looked at first, which no 22 digits slip through."""
    before = b"[" + b" " * offset
    assert WAY(before + b"9" * 21 + b"]", None) == b"[" + b"9" * 21 + b"]"
    assert WAY(before + b"9" * 22 + b"]", None) is None
    assert WAY(before + b"-1234567890.5,1234567890123456789012]", None) is None


def test_a_duplicate_is_found_though_a_number_grew_by_what_was_lost() -> None:
    """CAN-05: lengths say that nothing was lost only where no literal grew, remembered or not."""
    for _ in range(2):
        assert WAY(b'{"":0,"":0,"x":1e5}', None) is None
        assert WAY(b'{"a":1,"a":2,"b":1E-5,"c":1e-5}', None) is None
        assert WAY(b'{"":0,"":1}', None) is None
        assert WAY(b'{"":0,"":1.50}', None) is None
        assert WAY(b'{"b":1e5,"a":"\\n:\\u003a"}', None) == b'{"a":"\\n::","b":100000}'
        assert WAY(b'{ "b" : 1e5 , "a" : "::" }', None) == b'{"a":"::","b":100000}'


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 512 + b"]" * 512,
        b"[" + b",".join([b'[1,{"a":"x]}"}]'] * 600) + b"]",
        b"[" + b",".join([b'{"\\\\":["\\"",{"[":"]\\n"}]}'] * 600) + b"]",
        b"[" + b",".join([b"0.12345678901234567"] * 600) + b"]",
        b"[" + b",".join([b"0.123456789012345670", b"1.5e3", b"1.0", b"0.0000001"] * 300) + b"]",
        b'["1e5 0.0000001 v1.0",' + b",".join([b"0.12345678901234567"] * 600) + b"]",
        '["😀","\ufe0f"]'.encode(),
    ],
    ids=lambda body: repr(body[:40]),
)
@pytest.mark.parametrize("exclude", [(), ("/0", "/*/x")])
def test_large_texts_have_the_same_form_both_ways(body: bytes, exclude: tuple[str, ...]) -> None:
    """Depth, long literals and look-alikes of both are told apart without going through the tree."""
    slow = Canonicalizer(exclude, fast=False)
    assert Canonicalizer(exclude, fast=True).canonicalize_json(body) == slow.canonicalize_json(body)


def test_soundness_of_what_is_left_out_is_asked_for_too() -> None:
    """CAN-05: a duplicate under an excluded field makes the body raw on the fast way as well."""
    rule = Canonicalizer(["/x"], fast=True)
    assert rule.canonicalize_json(b'{"a":1,"x":{"\\"b":["\\\\\\"",1e5]}}') == b'{"a":1}'
    for body in (b'{"a":1,"x":1,"x":2}', b'{"a":1,"x":{"b":1,"b":2}}', b'{"a":1,"x":["\\ud800"]}'):
        with pytest.raises(CanonicalizationError):
            rule.canonicalize_json(body)


def altered(**changes: Any) -> Any:
    """Msgspec with something replaced."""
    module: Any = ModuleType("msgspec")
    module.__version__ = "99.0"
    module.Raw = msgspec.Raw
    module.json = SimpleNamespace(
        **({"Decoder": msgspec.json.Decoder, "Encoder": msgspec.json.Encoder} | changes)
    )
    return module


def test_the_memory_of_literals_is_bounded() -> None:
    """Literals that never come again, and long ones, do not pile up."""
    hooks: list[Any] = []

    def decoder(float_hook: Any) -> Any:
        hooks.append(float_hook)
        return msgspec.json.Decoder(float_hook=float_hook)

    way = way_over(altered(Decoder=decoder))
    for number in range(10_000):
        assert way(f"[{number}.25,1.{'0' * 18}]".encode(), None) == f"[{number}.25,1]".encode()
    memory = hooks[0].__self__
    assert 0 < len(memory) <= 8192
    assert max(map(len, memory)) <= 16


class LenientDecoder:
    """Reads what it should refuse."""

    def __init__(self, float_hook: Any) -> None:
        self._decode = msgspec.json.Decoder(float_hook=float_hook).decode

    def decode(self, text: bytes) -> Any:
        return self._decode(text.replace(b",]", b"]"))


class UnsortedEncoder:
    """Takes `order` for something else."""

    def __new__(cls, order: str) -> Any:
        return msgspec.json.Encoder()


@pytest.mark.parametrize(
    "module",
    [
        altered(Decoder=LenientDecoder),
        altered(Encoder=UnsortedEncoder),
        altered(Encoder=dict),
        ModuleType("msgspec"),
    ],
    ids=["lenient", "unsorted", "renamed", "empty"],
)
def test_a_release_that_differs_is_not_used(
    module: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CAN-09: no upgrade of a dependency changes a fingerprint in silence."""
    monkeypatch.setattr(fast, "_msgspec", lambda: module)
    with caplog.at_level(logging.WARNING, "idemcore"):
        rule = Canonicalizer()
    assert rule._fast is None
    assert "it is not used" in caplog.text
    assert rule.canonicalize_json(b'{"b":1,"a":[2]}') == b'{"a":[2],"b":1}'
    with pytest.raises(ConfigurationError, match="msgspec"):
        Canonicalizer(fast=True)


def test_argument_and_environment_force_it_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument comes first, then the variable, then what is installed."""
    assert Canonicalizer(fast=False)._fast is None
    monkeypatch.setenv(fast.ENVIRONMENT, "0")
    assert Canonicalizer()._fast is None
    assert Canonicalizer(fast=True)._fast is not None
    monkeypatch.setenv(fast.ENVIRONMENT, "1")
    assert Canonicalizer()._fast is not None
    assert Canonicalizer(fast=False)._fast is None
    monkeypatch.setenv(fast.ENVIRONMENT, "yes")
    with pytest.raises(ConfigurationError, match="IDEMCORE_FAST"):
        Canonicalizer()


def test_without_msgspec_it_is_off_unless_it_is_demanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional; who demands it is told what to install."""
    monkeypatch.setattr(fast, "_msgspec", lambda: None)
    assert Canonicalizer()._fast is None
    with pytest.raises(ImportError, match=r"pip install 'idemcore\[fast\]'$"):
        Canonicalizer(fast=True)


def test_a_missing_msgspec_is_no_error() -> None:
    """The package is imported and works where the extra is not installed."""
    code = (
        "import sys; sys.modules['msgspec'] = None\n"
        "import idemcore.canonical as c\n"
        "assert c.Canonicalizer()._fast is None\n"
        "assert c.canonicalize_json(b'[1.0]') == b'[1]'\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_choice_is_no_part_of_the_rule() -> None:
    """One tag, equal rules, whichever way is taken."""
    assert Canonicalizer(fast=True).tag == Canonicalizer(fast=False).tag
    assert Canonicalizer(fast=True) == Canonicalizer(fast=False)

"""Whether JSON texts go through `compiled_json`: where it is wanted, installed, and found to change nothing.

When this way is first chosen it is compared with the standard library's on texts that exercise every rule.
One difference, perhaps after a release of msgspec, switches it off: no dependency decides a fingerprint.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from types import ModuleType

from idemcore.errors import CanonicalizationError, ConfigurationError

from .compiled_json import FastWay, way_over
from .form import Form

ENVIRONMENT = "IDEMCORE_FAST"


def chosen(fast: bool | None) -> FastWay | None:
    """The fast way, if it is wanted, installed and trusted.

    Args:
        fast: True demands it, False declines it, None leaves it to the environment variable IDEMCORE_FAST
            (``1`` or ``0``) and, where that is not set, to what is installed.

    Raises:
        ImportError: demanded, but msgspec is not installed.
        ConfigurationError: demanded, but not trusted; or the variable holds anything else.
    """
    if fast is None:
        setting = os.environ.get(ENVIRONMENT, "")
        if setting not in ("", "0", "1"):
            raise ConfigurationError(f"The environment variable {ENVIRONMENT} is 0 or 1, not {setting!r}.")
        fast = {"0": False, "1": True}.get(setting)
    if fast is False:
        return None
    module = _msgspec()
    if module is None:
        if fast:
            raise ImportError("the fast way needs msgspec: pip install 'idemcore[fast]'")
        return None
    way = _trusted(module)
    if way is None and fast:
        raise ConfigurationError("this release of msgspec gives other results: the fast way cannot be used")
    return way


@cache
def _msgspec() -> ModuleType | None:
    try:
        import msgspec
    except ImportError:
        return None
    return msgspec


def _agrees(module: ModuleType) -> bool:
    try:
        way = way_over(module)
        return all(way(text, None) in (None, _by_the_book(text)) for text in TEXTS)
    except Exception:  # its interface changed
        return False


@cache
def _trusted(module: ModuleType) -> FastWay | None:
    """The fast way over this module, or None, with a warning, where it differs on any text below."""
    if _agrees(module):
        return way_over(module)
    logging.getLogger("idemcore").warning(
        "msgspec %s gives other canonical forms than the standard library's way: it is not used",
        getattr(module, "__version__", "(unknown)"),
    )
    return None


def _by_the_book(text: bytes) -> bytes | None:
    """What the other way says to a text; None where it refuses."""
    try:
        return _FORM.of_json(text)
    except CanonicalizationError:
        return None


_FORM = Form("exact", None, lambda _: "")

# What the two ways are compared on: every escape, every kind of number and name, and what is to be refused.
TEXTS = [
    b'"%s"' % bytes({*range(0x20, 0x80)} - {*b'"\\'}),
    b'["%s"]' % b"".join(b"\\u00%02x" % byte for byte in range(0x100)),
    b'["%s"]' % b"".join(b"\\%c" % letter for letter in b'"\\/bfnrt'),
    *(b'"%c"' % byte for byte in (0x00, 0x09, 0x0A, 0x1F)),
    *(b'"\\%c"' % letter for letter in b"auxvB0'N"),
    *(text.encode("utf-8", "surrogatepass") for text in (
        "[0,-0,-0.0,1.0,10.50,1e0,10e-1,1E+2,1e20,1e21,1E22,0.000001,0.0000001,1E-7,-1.5e-8,5e-324,1e400]",
        "[9007199254740993,18446744073709551615,18446744073709551616,-9223372036854775809,1e-400,1E-5]",
        "[999999999999999999999]", "1000000000000000000000", "123456789012345678901234", "-" + "9" * 400,
        "1" * 5000, "1.0000000000000000001", "1e999999999999", "1e1000000000000", "[12345678901234567.010]",
        "[" + "0.1234567890123457," * 60 + "1]", "[" + "0.1234567890123457," * 60 + "1.0]",
        "[" + "0.1234567890123457," * 60 + "1e5]", "[" + "0.1234567890123457," * 60 + "0.00000012345]",
        '{"b":1,"a":{"d":[true,false,null],"c":{}},"":[]}', ' { "b" : [ 1 , 2 ] ,\t"a"\r:\n"x" } ',
        '{"\ufb33":1,"\U0001f600":2}', '{"\\ufb33":1,"\\ud83d\\ude00":2}', '{"é":1,"e":2,"z":3,"日":4}',
        '{"a":1,"a":2}', '{"a":1,"\\u0061":1}', '[{"x":{"a":1,"b":2,"a":3}}]', '{"a\\"":1,"a\\"":2}',
        '{"a\\\\":1,"a\\"":2}', '{"a":1,"a":2,"b":1e-5,"c":1e-5}', '"\\ud800"', '"\\udc00\\ud800"',
        '{"\\ud800":1}', '"\ud800"', "\ufeff1", "", " ", "01", "-01", ".5", "5.", "+1", "-", "1e", "1e+", "0x1",
        "NaN", "Infinity", "-Infinity", "nul", "True", "[1,]", "[,1]", '{"a":1,}', "{a:1}", "{1:1}", "[1 2]",
        "1 2", "[1", "]", '"abc', '"\\u12', "\x0b1", "\xa01", "1\x00", "[" * 512 + "]" * 512,
        "[" * 513 + "]" * 513, '{"a":' * 513 + "1" + "}" * 513, "[" * 2000, '["]",' * 600 + "1" + "]" * 600,
        '["a,1.0,b","9e-4f","x:-0.0}","10.0","\u2028","\U0010ffff"]',
    )),
    b'"\xff"', b'"\xc0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b"\xff\xfe1\x00",
]  # fmt: skip

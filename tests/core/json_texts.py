"""JSON texts, sound and unsound, by the hundred thousand: what a seed gives is always the same text.

The strategies beside it know how to shrink what fails and take 20 ms for a text; this takes 0.1. It makes what
canonicalizers stumble over: escapes, spellings of numbers, look-alikes of numbers and of structure inside of
strings, duplicates in two spellings, names beyond U+FFFF, nesting up to the limit and beyond, a wrong byte.
"""

from __future__ import annotations

from random import Random

_STRINGS = [
    *("a", "b", "x", "0", "é", "日本", "e\u0301", "\x7f", "\x80", "\u2028", "\ue000", "\ufb33", "\uffff"),
    *("\ufeff", "\U0001f600", "\U0010ffff", ":", ",", "//", "{", "}", "[", "]", '\\"', "\\\\", "\\/", "\\b"),
    *("\\f", "\\n", "\\r", "\\t", "\\u0000", "\\u001F", "\\u007f", "\\u0022", "\\u005c", "\\u003a"),
    *("\\u0061", "\\u00e9", "\\ufb33", "\\uD83D\\uDE00", "\\ud83d\\ude00", "\\\\\\\\", '\\\\\\"', '\\":'),
    *('\\",\\"', "1.0", "-0.0}", "9e-4f", ",1.50,", '\\":1e2,\\"', "NaN", "null", "10.0", "0e1", "0.0000"),
    *("1" * 21, "1" * 23),
]
_LONE_SURROGATES = ["\\ud800", "\\uDFFF", "\\ud83d\\ud83d", "\\ude00\\ud83d", "\ud800"]
_NAMES = ['"a"', '"b"', '"x"', '"0"', '""', '"\\u0061"', '"\U0001f600"', '"\ufb33"', '"\\ud83d\\ude00"']
_WORDS = ["true", "false", "null", "{}", "[]", "[ ]", '""']
_NOT_JSON = ["", "NaN", "-Infinity", "01", "-", ".5", "5.", "+1", "1e", "0x1", "'a'", "nul", '"\t"', '"\\x"']
_EXPONENTS = ["00", "0021", "999999999999", "1000000000000", "-999999999990"]
_WHOLE = [
    "0",
    "0",
    "1",
    "10",
    "12",
    "199",
    "9007199254740993",
    "18446744073709551616",
    "9" * 21,
    "1" + "0" * 21,
]
_NESTS = [("[", "]", 1), ('{"a":', "}", 1), ('[{"x":', "}]", 2)]


def json_text(seed: int) -> bytes:
    """The body that this seed stands for."""
    source = Random(seed)
    text = _value(source, source.choice((0, 1, 2, 3, 4, 5)))
    if source.random() < 0.02:  # near the limit of nesting
        opener, closer, levels = source.choice(_NESTS)
        depth = source.choice((300, 508, 509, 510, 511, 512, 513)) // levels
        text = opener * depth + text + closer * depth
    body = f"{_space(source)}{text}{_space(source)}".encode("utf-8", "surrogatepass")
    if source.random() < 0.06:  # something else where it should not be
        at = source.randrange(len(body) + 1)
        body = body[:at] + source.randbytes(source.randrange(2)) + body[at + source.randrange(3) :]
    return body


def _space(source: Random) -> str:
    return "".join(source.choices(" \t\n\r", k=source.randrange(3))) if source.random() < 0.2 else ""


def _value(source: Random, depth: int) -> str:
    kind = source.random()
    if depth == 0 or kind < 0.15:
        return _scalar(source)
    if kind < 0.45:
        items = [_value(source, depth - 1) for _ in range(source.randrange(5))]
        return "[" + ",".join(_space(source) + item + _space(source) for item in items) + "]"
    names = [_name(source) for _ in range(source.randrange(6))]
    if kind < 0.9:  # as written, that is: `a` and `\u0061` are still two
        names = list(dict.fromkeys(names))
    members = [(name, _value(source, depth - 1)) for name in names]
    return "{" + ",".join(_member(source, name, item) for name, item in members) + "}"


def _member(source: Random, name: str, item: str) -> str:
    return f"{_space(source)}{name}{_space(source)}:{_space(source)}{item}{_space(source)}"


def _name(source: Random) -> str:
    return source.choice(_NAMES) if source.random() < 0.6 else _string(source)


def _scalar(source: Random) -> str:
    kind = source.random()
    if kind < 0.45:
        return _number(source)
    if kind < 0.8:
        return _string(source)
    return source.choice(_WORDS) if kind < 0.995 else source.choice(_NOT_JSON)


def _string(source: Random) -> str:
    pieces = source.choices(_STRINGS, k=source.randrange(5))
    if source.random() < 0.1:
        pieces.append(_any_character(source))
    if source.random() < 0.005:
        pieces.insert(source.randrange(len(pieces) + 1), source.choice(_LONE_SURROGATES))
    return f'"{"".join(pieces)}"'


def _any_character(source: Random) -> str:
    code = source.choice((source.randrange(0x20, 0x800), source.randrange(0xE000, 0x110000)))
    return chr(code) if chr(code) not in '"\\' else f"\\u{code:04x}"


def _number(source: Random) -> str:
    sign = "-" if source.random() < 0.2 else ""
    kind = source.random()
    if kind < 0.3:
        whole = source.choice(_WHOLE)
    else:
        whole = str(source.randrange(1, 10 ** source.randrange(1, 24 if kind < 0.5 else 5)))
    fraction = ""
    if source.random() < 0.5:
        digits = "01" if source.random() < 0.4 else "0123456789"
        fraction = "." + "".join(source.choices(digits, k=source.randrange(1, 26 if kind < 0.4 else 8)))
    exponent = ""
    if source.random() < 0.25:
        power = str(source.randrange(30 if kind < 0.8 else 400)) if kind < 0.97 else source.choice(_EXPONENTS)
        exponent = source.choice("eE") + source.choice(("", "+", "-")) + power
    return sign + whole + fraction + exponent

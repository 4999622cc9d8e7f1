"""Each row of the table for JSON bodies: what is one request, what is two, what is compared byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore.canonical import Canonicalizer, canonicalize_json, fingerprint_json
from idemcore.canonical.form import Mode
from idemcore.canonical.scan import strings_in
from idemcore.errors import CanonicalizationError

SAME = [
    ("1", "1.0"),
    ("1", "1e0"),
    ("1", "10e-1"),
    ("10.50", "10.5"),
    ("-0", "0"),
    ("-0.0", "0"),
    ("0e5", "0"),
    ("-0", "-0.0"),
    ("1E+2", "100"),
    ("1e21", "1000000000000000000000"),
    ("0.0000001", "1E-7"),
    ("1e0000000000000002", "100"),
    ("1e-7", "0.0000001000"),
    (r'"\u00e9\/"', '"é/"'),
    (r'"\ud83d\ude00"', '"😀"'),
    (r'"\b\t\n\f\r\"\\"', r'"\u0008\u0009\u000a\u000c\u000d\u0022\u005c"'),
    ('{"n":"\\u00e9"}', '{ "n" : "é" }'),
    ('{"a":1,"b":{"x":1,"y":2}}', '{"b":{"y":2,"x":1},"a":1}'),
    ('[{"a":1,"b":[{"c":1,"d":2}]}]', '[{"b":[{"d":2,"c":1}],"a":1}]'),
    (' \t\r\n{ "a" : [ 1 , 2 ] }\n', '{"a":[1,2]}'),
]

DIFFERENT = [
    ("5e-324", "4e-324"),
    ("9007199254740993", "9007199254740992"),
    ("1.0000000000000000001", "1.0"),
    ("12345678901234567.01", "12345678901234567.02"),
    ("1e400", "1e500"),
    ("1e-400", "0"),
    ("0.1", "0.10000000000000001"),
    ("1" + "0" * 4301, "1" + "0" * 4300),
    ('"10.0"', '"10.00"'),
    ('"1"', "1"),
    ("1", "true"),
    ("1", "[1]"),
    ('"1"', "true"),
    ("0", "false"),
    ('"\u00e9"', '"e\u0301"'),
    (r'"\ud800"', '"\ufffd"'),
    (r'{"\ud800":1}', '{"\ufffd":1}'),
    (r'"\ud800"', r'"\ud801"'),
    ('{"a":null}', "{}"),
    ("[1,2]", "[2,1]"),
    ("[]", "{}"),
    ("[]", "null"),
    ("[]", '""'),
    ("[]", ""),
    ("{}", "null"),
    ("{}", '""'),
    ("{}", ""),
    ("null", '""'),
    ("null", ""),
    ('""', ""),
    ('{"a":1,"a":2}', '{"a":2}'),
    ('{"a":1,"a":2}', '{"a":1}'),
    ('{"a":1,"a":2}', '{"a":2,"a":1}'),
    ('{"":1}', '{"0":1}'),
    ('{"a":{"b":1}}', '{"a":{},"b":1}'),
    ('"a,1.0,b"', '"a,1,b"'),
    ('"9e-4f"', '"0.0009f"'),
    ('"x:-0.0}"', '"x:0}"'),
]

CANONICAL = [
    ("10.50", "10.5"),
    ("-0", "0"),
    ("-0.0", "0"),
    ("0e5", "0"),
    ("0.000", "0"),
    ("1E+2", "100"),
    ("1e20", "100000000000000000000"),
    ("1e21", "1e+21"),
    ("1000000000000000000000", "1e+21"),
    ("-1e21", "-1e+21"),
    ("999999999999999999999", "999999999999999999999"),
    ("0.000001", "0.000001"),
    ("0.0000001", "1e-7"),
    ("1E-7", "1e-7"),
    ("-0.00000123", "-0.00000123"),
    ("0.000000123", "1.23e-7"),
    ("5e-324", "5e-324"),
    ("4e-324", "4e-324"),
    ("9007199254740993", "9007199254740993"),
    ("1.0000000000000000001", "1.0000000000000000001"),
    ("12345678901234567.010", "12345678901234567.01"),
    ("1234567890123456789012.5", "1.2345678901234567890125e+21"),
    ("1e400", "1e+400"),
    ("1e-400", "1e-400"),
    ("123456789012345678901234", "1.23456789012345678901234e+23"),
    ("1e999999999999", "1e+999999999999"),
    ("1e-999999999999", "1e-999999999999"),
    ("-12.5e3", "-12500"),
    ("true", "true"),
    ("false", "false"),
    ("null", "null"),
    ('""', '""'),
    (r'"\u00e9\/"', '"é/"'),
    (r'"\u0000\u001f\u007f"', '"\\u0000\\u001f\x7f"'),
    (r'"\u2028\u20ac"', '"\u2028€"'),
    ('"a,1.0,b"', '"a,1.0,b"'),
    ('"9e-4f"', '"9e-4f"'),
    ('"x:-0.0}"', '"x:-0.0}"'),
    ("[]", "[]"),
    ("{}", "{}"),
    ('[ [ ] , { } , [ 1.0 , "a" ] ]', '[[],{},[1,"a"]]'),
    ('{"b":[{"z":1e1,"y":2}],"a":{}}', '{"a":{},"b":[{"y":2,"z":10}]}'),
    # RFC 8785 section 3.2.3: U+1F600 is D83D DE00 in UTF-16, so it stands before U+FB33
    ('{"\ufb33":1,"\U0001f600":2,"\u20ac":3,"\\r":4,"1":5,"\u0080":6,"\u00f6":7}',
     '{"\\r":4,"1":5,"\u0080":6,"\u00f6":7,"\u20ac":3,"\U0001f600":2,"\ufb33":1}'),
]  # fmt: skip

WITHOUT_FORM = [
    b"",
    b" ",
    b"01",
    b"-01",
    b".5",
    b"5.",
    b"+1",
    b"-",
    b"0x1",
    b"1e",
    b"1e+",
    b"1 2",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"[NaN]",
    b"nul",
    b"True",
    b"[1,]",
    b"[,1]",
    b'{"a":1,}',
    b"{a:1}",
    b"{1:1}",
    b"{'a':1}",
    b'{"a" 1}',
    b'{"a":}',
    b"[1",
    b"]",
    b'"\t"',
    b'"\\x"',
    b'"\\u12"',
    b'"abc',
    b"\x0b1",
    b"\xa01",
    b"\xc2\xa01",
    b"1\x00",
    b"\xef\xbb\xbf1",
    '{"a":1}'.encode("utf-16"),
    '{"a":1}'.encode("utf-16-le"),
    b'"\xff"',
    b'"\xc0\x80"',
    b'"\xed\xa0\x80"',
    b'"\xf4\x90\x80\x80"',
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'{"\\ud800":1}',
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061":1}',
    b'{"a":1,"a":1}',
    b'[{"x":{"a":1,"b":2,"a":3}}]',
    b'{"a":1,"a":2,"b":1e-5,"c":1e-5}',
    b'{"a\\"":1,"a\\"":2}',
    b'{"a\\\\":1,"a\\\\":2}',
    b"1e1000000000000",
    b"1e-1000000000000",
    b"10e999999999999",
    b"[" * 513 + b"]" * 513,
    b'{"a":' * 513 + b"1" + b"}" * 513,
    b"[" * 100_000,
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_one_request_in_two_spellings_has_one_fingerprint(left: str, right: str) -> None:
    """CAN-01, CAN-02: order of members, whitespace, escapes and spelling of numbers do not count."""
    assert fingerprint_json(left.encode()) == fingerprint_json(right.encode())
    assert canonicalize_json(left.encode()) == canonicalize_json(right.encode())


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_two_requests_have_two_fingerprints(left: str, right: str) -> None:
    """CAN-02, CAN-03: numbers that share a double, types, order of arrays and look-alikes all count."""
    assert fingerprint_json(left.encode()) != fingerprint_json(right.encode())


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_canonical_text_is_the_expected_one(text: str, expected: str) -> None:
    """CAN-04: the layout of RFC 8785, UTF-16 order of names included, with exact numbers."""
    assert canonicalize_json(text.encode()).decode() == expected


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_canonical_text_is_its_own_canonical_form(text: str, expected: str) -> None:
    """Canonicalizing twice changes nothing."""
    assert canonicalize_json(expected.encode()).decode() == expected


@pytest.mark.parametrize("body", WITHOUT_FORM, ids=lambda body: repr(body[:40]))
def test_what_has_no_canonical_form_is_refused_by_name_and_compared_as_bytes(body: bytes) -> None:
    """CAN-05: duplicates and everything that two parsers may read differently get a raw fingerprint."""
    with pytest.raises(CanonicalizationError):
        canonicalize_json(body)
    with pytest.raises(CanonicalizationError):
        fingerprint_json(body, on_invalid="reject")
    assert fingerprint_json(body) == fingerprint_json(body)
    assert fingerprint_json(body) != fingerprint_json(body + b" ")


def test_bodies_without_form_all_differ() -> None:
    """No two bodies that are compared byte for byte meet in one fingerprint."""
    assert len({fingerprint_json(body) for body in WITHOUT_FORM}) == len(WITHOUT_FORM)


@pytest.mark.parametrize("depth", [1, 2, 100, 511, 512])
def test_nesting_up_to_the_limit_has_a_form(depth: int) -> None:
    """512 containers inside each other are canonical, empty or not; test above: 513 are not."""
    empty = b"[" * depth + b"]" * depth
    full = b'{"a":' * (depth - 1) + b"[ 1.0 ]" + b"}" * (depth - 1)
    assert canonicalize_json(empty) == empty
    assert canonicalize_json(full) == full.replace(b"[ 1.0 ]", b"[1]")


def test_a_number_of_any_length_is_exact_or_raw_but_never_an_error() -> None:
    """CAN-03: 4301 digits, where the interpreter refuses to convert an int, change nothing."""
    for digits in (4299, 4300, 4301, 100_000):
        body = b"1" * digits
        expected = b"1." + b"1" * (digits - 1) + b"e+" + str(digits - 1).encode()
        assert canonicalize_json(body) == expected
        assert canonicalize_json(b"[" + body + b"]") == b"[" + expected + b"]"
        assert canonicalize_json(b'{"a":' + body + b'.5,"b":1}').startswith(b'{"a":1.1')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9007199254740993", "9007199254740992"),
        ("1.0000000000000000001", "1"),
        ("1e21", "1e+21"),
        ("123456789012345678901234", "1.2345678901234569e+23"),
        ("333333333.33333329", "333333333.3333333"),
        ("4.50", "4.5"),
        ("2e-3", "0.002"),
        ("0.000000000000000000000000001", "1e-27"),
        ("1e-400", "0"),
        ("-0", "0"),
        ("5e-324", "5e-324"),
        ("18446744073709551616", "18446744073709552000"),
        ("[9007199254740991,-9007199254740991]", "[9007199254740991,-9007199254740991]"),
    ],
)
def test_strict_mode_rounds_to_doubles(text: str, expected: str) -> None:
    """mode="rfc8785" prints what RFC 8785 section 3.2.2.3 asks for."""
    assert canonicalize_json(text.encode(), mode="rfc8785").decode() == expected


@pytest.mark.parametrize("text", ["1e400", "-1e400", "[1e309]", "1" + "0" * 400])
def test_strict_mode_refuses_what_no_double_holds(text: str) -> None:
    """There is no Infinity in JSON, so an overflow has no strict form; the exact mode has one."""
    with pytest.raises(CanonicalizationError):
        canonicalize_json(text.encode(), mode="rfc8785")
    canonicalize_json(text.encode())


@pytest.mark.parametrize("body", [bytearray(b'{"a":1}'), memoryview(b'{"a":1}')])
def test_other_bytes_like_bodies_are_read(body: bytes) -> None:
    """A server may hand out a bytearray or a memoryview."""
    assert canonicalize_json(body) == b'{"a":1}'
    assert fingerprint_json(body) == fingerprint_json(b'{"a":1}')


@pytest.mark.parametrize("body", ['{"a":1}', None, 1, {"a": 1}])
def test_a_body_that_is_not_bytes_is_refused(body: object) -> None:
    """A str has lost its bytes, so it cannot even be compared raw."""
    with pytest.raises(CanonicalizationError, match="bytes"):
        canonicalize_json(body)  # type: ignore[arg-type]  # the wrong type is the case
    with pytest.raises(CanonicalizationError, match="bytes"):
        fingerprint_json(body)  # type: ignore[arg-type]  # the wrong type is the case


@pytest.mark.parametrize("exclude", [(), ("x",)])
@pytest.mark.parametrize("mode", ["exact", "rfc8785"])
@pytest.mark.parametrize(
    "grows", ["1e5,1e5", "1e10", "1E-5,1E-5", "-1e7", "1234567890123456789012345", "-9876543210987654321098765"]
)
def test_a_duplicate_is_found_though_a_number_grew_by_what_was_lost(
    grows: str, mode: Mode, exclude: tuple[str, ...]
) -> None:
    """CAN-05: fewer bytes are gone than a member has, each time the same text comes."""
    body = f'{{"a":1,"a":2,"b":[{grows}]}}'.encode()
    rule = Canonicalizer(exclude, mode, fast=False)
    for _ in range(2):
        with pytest.raises(CanonicalizationError, match="duplicate"):
            rule.canonicalize_json(body)
    assert rule.canonicalize_json(body.replace(b'"a":2', b'"c":2'))


@pytest.mark.parametrize("text", ["", "a", '"', '""', "\\", '\\"', "é", "/", "\n"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_duplicate_is_found_whatever_is_escaped_beside_it(text: str, ascii_only: bool) -> None:
    """CAN-05: in the member that is dropped, in one that stays, and in one that is excluded."""
    quoted = json.dumps(text, ensure_ascii=ascii_only)
    for rule in (Canonicalizer(fast=False), Canonicalizer(["x"], fast=False)):
        for body in (
            f'{{"a": {quoted}, "a": 1}}',
            f'{{"a": 1, "a": {quoted}}}',
            f'{{"x": {{"a": {quoted}, "a": 1}}}}',
        ):
            with pytest.raises(CanonicalizationError, match="duplicate"):
                rule.canonicalize_json(body.encode())
            assert rule.canonicalize_json(body.replace('"a": 1', '"b": 1').encode())


@given(
    st.lists(st.text(st.sampled_from('\\"a:é\n') | st.characters(codec="utf-8")), max_size=30), st.booleans()
)
def test_strings_are_counted_whatever_stands_in_them(strings: list[str], ascii_only: bool) -> None:
    """CAN-05: duplicates are found by that count, be there few backslashes or many."""
    for sent in (strings, strings * 3):
        assert strings_in(json.dumps(sent, ensure_ascii=ascii_only).encode()) == len(sent)

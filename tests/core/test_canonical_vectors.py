"""Published vectors: RFC 8785's files and Appendix B, the ES6 number file, and texts of JSONTestSuite."""

from __future__ import annotations

import pytest

from idemcore.canonical import canonicalize, canonicalize_json
from idemcore.canonical.number import EXACT, double_literal
from idemcore.errors import CanonicalizationError
from tests.core.canonical_reference import Invalid
from tests.core.canonical_reference import canonical as reference
from tests.core.es6_numbers import CHECKPOINTS, STATIC, digest, double

RFC_FILES = {
    "arrays": (
        '[\n  56,\n  {\n    "d": true,\n    "10": null,\n    "1": [ ]\n  }\n]',
        '[56,{"1":[],"10":null,"d":true}]',
    ),
    "french": (
        '{\n  "peach": "This sorting order",\n  "péché": "is wrong according to French",\n'
        '  "pêche": "but canonicalization MUST",\n  "sin":   "ignore locale"\n}',
        '{"peach":"This sorting order","péché":"is wrong according to French",'
        '"pêche":"but canonicalization MUST","sin":"ignore locale"}',
    ),
    "structures": (
        '{\n  "1": {"f": {"f": "hi","F": 5} ,"\\n": 56.0},\n  "10": { },\n  "": "empty",\n'
        '  "a": { },\n  "111": [ {"e": "yes","E": "no" } ],\n  "A": { }\n}',
        '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ),
    "unicode": (
        '{\n  "Unnormalized Unicode":"A\\u030a"\n}',
        '{"Unnormalized Unicode":"A\u030a"}',
    ),
    "values": (
        '{\n  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],\n'
        '  "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",\n'
        '  "literals": [null, true, false]\n}',
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    "weird": (
        '{\n  "\\u20ac": "Euro Sign",\n  "\\r": "Carriage Return",\n  "\\u000a": "Newline",\n  "1": "One",\n'
        '  "\\u0080": "Control\\u007f",\n  "\\ud83d\\ude02": "Smiley",\n'
        '  "\\u00f6": "Latin Small Letter O With Diaeresis",\n'
        '  "\\ufb33": "Hebrew Letter Dalet With Dagesh",\n  "</script>": "Browser Challenge"\n}',
        '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge",'
        '"\u0080":"Control\u007f","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign",'
        '"😂":"Smiley","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
}

APPENDIX_B = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]

# Texts of JSONTestSuite (Nicolas Seriot, MIT licence), by the names of its files: y_ must be read, n_ must
# not; where the suite leaves it open (i_), the verdict is ours. None means: no canonical form.
JSON_TEST_SUITE: dict[str, tuple[bytes, bytes | None]] = {
    "y_array_arraysWithSpaces": (b"[[]   ]", b"[[]]"),
    "y_array_empty-string": (b'[""]', b'[""]'),
    "y_array_ending_with_newline": (b'["a"]\n', b'["a"]'),
    "y_array_heterogeneous": (b'[null, 1, "1", {}]', b'[null,1,"1",{}]'),
    "y_array_with_1_and_newline": (b"[1\n]", b"[1]"),
    "y_array_with_leading_space": (b" [1]", b"[1]"),
    "y_array_with_several_null": (b"[1,null,null,null,2]", b"[1,null,null,null,2]"),
    "y_number": (b"[123e65]", b"[1.23e+67]"),
    "y_number_0e+1": (b"[0e+1]", b"[0]"),
    "y_number_0e1": (b"[0e1]", b"[0]"),
    "y_number_after_space": (b"[ 4]", b"[4]"),
    "y_number_double_close_to_zero": (b"[-0." + b"0" * 77 + b"1]", b"[-1e-78]"),
    "y_number_int_with_exp": (b"[20e1]", b"[200]"),
    "y_number_minus_zero": (b"[-0]", b"[0]"),
    "y_number_negative_int": (b"[-123]", b"[-123]"),
    "y_number_real_capital_e": (b"[1E22]", b"[1e+22]"),
    "y_number_real_capital_e_neg_exp": (b"[1E-2]", b"[0.01]"),
    "y_number_real_exponent": (b"[123e45]", b"[1.23e+47]"),
    "y_number_real_fraction_exponent": (b"[123.456e78]", b"[1.23456e+80]"),
    "y_number_real_neg_exp": (b"[1e-2]", b"[0.01]"),
    "y_number_simple_real": (b"[123.456789]", b"[123.456789]"),
    "y_object_basic": (b'{"asd":"sdf"}', b'{"asd":"sdf"}'),
    "y_object_duplicated_key": (b'{"a":"b","a":"c"}', None),  # a parser may read it; two parsers may differ
    "y_object_duplicated_key_and_value": (b'{"a":"b","a":"b"}', None),
    "y_object_empty_key": (b'{"":0}', b'{"":0}'),
    "y_object_escaped_null_in_key": (b'{"foo\\u0000bar": 42}', b'{"foo\\u0000bar":42}'),
    "y_object_extreme_numbers": (b'{ "min": -1.0e+28, "max": 1.0e+28 }', b'{"max":1e+28,"min":-1e+28}'),
    "y_object_string_unicode": (
        b'{"title":"\\u041f\\u043e\\u043b\\u0442\\u043e\\u0440\\u0430"}',
        '{"title":"Полтора"}'.encode(),
    ),
    "y_object_with_newlines": (b'{\n"a": "b"\n}', b'{"a":"b"}'),
    "y_string_1_2_3_bytes_UTF-8_sequences": (b'["\\u0060\\u012a\\u12AB"]', '["`\u012a\u12ab"]'.encode()),
    "y_string_accepted_surrogate_pair": (b'["\\uD801\\udc37"]', '["\U00010437"]'.encode()),
    "y_string_allowed_escapes": (b'["\\"\\\\\\/\\b\\f\\n\\r\\t"]', b'["\\"\\\\/\\b\\f\\n\\r\\t"]'),
    "y_string_backslash_and_u_escaped_zero": (b'["\\\\u0000"]', b'["\\\\u0000"]'),
    "y_string_comments": (b'["a/*b*/c/*d//e"]', b'["a/*b*/c/*d//e"]'),
    "y_string_double_escape_n": (b'["\\\\n"]', b'["\\\\n"]'),
    "y_string_escaped_noncharacter": (b'["\\uFFFF"]', '["\uffff"]'.encode()),
    "y_string_last_surrogates_1_and_2": (b'["\\uDBFF\\uDFFF"]', '["\U0010ffff"]'.encode()),
    "y_string_nonCharacterInUTF-8_U+10FFFF": (b'["\xf4\x8f\xbf\xbf"]', b'["\xf4\x8f\xbf\xbf"]'),
    "y_string_null_escape": (b'["\\u0000"]', b'["\\u0000"]'),
    "y_string_u+2028_line_sep": (b'["\xe2\x80\xa8"]', b'["\xe2\x80\xa8"]'),
    "y_string_unescaped_char_delete": (b'["\x7f"]', b'["\x7f"]'),
    "y_string_with_del_character": (b'["a\x7fa"]', b'["a\x7fa"]'),
    "y_structure_lonely_false": (b"false", b"false"),
    "y_structure_lonely_int": (b"42", b"42"),
    "y_structure_lonely_negative_real": (b"-0.1", b"-0.1"),
    "y_structure_lonely_null": (b"null", b"null"),
    "y_structure_lonely_string": (b'"asd"', b'"asd"'),
    "y_structure_string_empty": (b'""', b'""'),
    "y_structure_trailing_newline": (b'["a"]\n', b'["a"]'),
    "y_structure_true_in_array": (b"[true]", b"[true]"),
    "y_structure_whitespace_array": (b" [] ", b"[]"),
    "i_number_double_huge_neg_exp": (b"[123.456e-789]", b"[1.23456e-787]"),
    "i_number_huge_exp": (b"[0.4e006" + b"9" * 60 + b"]", None),
    "i_number_neg_int_huge_exp": (b"[-1e+9999]", b"[-1e+9999]"),
    "i_number_pos_double_huge_exp": (b"[1.5e+9999]", b"[1.5e+9999]"),
    "i_number_real_overflow": (b"[123123e100000]", b"[1.23123e+100005]"),
    "i_number_real_underflow": (b"[123e-10000000]", b"[1.23e-9999998]"),
    "i_number_too_big_pos_int": (b"[100000000000000000000]", b"[100000000000000000000]"),
    "i_number_very_big_negative_int": (
        b"[-237462374673276894279832749832423479823246327846]",
        b"[-2.37462374673276894279832749832423479823246327846e+47]",
    ),
    "i_object_key_lone_2nd_surrogate": (b'{"\\uDFAA":0}', None),
    "i_string_1st_surrogate_but_2nd_missing": (b'["\\uDADA"]', None),
    "i_string_1st_valid_surrogate_2nd_invalid": (b'["\\uD888\\u1234"]', None),
    "i_string_incomplete_surrogates_escape_valid": (b'["\\uD800\\uD800\\n"]', None),
    "i_string_invalid_lonely_surrogate": (b'["\\ud800"]', None),
    "i_string_inverted_surrogates_U+1D11E": (b'["\\uDd1e\\uD834"]', None),
    "i_string_UTF-16LE_with_BOM": (b"\xff\xfe[\x00]\x00", None),
    "i_string_UTF-8_invalid_sequence": (b'["\xe6\x97\xa5\xd1\x88\xfa"]', None),
    "i_string_UTF8_surrogate_U+D800": (b'["\xed\xa0\x80"]', None),
    "i_string_not_in_unicode_range": (b'["\xf4\xbf\xbf\xbf"]', None),
    "i_string_overlong_sequence_2_bytes": (b'["\xc0\xaf"]', None),
    "i_string_truncated-utf-8": (b'["\xe0\xff"]', None),
    "i_structure_500_nested_arrays": (b"[" * 500 + b"]" * 500, b"[" * 500 + b"]" * 500),
    "i_structure_UTF-8_BOM_empty_object": (b"\xef\xbb\xbf{}", None),
}

NOT_JSON = {
    "n_array_1_true_without_comma": b"[1 true]",
    "n_array_a_invalid_utf8": b"[a\xe5]",
    "n_array_colon_instead_of_comma": b'["": 1]',
    "n_array_comma_after_close": b'[""],',
    "n_array_comma_and_number": b"[,1]",
    "n_array_double_comma": b"[1,,2]",
    "n_array_double_extra_comma": b'["x",,]',
    "n_array_extra_close": b'["x"]]',
    "n_array_extra_comma": b'["",]',
    "n_array_incomplete": b'["x"',
    "n_array_inner_array_no_comma": b"[3[4]]",
    "n_array_just_comma": b"[,]",
    "n_array_just_minus": b"[-]",
    "n_array_newlines_unclosed": b'["a",\n4\n,1,',
    "n_array_spaces_vertical_tab_formfeed": b'["\x0ba"\\f]',
    "n_array_star_inside": b"[*]",
    "n_array_unclosed_with_object_inside": b"[{}",
    "n_incomplete_false": b"[fals]",
    "n_incomplete_null": b"[nul]",
    "n_multidigit_number_then_00": b"123\x00",
    "n_number_++": b"[++1234]",
    "n_number_+1": b"[+1]",
    "n_number_+Inf": b"[+Inf]",
    "n_number_-01": b"[-01]",
    "n_number_-1.0.": b"[-1.0.]",
    "n_number_-2.": b"[-2.]",
    "n_number_-NaN": b"[-NaN]",
    "n_number_.-1": b"[.-1]",
    "n_number_.2e-3": b"[.2e-3]",
    "n_number_0.1.2": b"[0.1.2]",
    "n_number_0.3e+": b"[0.3e+]",
    "n_number_0.e1": b"[0.e1]",
    "n_number_0_capital_E+": b"[0E+]",
    "n_number_0e": b"[0e]",
    "n_number_1_000": b"[1 000.0]",
    "n_number_1eE2": b"[1eE2]",
    "n_number_2.e3": b"[2.e3]",
    "n_number_9.e+": b"[9.e+]",
    "n_number_Inf": b"[Inf]",
    "n_number_NaN": b"[NaN]",
    "n_number_U+FF11_fullwidth_digit_one": b"[\xef\xbc\x91]",
    "n_number_expression": b"[1+2]",
    "n_number_hex_1_digit": b"[0x1]",
    "n_number_infinity": b"[Infinity]",
    "n_number_invalid+-": b"[0e+-1]",
    "n_number_minus_infinity": b"[-Infinity]",
    "n_number_minus_space_1": b"[- 1]",
    "n_number_neg_int_starting_with_zero": b"[-012]",
    "n_number_neg_with_garbage_at_end": b"[-1x]",
    "n_number_real_garbage_after_e": b"[1ea]",
    "n_number_real_without_fractional_part": b"[1.]",
    "n_number_starting_with_dot": b"[.123]",
    "n_number_with_alpha": b"[1.2a-3]",
    "n_number_with_leading_zero": b"[012]",
    "n_object_bad_value": b'["x", truth]',
    "n_object_bracket_key": b'{[: "x"}\n',
    "n_object_comma_instead_of_colon": b'{"x", null}',
    "n_object_double_colon": b'{"x"::"b"}',
    "n_object_garbage_at_end": b'{"a":"a" 123}',
    "n_object_key_with_single_quotes": b"{key: 'value'}",
    "n_object_missing_colon": b'{"a" b}',
    "n_object_missing_key": b'{:"b"}',
    "n_object_missing_value": b'{"a":',
    "n_object_no-colon": b'{"a"',
    "n_object_non_string_key": b"{1:1}",
    "n_object_repeated_null_null": b"{null:null,null:null}",
    "n_object_single_quote": b"{'a':0}",
    "n_object_trailing_comma": b'{"id":0,}',
    "n_object_trailing_comment": b'{"a":"b"}/**/',
    "n_object_two_commas_in_a_row": b'{"a":"b",,"c":"d"}',
    "n_object_unquoted_key": b'{a: "b"}',
    "n_object_unterminated-value": b'{"a":"a',
    "n_single_space": b" ",
    "n_string_1_surrogate_then_escape": b'["\\uD800\\"]',
    "n_string_1_surrogate_then_escape_u1x": b'["\\uD800\\u1x"]',
    "n_string_accentuated_char_no_quotes": b"[\xc3\xa9]",
    "n_string_backslash_00": b'["\\\x00"]',
    "n_string_escape_x": b'["\\x00"]',
    "n_string_escaped_backslash_bad": b'["\\\\\\"]',
    "n_string_escaped_ctrl_char_tab": b'["\\\t"]',
    "n_string_escaped_emoji": b'["\\\xf0\x9f\x8c\x80"]',
    "n_string_incomplete_escape": b'["\\"]',
    "n_string_incomplete_escaped_character": b'["\\u00A"]',
    "n_string_incomplete_surrogate": b'["\\uD834\\uDd"]',
    "n_string_invalid_backslash_esc": b'["\\a"]',
    "n_string_invalid_unicode_escape": b'["\\uqqqq"]',
    "n_string_leading_uescaped_thinspace": b'[\\u0020"asd"]',
    "n_string_single_doublequote": b'"',
    "n_string_single_quote": b"['single quote']",
    "n_string_unescaped_ctrl_char": b'["a\x00a"]',
    "n_string_unescaped_newline": b'["new\nline"]',
    "n_string_unescaped_tab": b'["\t"]',
    "n_string_unicode_CapitalU": b'"\\UA66D"',
    "n_string_with_trailing_garbage": b'""x',
    "n_structure_100000_opening_arrays": b"[" * 100_000,
    "n_structure_U+2060_word_joined": b"[\xe2\x81\xa0]",
    "n_structure_UTF8_BOM_no_data": b"\xef\xbb\xbf",
    "n_structure_array_trailing_garbage": b"[1]x",
    "n_structure_array_with_unclosed_string": b'["asd]',
    "n_structure_ascii-unicode-identifier": b"a\xc3\xa5",
    "n_structure_capitalized_True": b"[True]",
    "n_structure_close_unopened_array": b"1]",
    "n_structure_double_array": b"[][]",
    "n_structure_lone-open-bracket": b"[",
    "n_structure_no_data": b"",
    "n_structure_null-byte-outside-string": b"[\x00]",
    "n_structure_object_followed_by_closing_object": b"{}}",
    "n_structure_open_array_object": b'[{"":' * 50_000 + b"\n",
    "n_structure_open_object_close_array": b"{]",
    "n_structure_open_open": b'["\\{["\\{["\\{["\\{',
    "n_structure_single_star": b"*",
    "n_structure_trailing_#": b'{"a":"b"}#{}',
    "n_structure_unicode-identifier": b"\xc3\xa5",
    "n_structure_whitespace_U+2060_word_joiner": b"\xe2\x81\xa0",
    "n_structure_whitespace_formfeed": b"[\x0c]",
}


@pytest.mark.parametrize("name", RFC_FILES)
def test_the_files_of_rfc_8785_come_out_as_published(name: str) -> None:
    """CAN-04: byte for byte in strict mode; in exact mode too, but for the literal that no double holds."""
    given, expected = (text.encode() for text in RFC_FILES[name])
    assert canonicalize_json(given, mode="rfc8785") == expected
    assert reference(given, mode="rfc8785") == expected
    exact = expected.replace(b"333333333.3333333,", b"333333333.33333329,")
    assert canonicalize_json(given) == exact


@pytest.mark.parametrize(("bits", "expected"), APPENDIX_B)
def test_the_numbers_of_appendix_b_come_out_as_published(bits: str, expected: str) -> None:
    """From the double, and from the shortest literal that reads as it, in both modes."""
    value = double(int(bits, 16))
    for mode in ("exact", "rfc8785"):
        assert canonicalize(value, mode=mode).decode() == expected
        assert canonicalize_json(repr(value).encode(), mode=mode).decode() == expected
        assert reference(repr(value).encode(), mode=mode).decode() == expected


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_appendix_b_has_no_text_for_nan_and_infinity(bits: str) -> None:
    """RFC 8785 section 3.2.2.3: they must cause an error."""
    with pytest.raises(CanonicalizationError):
        canonicalize(double(int(bits, 16)), mode="rfc8785")


def through_text(value: float) -> str:
    return double_literal(repr(value))


@pytest.mark.parametrize("printer", [EXACT.floats.new, through_text])
@pytest.mark.parametrize("count", [1_000, 10_000])
def test_the_number_file_has_the_published_digest(count: int, printer: object) -> None:
    """One wrong digit in any line would change the SHA-256 that is published for it."""
    assert len(STATIC) == 168
    assert digest(count, printer) == CHECKPOINTS[count]  # type: ignore[arg-type]  # parametrized


@pytest.mark.nightly
@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test_the_long_number_file_has_the_published_digest(count: int) -> None:
    """The same for the first hundred thousand and the first million lines."""
    assert digest(count, EXACT.floats.new) == CHECKPOINTS[count]


@pytest.mark.parametrize("name", JSON_TEST_SUITE)
def test_the_verdict_on_a_text_of_json_test_suite(name: str) -> None:
    """CAN-05: what the suite accepts has the form that was typed here; what it leaves open has our verdict."""
    text, expected = JSON_TEST_SUITE[name]
    if expected is None:
        with pytest.raises(CanonicalizationError):
            canonicalize_json(text)
        with pytest.raises(Invalid):
            reference(text)
    else:
        assert canonicalize_json(text) == expected
        assert reference(text) == expected


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_json_test_suite_rejects_is_refused(name: str) -> None:
    """No text that a strict parser refuses gets a canonical form."""
    for mode in ("exact", "rfc8785"):
        with pytest.raises(CanonicalizationError):
            canonicalize_json(NOT_JSON[name], mode=mode)
    with pytest.raises(Invalid):
        reference(NOT_JSON[name])

"""The library and the slow reference agree on every text that Hypothesis can think of."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from idemcore.canonical import Canonicalizer, canonicalize, canonicalize_json
from idemcore.canonical.form import Form
from idemcore.canonical.number import Refused
from idemcore.errors import CanonicalizationError
from tests.core.canonical_reference import Invalid, canonical_forms
from tests.core.canonical_reference import canonical as reference
from tests.core.json_texts import json_text

# What the strategies below make costs up to 20 ms each, so the long run takes fewer of them, and its hundred
# thousand texts from `json_text`.
A_FEW_THOUSAND = settings(max_examples=min(5000, settings.default.max_examples))

# Pieces of JSON texts, not of values: the spelling is what is tested.
space = st.text(" \t\n\r", max_size=2)

digits = st.text("0123456789", min_size=1, max_size=8)
integer_part = st.one_of(
    st.just("0"),
    st.builds("{}{}".format, st.sampled_from("123456789"), st.text("0123456789", max_size=25)),
)
number_texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "-"]),
    integer_part,
    st.one_of(st.just(""), st.builds(".{}".format, st.one_of(digits, st.text("01", min_size=1, max_size=30)))),
    st.one_of(
        st.just(""),
        st.builds(
            "{}{}{}".format,
            st.sampled_from("eE"),
            st.sampled_from(["", "+", "-"]),
            st.one_of(
                st.integers(0, 400).map(str), st.sampled_from(["00", "0021", "999999999999", "1000000000000"])
            ),
        ),
    ),
)

look_alikes = st.sampled_from(
    ["1.0", "-0.0}", "9e-4f", ",1.50,", ':1e2,"', "NaN", "null", "{}", "[", "]", "//"]
)
characters = st.one_of(
    st.characters(codec="utf-8", exclude_characters='"\\', min_codepoint=0x20),
    st.sampled_from(["\x7f", "\x80", "é", "\u2028", "\ue000", "\ufb33", "\uffff", "\U0001f600", "\U0010ffff"]),
)
escapes = st.one_of(
    st.sampled_from(
        ['\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\\\\\\\", "\\u0000", "\\u001F"]
    ),
    st.sampled_from(
        ["\\u00e9", "\\u0061", "\\uD83D\\uDE00", "\\ud83d\\ude00", "\\ufb33", "\\u0022", "\\u005c"]
    ),
)
lone_surrogates = st.sampled_from(["\\ud800", "\\uDFFF", "\\ud83d\\ud83d", "\\ude00\\ud83d"])
plain_strings = st.lists(
    st.one_of(characters, characters, escapes, look_alikes.map(json.dumps).map(lambda s: s[1:-1])), max_size=6
)
string_texts = st.one_of(
    plain_strings.map("".join),
    st.lists(st.one_of(characters, escapes, lone_surrogates), max_size=3).map("".join),
).map(lambda content: f'"{content}"')

# Few names, so that duplicates, in two spellings too, and the exclusions below are met often.
name_texts = st.one_of(
    st.sampled_from(
        ['"a"', '"b"', '"x"', '"0"', '"\\u0061"', '"\U0001f600"', '"\ufb33"', '"\\ud83d\\ude00"', '""']
    ),
    string_texts,
)


def array_text(items: list[tuple[str, str, str]]) -> str:
    return "[" + ",".join(f"{before}{item}{after}" for before, item, after in items) + "]"


def object_text(members: list[tuple[str, str, str, str]]) -> str:
    return (
        "{"
        + ",".join(f"{before}{name}{between}:{between}{value}" for before, name, between, value in members)
        + "}"
    )


def with_unique_names(members: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    return list({json.loads(member[1]): member for member in members}.values())


def containers(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(st.tuples(space, name_texts, space, values), max_size=5)
    return st.one_of(
        st.lists(st.tuples(space, values, space), max_size=4).map(array_text),
        members.map(object_text),
        members.map(with_unique_names).map(object_text),
    )


scalar_texts = st.one_of(
    st.sampled_from(["true", "false", "null", "{}", "[]", "[ ]"]), number_texts, string_texts
)
json_texts = st.recursive(scalar_texts, containers, max_leaves=20)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    text = draw(json_texts)
    kind = draw(st.integers(0, 29))
    if kind == 0:  # near the limit of nesting
        depth = draw(st.sampled_from([1, 300, 509, 510, 511, 512, 513]))
        opener, closer = draw(st.sampled_from([("[", "]"), ('{"a":', "}"), ('[{"x":', "}]")]))
        depth = depth // 2 if len(closer) == 2 else depth
        text = opener * depth + text + closer * depth
    body = f"{draw(space)}{text}{draw(space)}".encode("utf-8", "surrogatepass")
    if kind in (1, 2):  # a byte is wrong
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.binary(max_size=2)) + body[at + draw(st.integers(0, 2)) :]
    return body


def outcome(call: Callable[..., bytes], *arguments: object) -> bytes | None:
    try:
        return call(*arguments)
    except (CanonicalizationError, Invalid):
        return None


EXCLUSIONS = (("/a", "/*/x", "/x/*/a", "/b/0", "/*/*"), ("/x",), ("/0/a/b", "/*/a"))
RULES = [
    *((Canonicalizer(exclude, fast=False), exclude, "exact") for exclude in ((), *EXCLUSIONS)),
    *((Canonicalizer(exclude, fast=True), exclude, "exact") for exclude in ((), *EXCLUSIONS)),
    *((Canonicalizer(exclude, "rfc8785"), exclude, "rfc8785") for exclude in ((), EXCLUSIONS[0])),
]
CASES = list(dict.fromkeys((exclude, mode) for _, exclude, mode in RULES))


def slowly(form: Form, body: bytes) -> bytes:
    """The way without recursion, by itself."""
    try:
        return form._json_slowly(body.decode().strip(" \t\n\r"))
    except (Refused, UnicodeError) as error:
        raise CanonicalizationError from error


def agree(body: bytes) -> None:
    """Quick, fast and slow way give what the reference gives, with and without exclusion."""
    expected = dict(zip(CASES, canonical_forms(body, CASES), strict=True))
    for rule, exclude, mode in RULES:
        assert outcome(rule.canonicalize_json, body) == expected[exclude, mode]
        if rule._fast is None:  # else it was asked already
            assert outcome(slowly, rule._form, body) == expected[exclude, mode]


@given(st.integers(0, 2**64 - 1).map(json_text))
@example(b'{"a":1,"a":2,"b":1e-5,"c":1e-5}')
@example(b'{"x":{"a":1,"a":1},"b":[]}')
@example(b"[1e" + b"0" * 5000 + b"5]")
@example(b'{"a\\\\":1,"a\\\\\\"":"\\\\"}')
def test_every_way_gives_the_form_that_the_reference_gives(body: bytes) -> None:
    """CAN-01 to CAN-05: on texts by the hundred thousand, in the long run."""
    agree(body)


@A_FEW_THOUSAND
@given(bodies())
def test_no_text_is_found_that_a_way_and_the_reference_take_otherwise(body: bytes) -> None:
    """CAN-01 to CAN-05: the same on texts that Hypothesis takes apart until the smallest that fails is left."""
    agree(body)


@A_FEW_THOUSAND
@given(
    st.one_of(
        st.binary(max_size=40), st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass"))
    )
)
def test_any_bytes_get_the_verdict_of_the_reference(body: bytes) -> None:
    """No bytes make anything but CanonicalizationError leave."""
    assert outcome(canonicalize_json, body) == outcome(reference, body)


@A_FEW_THOUSAND
@given(number_texts)
def test_equal_numbers_have_one_text_and_different_ones_two(literal: str) -> None:
    """CAN-03: the text is a function of the exact value, and one to one."""
    form = outcome(canonicalize_json, literal.encode())
    if form is not None:
        assert Decimal(form.decode()) == Decimal(literal)
        assert canonicalize_json(form) == form
        assert canonicalize(Decimal(literal)) == form


@A_FEW_THOUSAND
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_has_the_text_of_its_shortest_literal(value: float) -> None:
    """Both modes agree on floats, and the text reads back as the same double."""
    form = canonicalize(value)
    assert float(form) == value
    assert form == canonicalize(value, mode="rfc8785") == canonicalize_json(repr(value).encode())


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.text(st.sampled_from("a\U0001f600\ufb33"), max_size=2),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)


def json_of(value: Any) -> str:
    """A JSON text of a value that does not round a number."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{json_of(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_of, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


@A_FEW_THOUSAND
@given(values)
def test_a_value_and_its_json_text_have_one_form(value: object) -> None:
    """Quick walk, slow walk and the reference on the text agree for values too."""
    expected = outcome(reference, json_of(value).encode())
    assert outcome(canonicalize, value) == expected
    assert outcome(lambda: Canonicalizer()._form._writer.slowly(value).encode()) == expected


@given(values, st.randoms())
@settings(max_examples=50)
def test_the_order_of_members_never_counts(value: Any, random: Any) -> None:
    """CAN-01: shuffling the members at every depth changes nothing."""

    def shuffled(item: Any) -> Any:
        if isinstance(item, dict):
            members = [(name, shuffled(member)) for name, member in item.items()]
            random.shuffle(members)
            return dict(members)
        return [shuffled(member) for member in item] if isinstance(item, list) else item

    assert outcome(canonicalize, shuffled(value)) == outcome(canonicalize, value)

"""Tags, domains, composed requests and older rules."""

from __future__ import annotations

import copy
import hashlib
import hmac
import pickle
import re
from typing import Any

import pytest

from idemcore.canonical import (
    Canonicalizer,
    Fingerprinter,
    JsonBody,
    Rule,
    fingerprint,
    fingerprint_json,
)
from idemcore.errors import CanonicalizationError, ConfigurationError

KEY = b"0123456789abcdef"


def test_a_fingerprint_is_a_tag_and_sixty_four_hex_digits() -> None:
    """v1.<config>:<hex>; the default rule has a readable tag."""
    assert re.fullmatch(r"v1\.exact:[0-9a-f]{64}", fingerprint({}))
    assert re.fullmatch(r"v1\.rfc8785:[0-9a-f]{64}", fingerprint({}, mode="rfc8785"))
    assert re.fullmatch(r"v1\.exact-[0-9a-f]{16}:[0-9a-f]{64}", fingerprint_json(b"{}", exclude=["a"]))
    assert Canonicalizer().tag == "v1.exact"
    assert Canonicalizer(key=KEY, key_id="k1").tag == "v1.exact+k1"


def test_the_digest_is_sha256_in_a_domain_of_its_own() -> None:
    """Computed by hand: anyone can recompute a fingerprint from the canonical form."""
    assert fingerprint({"b": 1, "a": 2.50}) == (
        "v1.exact:" + hashlib.sha256(b'idemcore/v1/canonical\0{"a":2.5,"b":1}').hexdigest()
    )
    assert fingerprint_json(b"{oops") == "v1.exact:" + hashlib.sha256(b"idemcore/v1/raw\0{oops").hexdigest()
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"http", b"POST", b"/x"))
    assert Canonicalizer().fingerprint_parts("http", [b"POST", b"/x"]) == (
        "v1.exact:" + hashlib.sha256(b"idemcore/v1/parts\0" + framed).hexdigest()
    )


def test_a_raw_digest_never_equals_a_canonical_one() -> None:
    """The same bytes in the raw and in the canonical domain are two digests."""
    rule = Canonicalizer()
    assert rule.digest_json(b"{}") != rule.digest_raw(b"{}")
    assert rule.digest_json(b"{") == rule.digest_raw(b"{")


def test_a_composed_request_knows_its_json_body_by_meaning() -> None:
    """Method, path, query, media type and body: the body counts canonically, the rest byte for byte."""

    def of(body: bytes, path: bytes = b"/x") -> str:
        return Canonicalizer().fingerprint_parts(
            "http", [b"POST", path, b"", b"application/json", JsonBody(body)]
        )

    assert of(b'{"a":1,"b":2}') == of(b'{ "b":2.0, "a":1 }')
    assert of(b'{"a":1}') != of(b'{"a":2}')
    assert of(b'{"a":1}') != of(b'{"a":1}', b"/y")
    assert of(b"{oops") != of(b"{oops ")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([b"/x", b"y|z"], [b"/x|y", b"z"]),
        ([b"a", b""], [b"", b"a"]),
        ([b"a"], [b"a", b""]),
        ([], [b""]),
        ([b"a=", b"a=b", b"c="], [b"a=", b"b=c", b"b="]),
    ],
)
def test_no_text_slides_from_one_part_into_the_next(left: list[bytes], right: list[bytes]) -> None:
    """CAN-07: parts are framed by length, so no separator can be imitated."""
    rule = Canonicalizer()
    assert rule.fingerprint_parts("http", left) != rule.fingerprint_parts("http", right)


def test_domains_are_kept_apart() -> None:
    """Parts of one domain never meet parts of another, nor a value or a text."""
    rule = Canonicalizer()
    digests = {
        rule.fingerprint_parts("http", [b"{}"]),
        rule.fingerprint_parts("", [b"http", b"{}"]),
        rule.fingerprint_parts("httpx", [b"{}"]),
        rule.fingerprint({}),
        rule.fingerprint(b"{}"),
        rule.fingerprint_json(b""),
    }
    assert len(digests) == 6


def test_a_caller_may_bring_a_part_of_its_own() -> None:
    """A part is asked for its digest by the rule in force, so older rules can be answered for too."""

    class Form:
        def digest(self, rule: Rule, /) -> bytes:
            return rule.digest_raw(repr(rule.exclude).encode())

    one, other = Canonicalizer(), Canonicalizer(["a"])
    assert one.fingerprint_parts("http", [Form()])[-64:] != other.fingerprint_parts("http", [Form()])[-64:]


def fingerprinters(rule: Canonicalizer, body: bytes, value: object) -> list[Fingerprinter]:
    return [
        rule.fingerprinter(value),
        rule.fingerprinter_json(body),
        rule.fingerprinter_parts("http", [b"POST", JsonBody(body)]),
    ]


def test_older_rules_are_answered_for_and_unknown_ones_are_not() -> None:
    """CAN-09: a record from before a change of rule is compared under its own rule, or not at all."""
    body, value = b'{"a":1,"t":2}', {"a": 1, "t": 2}
    oldest = Canonicalizer()
    older = Canonicalizer(["t"], accept=[oldest])
    rule = Canonicalizer(["t", "u"], accept=[older])
    for now, before, first in zip(
        *(fingerprinters(each, body, value) for each in (rule, older, oldest)), strict=True
    ):
        assert now.current.startswith(rule.tag + ":")
        assert now.under(rule.tag) == now.current
        assert now.under(older.tag) == before.current
        assert now.under(oldest.tag) == first.current
        assert before.under(rule.tag) is None
        assert first.under("v1.exact-0000000000000000") is None
        assert first.under("v0.exact") is None
        assert first.under("") is None


def test_an_older_rule_is_computed_when_asked_for_and_once() -> None:
    """Rules that no record needs cost nothing."""
    asked: list[str] = []

    class Part:
        def digest(self, rule: Rule, /) -> bytes:
            asked.append(rule.tag)
            return b""

    older = Canonicalizer(["a"])
    rule = Canonicalizer(accept=[older])
    found = rule.fingerprinter_parts("http", [Part()])
    assert asked == [rule.tag]
    assert found.under(older.tag) == found.under(older.tag) == older.fingerprint_parts("http", [b""])
    assert asked == [rule.tag, older.tag]


def test_the_current_fingerprint_is_fixed_when_it_is_made() -> None:
    """FUN-01: user code may change its argument; the fingerprint was taken before."""
    order = {"amount": 1}
    found = Canonicalizer().fingerprinter(order)
    order.pop("amount")
    assert found.current == fingerprint({"amount": 1})


def test_a_fingerprint_does_not_depend_on_what_else_is_accepted() -> None:
    """accept= is about reading old records; new ones are written the same."""
    assert Canonicalizer(accept=[Canonicalizer(["a"])]).fingerprint(1) == Canonicalizer().fingerprint(1)


def test_a_key_makes_digests_that_nobody_can_guess() -> None:
    """SEC-03: with a key, trying all PINs does not find the stored fingerprint; the tag names the key."""
    rule = Canonicalizer(key=KEY, key_id="k1")
    expected = hmac.new(KEY, b'idemcore/v1/canonical\0{"pin":"1234"}', "sha256").hexdigest()
    assert rule.fingerprint({"pin": "1234"}) == f"v1.exact+k1:{expected}"
    assert rule.fingerprint_json(b"{oops")[-64:] != Canonicalizer().fingerprint_json(b"{oops")[-64:]
    assert KEY.decode() not in repr(rule)
    assert KEY.decode() not in str(vars(type(rule)))


def test_keys_rotate_through_accept() -> None:
    """CAN-09: records under the old key stay comparable for as long as it is accepted."""
    old, new = Canonicalizer(key=KEY, key_id="k1"), Canonicalizer(key=KEY[::-1], key_id="k2")
    rotated = Canonicalizer(key=KEY[::-1], key_id="k2", accept=[old])
    assert rotated.fingerprinter(1).under(old.tag) == old.fingerprint(1)
    assert rotated.fingerprint(1) == new.fingerprint(1)
    with pytest.raises(ConfigurationError, match="key_id"):
        Canonicalizer(key=KEY[::-1], key_id="k1", accept=[old])
    with pytest.raises(ConfigurationError, match="key_id"):
        Canonicalizer(accept=[old, Canonicalizer(key=KEY[::-1], key_id="k1")])


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "jcs"},
        {"mode": []},
        {"on_invalid": "ignore"},
        {"accept": ["v1.exact"]},
        {"accept": 5},
        {"key": KEY},
        {"key_id": "k"},
        {"key": b"short", "key_id": "k"},
        {"key": KEY.decode(), "key_id": "k"},
        {"key": KEY, "key_id": ""},
        {"key": KEY, "key_id": "a:b"},
        {"key": KEY, "key_id": "a" * 17},
        {"key": KEY, "key_id": 5},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_a_wrong_setting_is_an_error_at_once(wrong: dict[str, Any]) -> None:
    """What cannot be meant is refused when it is set, and a key is not shown in the message."""
    with pytest.raises(ConfigurationError) as caught:
        Canonicalizer(**wrong)
    assert KEY.decode() not in str(caught.value)


def test_reject_raises_where_raw_would_compare_bytes() -> None:
    """on_invalid="reject" is for those who want no body without a canonical form."""
    rule = Canonicalizer(on_invalid="reject")
    with pytest.raises(CanonicalizationError):
        rule.fingerprint_json(b"{oops")
    with pytest.raises(CanonicalizationError):
        rule.fingerprint_parts("http", [JsonBody(b"{oops")])
    assert rule.fingerprint_json(b"{}") == fingerprint_json(b"{}")


def test_a_canonicalizer_is_frozen_and_is_its_settings() -> None:
    """Two with the same settings are equal; copies and pickles give the same fingerprints."""
    rule = Canonicalizer(["a"], accept=[Canonicalizer()], key=KEY, key_id="k1")
    for name in ("tag", "exclude", "new"):
        with pytest.raises(AttributeError):
            setattr(rule, name, "x")
    with pytest.raises(AttributeError):
        del rule.tag
    again = Canonicalizer(("/a",), accept=(Canonicalizer(),), key=KEY, key_id="k1")
    for other in (again, copy.copy(rule), copy.deepcopy(rule)):
        assert other == rule
        assert hash(other) == hash(rule)
        assert other.fingerprint({"b": 1}) == rule.fingerprint({"b": 1})
    assert rule != Canonicalizer(["a"])
    assert rule != "v1.exact"


def test_a_rule_goes_to_another_process_with_all_its_settings() -> None:
    """How fast it is among them: a rule that declines msgspec does so there too."""
    rule = Canonicalizer(["a"], accept=[Canonicalizer()], on_invalid="reject", fast=False)
    other = pickle.loads(pickle.dumps(rule))  # noqa: S301 - our own
    assert other == rule
    assert other.fingerprint({"b": 1}) == rule.fingerprint({"b": 1})
    assert (other._asked_fast, other._fast) == (False, None)


def test_a_key_is_not_pickled() -> None:
    """It is shown nowhere, and so it is not written into a queue or a file either."""
    rule = Canonicalizer(key=KEY, key_id="k1")
    for keyed in (rule, Canonicalizer(["a"], accept=[rule])):
        with pytest.raises(TypeError, match="in each process"):
            pickle.dumps(keyed)

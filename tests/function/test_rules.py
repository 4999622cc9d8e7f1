"""Which rule compares a call's arguments, and what becomes of the records of the rule before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from idemcore import (
    Canonicalizer,
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    Incomparable,
    Policy,
)
from idemcore_function import idempotent, key_of, outcome

Send = Callable[..., str]


def deploy(idem: Engine, **options: Any) -> Send:
    """The function as one deploy has it."""

    @idempotent(idem, key="{order}", namespace="orders.send", **options)
    def send(order: str, amount: int, trace: str = "", **more: Any) -> str:
        return f"sent {order}"

    return send


def test_a_rule_that_changes_refuses_old_records_unless_it_accepts_the_one_before(idem: Engine) -> None:
    """CAN-09: leaving an argument out is another rule; a retry from before it is never run again."""
    deploy(idem)("o-1", 10, "t-1")
    with pytest.raises(Incomparable):
        deploy(idem, exclude={"trace"})("o-1", 10, "t-1")
    after = deploy(idem, exclude={"trace"}, accept=[Canonicalizer()])
    assert outcome(after)("o-1", 10, "t-1").replayed
    with pytest.raises(FingerprintMismatch):  # as the rule of its time has it
        after("o-1", 10, "t-2")
    with pytest.raises(FingerprintMismatch):
        after("o-1", 11, "t-1")


def test_new_records_are_made_by_the_new_rule_alone(idem: Engine) -> None:
    """CAN-09: what the older rule compared does not count for what is recorded now."""
    after = deploy(idem, exclude={"trace"}, accept=[Canonicalizer()])
    after("o-1", 10, "t-1")
    assert outcome(after)("o-1", 10, "t-2").replayed


def test_an_older_rule_may_leave_out_what_is_compared_now(idem: Engine) -> None:
    """CAN-09: a rule that became stricter still knows the retries of the looser one."""
    deploy(idem, exclude={"trace"})("o-1", 10, "t-1")
    after = deploy(idem, accept=[Canonicalizer(exclude={"trace"})])
    assert outcome(after)("o-1", 10, "t-2").replayed
    with pytest.raises(FingerprintMismatch):
        after("o-1", 11, "t-2")


def test_an_accepted_rule_with_key_and_content_makes_the_same_operation_no_other(idem: Engine) -> None:
    """Under key+content the fingerprint names the operation, so a changed rule makes a late retry another."""
    policy = Policy(identity="key+content")
    before = key_of(deploy(idem, policy=policy))("o-1", 10)
    after = deploy(idem, policy=policy, exclude={"trace"}, accept=[Canonicalizer()])
    assert before != key_of(after)("o-1", 10)


def test_another_key_or_scope_makes_every_operation_a_new_one(idem: Engine) -> None:
    """Nothing refuses it: what was done under the names before is found by nobody, and runs again."""
    ran = []

    def deployed(**options: Any) -> Callable[[str, str], None]:
        @idempotent(idem, namespace="orders.ship", **options)
        def ship(order: str, tenant: str) -> None:
            ran.append(options)

        return ship

    before = {"key": "{order}"}
    for options in (before, {"key": "{tenant}-{order}"}, {"key": "{order}", "scope": "{tenant}"}, before):
        deployed(**options)("o-1", "t-1")
    assert ran == [before, {"key": "{tenant}-{order}"}, {"key": "{order}", "scope": "{tenant}"}]


def test_a_parameter_that_is_gone_is_missed(idem: Engine) -> None:
    """Like one that is added: the retry is refused, and runs nothing."""

    def send(order: str, amount: int) -> str:
        return "sent"

    def send_less(order: str) -> str:
        return "sent"

    idempotent(idem, key="{order}", namespace="orders.send")(send)("o-1", 10)
    with pytest.raises(FingerprintMismatch):
        idempotent(idem, key="{order}", namespace="orders.send")(send_less)("o-1")


def test_a_field_that_is_added_with_a_default_counts_in_a_dataclass_and_not_in_a_model(idem: Engine) -> None:
    """A dataclass does not say which of its fields were given; a pydantic model does."""
    pydantic = pytest.importorskip("pydantic")
    lean, rich = (
        dataclasses.make_dataclass("Order", [("id", str), *more]) for more in ([], [("gift", bool, False)])
    )
    lean_model, rich_model = (
        pydantic.create_model("Order", id=(str, ...), **more) for more in ({}, {"gift": (bool, False)})
    )

    def deployed(order_type: Any) -> Callable[[Any], str]:
        @idempotent(idem, key="{order.id}", namespace="orders.pack")
        def pack(order: Any) -> str:
            return "packed"

        return pack

    deployed(lean)(lean(id="1"))
    with pytest.raises(FingerprintMismatch):
        deployed(rich)(rich(id="1"))
    deployed(lean_model)(lean_model(id="2"))
    assert outcome(deployed(rich_model))(rich_model(id="2")).replayed
    with pytest.raises(FingerprintMismatch):
        deployed(rich_model)(rich_model(id="2", gift=False))


def test_one_canonicalizer_may_be_the_whole_rule(idem: Engine) -> None:
    """Keyed fingerprints, for arguments that could be guessed from a digest; with a rule before them."""
    keyed = Canonicalizer(exclude={"trace"}, key=b"k" * 16, key_id="2024", accept=[Canonicalizer()])
    deploy(idem)("o-1", 10, "t-1")
    send = deploy(idem, canonicalizer=keyed)
    assert outcome(send)("o-1", 10, "t-1").replayed
    send("o-2", 10, "t-1")
    assert outcome(send)("o-2", 10, "t-2").replayed
    del send  # the program of that deploy has ended
    with pytest.raises(Incomparable):
        deploy(idem)("o-2", 10, "t-1")


def test_a_rule_that_is_said_twice_or_names_nothing_is_refused(idem: Engine) -> None:
    """At decoration: a misspelt pointer would compare what it was meant to leave out."""
    for wrong in ({"exclude": {"trace"}}, {"accept": [Canonicalizer()]}):
        with pytest.raises(ConfigurationError, match="whole rule"):
            deploy(idem, canonicalizer=Canonicalizer(), **wrong)
    with pytest.raises(ConfigurationError, match="/more/tracing"):
        deploy(idem, canonicalizer=Canonicalizer(exclude={"tracing"}))
    with pytest.raises(ConfigurationError, match="takes Canonicalizers"):
        deploy(idem, accept=["trace"])


def test_a_methods_object_counts_under_no_rule_where_the_key_names_it(idem: Engine) -> None:
    """FUN-03: the object's other attributes are compared by neither the old rule nor the new one."""

    def deployed(**options: Any) -> Any:
        class Account:
            def __init__(self, number: str, connection: object) -> None:
                self.number = number
                self.connection = connection

            @idempotent(idem, key="{self.number}", namespace="accounts.close", **options)
            def close(self, reason: str, at: str) -> str:
                return f"closed {self.number}"

        return Account

    deployed()("a", object()).close("asked", "10:00")
    after = deployed(exclude={"at"}, accept=[Canonicalizer()])
    assert outcome(after("a", object()).close)("asked", "10:00").replayed


def test_what_an_older_rule_says_is_read_before_the_function_can_change_it(idem: Engine) -> None:
    """FUN-01 under two rules: the records of both are found by what the arguments were at the call."""

    def deployed(**options: Any) -> Callable[[dict[str, Any]], str]:
        @idempotent(idem, key="{order[id]}", namespace="orders.place", **options)
        def place(order: dict[str, Any]) -> str:
            order["placed"] = True
            return "placed"

        return place

    deployed()({"id": "1", "at": "10:00"})
    after = deployed(exclude=["/order/at"], accept=[Canonicalizer()])
    assert outcome(after)({"id": "1", "at": "10:00"}).replayed
    after({"id": "2", "at": "10:00"})
    assert outcome(after)({"id": "2", "at": "10:05"}).replayed

"""The scenes, one function each: what clients and networks do, and what must come of it.

A scene never looks at the app's own records: what was charged is read from the network's ledger.
"""

from __future__ import annotations

from collections import Counter

from network import DECLINED, FAILS_ONCE, SLOW
from stage import Stage, reordered, same

CLIENTS = 20


def lost_answer(stage: Stage) -> None:
    """The answer is lost on its way; the client sends the same again."""
    order = stage.order("49.90")
    stage.owe(order.charge(), unprotected=2)
    first = stage.send(order, key="lost-1", fault="drop-answer")
    again = stage.send(order, key="lost-1")
    stage.must(first.lost, "the first answer was not lost")
    stage.must(again.status == 201 and again.replayed, f"the retry got {again}, not the first answer")
    stage.must("location" in again.headers, "the replay has no Location")
    stage.report(sent="€49.90, answer lost, sent again", came_back=f"{first}, then {again}")


def late_arrival(stage: Stage) -> None:
    """A request is delayed; its client gives up and sends again; the delayed one arrives last."""
    order = stage.order("15.00")
    stage.owe(order.charge(), unprotected=2)
    late = stage.send(order, key="late-1", fault="delay=0.6", timeout=0.3)
    again = stage.send_until_done(order, key="late-1")[-1]
    stage.must(late.lost, "the delayed request was answered in time")
    stage.must(again.status == 201, f"the second send got {again}, not 201")
    stage.report(sent="€15.00 delayed, sent again, both arrive", came_back=f"{late}, then {again}")


def repeated_by_proxy(stage: Stage) -> None:
    """A proxy repeats the request by itself; the client knows nothing of it."""
    order = stage.order("23.50")
    stage.owe(order.charge(), unprotected=2)
    answer = stage.send(order, key="repeat-1", fault="repeat")
    stage.must(answer.status == 201 and answer.replayed, f"the repeated request got {answer}")
    stage.report(sent="€23.50 once, the proxy sends it twice", came_back=str(answer))


def simultaneous(stage: Stage) -> None:
    """Twenty clients send the same at the same moment."""
    order = stage.order("20.00", card=SLOW)
    stage.owe(order.charge(), unprotected=CLIENTS)
    answers = stage.send_together(CLIENTS, order, key="together-1")
    firsts = Counter(str(each[0]) for each in answers)
    finals = [each[-1] for each in answers]
    alike = all(same(final, finals[0]) for final in finals)
    stage.must(alike, "the clients got different answers")
    stage.must(finals[0].status == 201, f"they got {finals[0]}, not 201")
    stage.must(sum(not final.replayed for final in finals) == 1, "more than one request ran")
    told = ", ".join(f"{count} × {answer}" for answer, count in sorted(firsts.items()))
    end = "the same 201 for all" if alike else f"{len({final.body for final in finals})} different ones"
    stage.report(sent=f"€20.00, {CLIENTS} at once under one key", came_back=f"{told}; in the end {end}")


def another_amount(stage: Stage) -> None:
    """The same key with another amount is not a retry."""
    order, other = stage.order("10.00"), stage.order("10000.00")
    stage.owe(order.charge())
    stage.must_not_charge(other.charge())
    first = stage.send(order, key="amount-1")
    refused = stage.send(other, key="amount-1")
    stage.must(first.status == 201, f"the payment got {first}, not 201")
    stage.must(
        refused.status == 422 and refused.code == "idempotency_key_reuse",
        f"the other amount got {refused}, not 422 idempotency_key_reuse",
    )
    stage.report(sent="€10.00, then €10,000.00 under its key", came_back=f"{first}, then {refused}")


def respelled(stage: Stage) -> None:
    """Members in another order and 10 for 10.0 are the same request."""
    order = stage.order("10.0")
    stage.owe(order.charge(), unprotected=2)
    first = stage.send(order, key="spelling-1")
    again = stage.send(reordered(order, "10"), key="spelling-1")
    stage.must(first.status == 201, f"the payment got {first}, not 201")
    stage.must(again.replayed and same(first, again), f"the same payment spelled differently got {again}")
    stage.report(sent="10.0, then keys re-ordered and 10", came_back=f"{first}, then {again}")


def two_tenants(stage: Stage) -> None:
    """Two tenants who happen to use one key are strangers to each other."""
    order = stage.order("30.00")
    stage.owe(order.charge("acme"))
    stage.owe(order.charge("globex"))
    acme = stage.send(order, key="order-1", tenant="acme", who="acme")
    globex = stage.send(order, key="order-1", tenant="globex", who="globex")
    for answer in (acme, globex):
        stage.must(answer.status == 201 and not answer.replayed, f"a tenant got {answer}, not 201")
    stage.must(acme.body != globex.body, "one tenant got the other's answer")
    stage.report(sent="€30.00 by two tenants, one key", came_back=f"{acme} and {globex}")


def failed_first(stage: Stage) -> None:
    """A 500 is no answer to keep: the same request runs again, another amount under its key does not."""
    order, other = stage.order("75.00", card=FAILS_ONCE), stage.order("750.00", card=FAILS_ONCE)
    stage.owe(order.charge(), asked=2)
    stage.must_not_charge(other.charge())
    failed = stage.send(order, key="failed-1")
    refused = stage.send(other, key="failed-1")
    again = stage.send(order, key="failed-1")
    stage.must(failed.status == 500, f"the first send got {failed}, not 500")
    stage.must(refused.status == 422, f"the other amount got {refused}, not 422")
    stage.must(again.status == 201 and not again.replayed, f"the retry got {again}, not 201")
    stage.report(
        sent="€75.00, then €750.00 under its key, then €75.00", came_back=f"{failed}, {refused}, {again}"
    )


def declined_first(stage: Stage) -> None:
    """A refusal did nothing, so the corrected request may use the key."""
    order, other = stage.order("64.00", card=DECLINED), stage.order("64.00")
    stage.owe(other.charge(), asked=2)
    declined = stage.send(order, key="declined-1")
    again = stage.send(other, key="declined-1")
    stage.must(declined.status == 402, f"the first card got {declined}, not 402")
    stage.must(again.status == 201 and not again.replayed, f"the second card got {again}, not 201")
    stage.report(sent="€64.00, then by another card under its key", came_back=f"{declined}, then {again}")


EVERYDAY = {
    "lost answer": lost_answer,
    "late arrival": late_arrival,
    "repeated by a proxy": repeated_by_proxy,
    "simultaneous sends": simultaneous,
    "another amount": another_amount,
    "spelled differently": respelled,
    "two tenants": two_tenants,
    "a 500 first": failed_first,
    "declined first": declined_first,
}

"""Views that write orders through Flask-SQLAlchemy, in one transaction with the record; orders are counted."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import abort
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Column, Integer, String, Table
from werkzeug.test import TestResponse

from idemcore import LeaseLost, current_attempt
from idemcore.events import MarkRolledBack
from idemcore.http import final_answers
from tests.adapters.flask_bench import FlaskBench, code_of, replayed
from tests.conditions import until


class Shop(FlaskBench):
    """An app with a database, and with views that go one way each."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.file = folder / "shop.db"
        url = f"sqlite:///{self.file}"
        super().__init__(store=url, **options)
        self.idem.create_schema()
        self.db = SQLAlchemy()
        self.app.config["SQLALCHEMY_DATABASE_URI"] = url
        self.db.init_app(self.app)
        self.orders = Table(
            "orders", self.db.metadata, Column("id", Integer, primary_key=True), Column("of", String(20))
        )
        with self.app.app_context():
            self.db.create_all()
        self.start()

    def view(self, act: Callable[[], Any]) -> None:
        """A protected view that buys, joins, and then acts."""

        def order() -> Any:
            self.ran()
            self.buy()
            current_attempt().join(self.db.session)
            return act()

        self.app.add_url_rule("/", view_func=self.idempotency.required(order), methods=["POST"])

    def buy(self) -> None:
        self.db.session.execute(self.orders.insert().values(of="tea"))

    def close(self) -> None:
        self.idem.close()
        with self.app.app_context():
            self.db.engine.dispose()

    def bought(self) -> int:
        with self.app.app_context():
            return len(self.db.session.execute(self.orders.select()).all())


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.close()


def test_a_view_that_commits_is_replayed(shop: Shop) -> None:
    """The ordinary way, with db.session."""

    def commit() -> str:
        shop.db.session.commit()
        return "bought"

    shop.view(commit)
    first, again = shop.twice()
    assert (first.text, again.text, replayed(again)) == ("bought", "bought", True)
    assert (shop.runs, shop.bought()) == (1, 1)


def test_a_view_that_fails_after_its_commit_is_never_run_again(shop: Shop) -> None:
    """OUT-02: a 500 that would free the key under rerun does not, once the order is there."""

    def commit_and_fail() -> str:
        shop.db.session.commit()
        raise ZeroDivisionError

    shop.view(commit_and_fail)
    first, again = shop.twice()
    assert (first.status_code, code_of(again)) == (500, "response_not_replayable")
    assert (shop.runs, shop.bought()) == (1, 1)


def test_a_client_is_told_to_wait_only_while_the_run_may_still_answer(shop: Shop) -> None:
    """OUT-02, HTT-07: 409 with Retry-After while its lease stands, then that no answer will come."""
    begun: list[TestResponse] = []

    def commit_and_ask() -> str:
        shop.db.session.commit()
        begun.append(elsewhere.submit(shop.post).result())
        with closing(sqlite3.connect(shop.file)) as database, database:
            database.execute("UPDATE idempotency_records SET lease_until = 0")
        begun.append(elsewhere.submit(shop.post).result())
        return "bought"

    shop.view(commit_and_ask)
    with ThreadPoolExecutor(1) as elsewhere:  # in the run's own thread its claim would cover them
        assert shop.post().status_code == 200
    waiting, too_late = begun
    assert (code_of(waiting), waiting.get_json(force=True)["retry"]) == (
        "request_in_progress",
        "same_key_later",
    )
    assert int(waiting.headers["Retry-After"]) >= 1
    told = too_late.get_json(force=True)
    assert (told["code"], told["retry"]) == ("response_not_replayable", "never")
    assert "later" not in told["detail"]
    assert too_late.headers.get("Retry-After") is None
    assert (shop.runs, shop.bought()) == (1, 1)


def test_a_view_that_rolls_back_is_run_again(shop: Shop) -> None:
    """A 500 after a rollback: nothing was bought, and the retry runs."""

    def roll_back() -> tuple[str, int]:
        shop.db.session.rollback()
        return "sold out", 503

    shop.view(roll_back)
    shop.twice()
    assert (shop.runs, shop.bought()) == (2, 0)


@pytest.mark.parametrize(("commits", "rows"), [(True, 1), (False, 0)])
def test_a_view_that_does_not_join_again_after_its_rollback_is_announced(
    shop: Shop, commits: bool, rows: int
) -> None:
    """A loop with one join before it, or a 201 after a rollback: the answer is kept, and somebody is told."""

    def try_again() -> tuple[str, int]:
        shop.db.session.rollback()
        if commits:
            shop.buy()
            shop.db.session.commit()
        return "bought", 201

    shop.view(try_again)
    _, again = shop.twice()
    assert (again.text, replayed(again), shop.bought()) == ("bought", True, rows)
    assert [type(event) for event in shop.events if event.level == logging.ERROR] == [MarkRolledBack]


def test_a_kept_refusal_after_a_rollback_is_as_it_should_be(tmp_path: Path) -> None:
    """A declined card is final and changes nothing."""
    shop = Shop(tmp_path, keep=final_answers)

    def decline() -> tuple[str, int]:
        shop.db.session.rollback()
        return "declined", 402

    shop.view(decline)
    _, again = shop.twice()
    assert (again.status_code, replayed(again)) == (402, True)
    assert [event for event in shop.events if event.level == logging.ERROR] == []
    shop.close()


def test_a_corrected_request_may_come_at_once(shop: Shop) -> None:
    """A view that aborts and leaves its rollback to the teardown: the key is free when its answer is there."""
    shop.view(lambda: abort(400) if shop.runs == 1 else "bought")
    assert shop.post().status_code == 400
    assert code_of(shop.post(json={"amount": 11})) == ""
    assert shop.runs == 2


@pytest.mark.parametrize(
    "act",
    [lambda: "bought", lambda: abort(400), lambda: 1 / 0],
    ids=["returns", "refuses", "raises"],
)
def test_a_view_that_leaves_its_transaction_open_is_run_again(shop: Shop, act: Callable[[], Any]) -> None:
    """A forgotten commit is an error and no lost order: the teardown rolls back, and then the key is free."""
    shop.view(act)
    first = shop.post()
    assert first.status_code >= 400
    assert until(lambda: shop.post().status_code != 409)
    assert shop.runs == 2
    assert shop.bought() == 0


def test_a_late_view_loses_its_order(shop: Shop) -> None:
    """LEA-03: the view is overtaken before it joins; its order goes, the winner's stays."""
    refused: list[BaseException] = []

    def order() -> str:
        if shop.ran() == 1:
            overtake(shop)
        shop.buy()
        try:
            current_attempt().join(shop.db.session)
        except LeaseLost as error:
            refused.append(error)
            raise
        shop.db.session.commit()
        return "bought"

    shop.app.add_url_rule("/", view_func=shop.idempotency.required(order), methods=["POST"])
    assert shop.post().status_code == 500
    again = shop.post()
    assert (again.text, replayed(again)) == ("bought", True)
    assert (shop.bought(), len(refused)) == (1, 1)


def overtake(shop: Shop) -> None:
    """The claim's lease is over, and the same request comes again."""
    with shop.app.app_context(), shop.db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE idempotency_records SET lease_until = 0")
    with ThreadPoolExecutor(1) as pool:  # in this thread it would count as a part of the first run
        assert pool.submit(shop.post).result().text == "bought"

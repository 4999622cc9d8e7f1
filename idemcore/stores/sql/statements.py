"""The statements, each one guarded step: built in Core, compiled once to text for a driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ClauseElement,
    ColumnElement,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    case,
    cast,
    delete,
    false,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    tuple_,
    union_all,
)

from idemcore.record import State
from idemcore.stores.base import FAILED_AFTER_COMMIT
from idemcore.stores.sql.backend import Backend, Statement
from idemcore.stores.sql.packing import packed
from idemcore.stores.sql.rows import COLUMNS, IDENTITY_COLUMNS, LISTED_COLUMNS
from idemcore.stores.sql.statement_parts import EMPTY, NO_ROWS, Parts, text_literal


@dataclass(frozen=True, slots=True)
class Statements:
    """Texts in a driver's parameter style, by what they do; binds as in `rows`."""

    reserve: Statement | None
    """Reserve or fetch in one round trip; None where there is no such statement."""

    look: Statement
    find: Statement
    insert_claim: Statement
    replace_claim: Statement | None
    """What follows `insert_claim` where that cannot replace a forgettable row itself; None where it can."""

    insert_outcome: Statement
    replace_outcome: Statement | None
    lock_takeable: Statement | None
    """What goes before `take_over` where that cannot leave a locked row alone; None where it need not."""

    take_over: Statement
    complete: Statement
    """Where the expiry written at claim is late enough: no indexed column is assigned."""

    complete_late: Statement
    """Where it is not, and has to be moved."""

    release: Statement
    hold_unknown: Statement
    delete_claim: Statement
    forget: Statement
    bury_committed: Statement
    lock_owned: Statement | None
    """What goes before `renew`, likewise."""

    renew: Statement
    lease_left: Statement | None
    """What follows `renew` where that cannot return how long the lease stands; None where it can."""

    resolve_outcome: Statement
    resolve_released: Statement
    sweep: Statement
    """Removes a batch and returns it."""

    remove_dead: str | None
    """What follows `sweep` where that only picks and locks, since no DELETE can leave a locked row alone; None
    where one can. As long as its batch, so it is no `Statement`: another text each time.
    """


def build(table: Table, backend: Backend) -> Statements:
    """The statements for one table, as text for the backend's driver."""
    b = Parts(table, backend)
    c, now = b.c, b.now

    look: Select[Any] = select(*packed(c, now)) if backend.packs else b.select(*COLUMNS)
    insert_claim = b.insert(**b.claimed())
    insert_outcome = b.insert(**b.outcome(), expires_at=now + b.retention)
    primary_key = [c[name] for name in IDENTITY_COLUMNS]

    def unlocked(*guards: ColumnElement[bool]) -> Select[Any]:
        """A row that somebody has locked is not waited for. The guard stands twice, as in the sweep below."""
        return select(*primary_key).where(b.this_row, b.known, *guards).with_for_update(skip_locked=True)

    def if_unlocked(write: Update, lock: Select[Any]) -> Update:
        if not (backend.locks_rows and backend.full_sql):
            return write
        free = lock.cte("unlocked").prefix_with("MATERIALIZED")
        return write.where(tuple_(*primary_key).in_(select(*free.c)))

    takeable = (
        c.token == bindparam("seen_token", type_=LargeBinary),
        or_(b.in_state(State.RELEASED), b.abandoned),
    )
    lock_takeable = unlocked(*takeable)
    take_over = b.update(
        *takeable,
        state=text_literal(State.CLAIMED.value),
        token=bindparam("my_token", type_=LargeBinary),
        attempt=bindparam("my_attempt", type_=Integer),
        hold=bindparam("my_hold", type_=Boolean),
        claimed_at=now,
        lease_until=now + b.lease,
        expires_at=now + b.max_hold + b.retention,
        reason=EMPTY,
    )
    completable = or_(
        and_(b.mine, b.in_state(State.CLAIMED, State.COMMITTED, State.RELEASED, State.UNKNOWN)),
        and_(
            c.fingerprint == bindparam("my_fingerprint", type_=Text),
            or_(b.in_state(State.RELEASED), and_(b.abandoned, c.hold.is_(false()))),
        ),
    )
    completed = {
        "token": bindparam("my_token", type_=LargeBinary),
        "attempt": bindparam("my_attempt", type_=Integer),
        **b.outcome(),
    }
    # SQLite writes an index again for a column that is merely assigned what it holds already.
    complete = b.update(completable, c.expires_at >= now + b.retention, **completed)
    complete_late = b.update(completable, expires_at=b.kept(), **completed)
    committed = b.in_state(State.COMMITTED)
    settled = {
        "completed_at": case((committed, now), else_=c.completed_at),
        "lease_until": now,
        "expires_at": b.kept(),
    }
    release = b.update(
        b.owned,
        state=case((committed, text_literal(State.TOMBSTONE.value)), else_=text_literal(State.RELEASED.value)),
        reason=case((committed, text_literal(FAILED_AFTER_COMMIT)), else_=EMPTY),
        hold=false(),
        **settled,
    )
    hold_unknown = b.update(
        b.owned,
        state=case((committed, text_literal(State.TOMBSTONE.value)), else_=text_literal(State.UNKNOWN.value)),
        reason=case((committed, text_literal(FAILED_AFTER_COMMIT)), else_=bindparam("new_reason", type_=Text)),
        hold=case((committed, false()), else_=true()),
        **settled,
    )
    delete_claim = delete(table).where(b.this_row, b.known, b.mine, b.in_state(State.CLAIMED))
    forget = delete(table).where(
        b.this_row,
        b.known,
        c.token == bindparam("seen_token", type_=LargeBinary),
        or_(b.not_in_state(State.CLAIMED, State.COMMITTED), b.lease_over),
    )
    bury_committed = b.update(
        b.mine,
        committed,
        state=text_literal(State.TOMBSTONE.value),
        reason=text_literal(FAILED_AFTER_COMMIT),
        hold=false(),
        completed_at=now,
        lease_until=now,
        expires_at=b.kept(),
    )
    latest = c.claimed_at + b.max_hold
    lock_owned = unlocked(b.owned)
    renew = b.update(b.owned, lease_until=case((latest < now + b.lease, latest), else_=now + b.lease))
    left = c.lease_until - now
    lease_left = select(left).where(b.this_row)
    seen = c.token == bindparam("seen_token", type_=LargeBinary)
    nobodys = bindparam("verdict_token", type_=LargeBinary)
    resolve_outcome = b.update(
        seen, or_(b.open, b.in_state(State.RELEASED)), token=nobodys, expires_at=b.kept(), **b.outcome()
    )
    resolve_released = b.update(
        seen,
        b.open,
        b.not_in_state(State.COMMITTED),
        token=nobodys,
        state=text_literal(State.RELEASED.value),
        reason=EMPTY,
        hold=false(),
        lease_until=now,
        expires_at=b.kept(),
    )

    def batch(*columns: ColumnElement[Any]) -> Select[Any]:
        return (
            select(*columns)
            .select_from(table)
            .where(c.expires_at <= backend.steady_now, b.dead)
            .order_by(c.expires_at)
            .limit(bindparam("at_most", type_=BigInteger))
            .offset(NO_ROWS)
            .with_for_update(skip_locked=True)
        )

    swept = (c.state, *primary_key)
    # PyMySQL writes a list of rows out, however many there are.
    picked = tuple_(*primary_key).bool_op("IN")(bindparam("places"))
    # Read whole, as a server would rather read a small table, it would wait for the rows that the pick skipped.
    # A hint takes the form of DELETE that names its table twice.
    remove_dead = (
        delete(table)
        .prefix_with(backend.dialect.identifier_preparer.format_table(table))
        .with_hint("FORCE INDEX (PRIMARY)")
        .where(picked, b.dead)
    )
    # Cast, for a text that was read as bytes, because it is no UTF-8, must be compared as the text it is.
    place = [cast(bindparam(f"after_{name}", type_=String), Text) for name in IDENTITY_COLUMNS]
    sizes = [backend.size(c.meta), backend.size(c.body)]
    find = (
        select(*(c[name] for name in (*IDENTITY_COLUMNS, *LISTED_COLUMNS)), *sizes, now)
        .where(
            b.after(place),
            *(
                or_(bindparam(f"only_{name}", type_=String).is_(None), c[name] == bindparam(f"only_{name}"))
                for name in ("scope", "operation", "state")
            ),
            or_(
                bindparam("only_open", type_=Boolean).is_(false()),
                b.open,
                not_(b.readable),
            ),
        )
        .order_by(*primary_key)
        .limit(bindparam("at_most", type_=BigInteger))
        .offset(NO_ROWS)
    )

    def text(statement: ClauseElement) -> Statement:
        return Statement(statement.compile(dialect=backend.dialect))

    full = backend.full_sql
    return Statements(
        reserve=text(_reserve(b)) if backend.one_trip else None,
        look=text(look.where(b.this_row)),
        find=text(find),
        insert_claim=text(insert_claim),
        replace_claim=None if full else text(b.replace(**b.claimed())),
        insert_outcome=text(insert_outcome),
        replace_outcome=None if full else text(b.replace(**b.outcome(), expires_at=now + b.retention)),
        lock_takeable=None if full else text(lock_takeable),
        take_over=text(if_unlocked(take_over, lock_takeable)),
        complete=text(complete),
        complete_late=text(complete_late),
        release=text(release),
        hold_unknown=text(hold_unknown),
        delete_claim=text(delete_claim),
        forget=text(forget),
        bury_committed=text(bury_committed),
        lock_owned=None if full else text(lock_owned),
        renew=text(if_unlocked(renew, lock_owned).returning(left) if full else renew),
        lease_left=None if full else text(lease_left),
        resolve_outcome=text(resolve_outcome),
        resolve_released=text(resolve_released),
        # The guard stands twice: whoever claimed a row since it was picked must not lose it.
        sweep=backend.sweep(delete(table).where(b.dead), primary_key, batch, swept),
        remove_dead=None if full else str(remove_dead.compile(dialect=backend.dialect)),
    )


def _reserve(b: Parts) -> ClauseElement:
    standing = b.select(*COLUMNS).where(b.this_row).cte("standing").prefix_with("MATERIALIZED")
    made = b.insert_unless(standing, **b.claimed()).returning(literal_column("1")).cte("made")
    return union_all(
        select(false().label("granted"), *standing.c),
        select(true(), *(null() for _ in standing.c)).select_from(made),
    )

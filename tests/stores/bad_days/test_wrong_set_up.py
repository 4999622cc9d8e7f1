"""The set-up is wrong: each mistake is named at the start, as one of the program's and not as an outage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from idemcore import ConfigurationError, Engine, identify
from idemcore.stores.sql import SQLAlchemyStore
from tests.stores import racers
from tests.stores.private_postgres import PrivatePostgres

DRIVERS = ["psycopg", "psycopg2"]


@pytest.fixture
def latin1(server: PrivatePostgres) -> Iterator[str]:
    """The name of a database from before UTF-8."""
    with server.connect() as connection:
        connection.execute("CREATE DATABASE old TEMPLATE template0 ENCODING 'LATIN1'")
        yield "old"
        connection.execute("DROP DATABASE old WITH (FORCE)")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_wrong_database_name_is_named(server: PrivatePostgres, driver: str) -> None:
    """No retry mends a wrong URL, so it is not reported as a server that is away."""
    url = make_url(server.url(driver=driver)).set(database="nowhere")
    store = SQLAlchemyStore(url)
    with pytest.raises(ConfigurationError, match='no database "nowhere"'):
        store.check()
    store.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_wrong_user_is_told_without_its_name(server: PrivatePostgres, driver: str) -> None:
    """The message says that it is the user, and shows no part of who it is."""
    store = SQLAlchemyStore(make_url(server.url(driver=driver)).set(username="stranger", password="secret"))
    with pytest.raises(ConfigurationError, match="does not know the URL's user") as refused:
        store.check()
    assert "stranger" not in str(refused.value)
    store.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_database_without_utf8_is_refused_at_the_start(
    server: PrivatePostgres, latin1: str, driver: str
) -> None:
    """Scopes of another alphabet, and reasons, would have no place in it."""
    idem = Engine(SQLAlchemyStore(make_url(server.url(driver=driver)).set(database=latin1)))
    with pytest.raises(ConfigurationError, match="LATIN1"):
        idem.create_schema()
    idem.store.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_text_that_the_database_lacks_is_refused_before_anything_runs(
    server: PrivatePostgres, latin1: str, driver: str
) -> None:
    """Where nobody called `check()`: an error of this library's that does not quote the text."""
    store = SQLAlchemyStore(make_url(server.url(driver=driver)).set(database=latin1))
    with pytest.raises(ConfigurationError):
        store.create_schema()  # the table is there all the same
    plain = racers.claim("k-1")
    assert store.reserve(plain) is None
    strange = plain._replace(identity=identify("東京", "charge", "k-1"))
    for verb in (lambda: store.reserve(strange), lambda: store.get(strange.identity)):
        with pytest.raises(ConfigurationError, match="encoding") as refused:
            verb()
        assert "東" not in f"{refused.value}{refused.value.__cause__}"
    store.close()

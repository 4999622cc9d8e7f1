"""docs/mariadb.md runs as it is written, on the server that the environment names."""

from __future__ import annotations

import re
from pathlib import Path

from tests.stores.mariadb_case import connect, url

PAGE = Path(__file__).parents[2] / "docs" / "mariadb.md"


def test_the_page_runs_from_top_to_bottom() -> None:
    """With the tests' server in the place of the one that it names; the table goes afterwards."""
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    block = block.replace("mysql+pymysql://shop@localhost:3306/shop", url())
    try:
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - our own page
    finally:
        names["idem"].close()  # type: ignore[attr-defined]  # an Engine
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS idempotency_records")

"""Which servers the store tests may use: named in the environment; where one is expected it must be there."""

from __future__ import annotations

import os
from typing import Final

POSTGRES_URL: Final = os.environ.get("IDEMCORE_TEST_POSTGRES_URL", "")
REDIS_URL: Final = os.environ.get("IDEMCORE_TEST_REDIS_URL", "")
MARIADB_URL: Final = os.environ.get("IDEMCORE_TEST_MARIADB_URL", "")
MYSQL_URL: Final = os.environ.get("IDEMCORE_TEST_MYSQL_URL", "")
REQUIRED: Final = os.environ.get("IDEMCORE_REQUIRE_SERVICES", "") not in ("", "0")

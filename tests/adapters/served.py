"""What gunicorn serves: the shop behind the station that the environment names, on a store of its own."""

from __future__ import annotations

import os
import tempfile

from idemcore import Engine
from tests.adapters.shop import Shop
from tests.adapters.stations import STATIONS

folder = tempfile.mkdtemp()
engine = Engine(os.environ.get("SHOP_STORE") or f"sqlite:///{folder}/idemcore.db", observers=())
engine.create_schema()
app = STATIONS[os.environ["SHOP_STATION"]](Shop(), engine)

"""docs/redis.md runs as it is written, on the server that the environment names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from redis import Redis

from idemcore.stores.redis.names import Names
from tests.stores.redis_server import private_server

PAGE = Path(__file__).parents[2] / "docs" / "redis.md"


def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """With a private server in the place of the one that it names."""
    with private_server(tmp_path) as server:
        program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
        program = program.replace("localhost:6379", f"127.0.0.1:{server.port}")
        program = program.replace('host="localhost"', f'host="127.0.0.1", port={server.port}')
        (tmp_path / "page.py").write_text(program)
        command = [sys.executable, "-W", "error", "page.py"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert ran.returncode == 0, ran.stderr
        with Redis.from_url(server.url) as client:
            assert len(list(client.scan_iter(match=Names("idemcore:").pattern))) == 1

"""Options of a wrong kind fail where they are given, with a word on what to write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from idemcore.errors import ConfigurationError
from idemcore.http import HTTPPolicy

WRONG: list[tuple[str, Any, str]] = [
    ("fail_open", "false", "True or False"),
    ("fail_open", 1, "True or False"),
    ("fail_open", None, "True or False"),
    ("keep_body", "no", "True or False"),
    ("max_request_bytes", "1000", "a number of bytes"),
    ("max_request_bytes", True, "a number of bytes"),
    ("max_response_bytes", 1e6, "a number of bytes"),
    ("max_response_bytes", -1, "a number of bytes"),
    ("wait", 5, "timedelta"),
    ("retention", "1 day", "timedelta"),
    ("lease", None, "timedelta"),
    ("max_hold", 600, "timedelta"),
    ("methods", "POST", "methods, such as"),
    ("methods", None, "methods, such as"),
    ("methods", (), "one or more methods, such as"),
    ("methods", ["POST, PUT"], "methods, such as"),
    ("methods", [""], "methods, such as"),
    ("methods", [5], "methods, such as"),
    ("exclude", "/a", "a list or a tuple of texts"),
    ("exclude", [1], "a list or a tuple of texts"),
    ("exclude", {"/a": True}, "a list or a tuple of texts"),
    ("exclude_query", b"ab", "a list or a tuple of texts"),
    ("keep_headers", None, "a list or a tuple of texts"),
    ("keep_headers", "X-Request-Id", "a list or a tuple of texts"),
    ("drop_headers", 5, "a list or a tuple of texts"),
    ("header", None, "the name of a header"),
    ("header", "no name", "the name of a header"),
    ("header", "Content-Type", "means nothing else"),
    ("header", "Authorization", "means nothing else"),
    ("replayed_header", "Content-Length", "means nothing else"),
    ("replayed_header", "transfer-encoding", "means nothing else"),
    ("replayed_header", "Set-Cookie", "means nothing else"),
    ("replayed_header", "Retry-After", "means nothing else"),
    ("replayed_header", 5, "the name of a header"),
    ("statuses", {"idempotency_key_reuse": 422.0}, "from codes to statuses"),
    ("statuses", [428], "from codes to statuses"),
    ("statuses", {"idempotency_key_missing": "428"}, "from codes to statuses"),
    ("statuses", {"idempotency_key_missing": 200}, "from codes to statuses"),
    ("statuses", {"idempotency_key_missing": True}, "from codes to statuses"),
    ("statuses", {5: 428}, "from codes to statuses"),
    ("problem_types", None, "a text, such as"),
]


@pytest.mark.parametrize(("option", "value", "says"), WRONG, ids=str)
def test_an_option_of_a_wrong_kind_is_refused(option: str, value: Any, says: str) -> None:
    """DEG-01: "false" is a text, and would have counted as yes."""
    options: Any = {option: value}
    with pytest.raises(ConfigurationError, match=f"^{option} is .*{says}"):
        HTTPPolicy.of(options)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_collections_of_every_kind_are_taken(kind: Any) -> None:
    """Whatever holds texts; methods in any case of letters, as clients never see them."""
    policy = HTTPPolicy(
        methods=kind(["post", "PUT"]),
        exclude=kind(["/a"]),
        exclude_query=kind(["b"]),
        keep_headers=kind(["X-Request-Id"]),
        drop_headers=kind(["ETag"]),
        statuses={"idempotency_key_missing": 428},
        wait=timedelta(0),
        max_response_bytes=0,
    )
    assert policy.methods == {"POST", "PUT"}

"""Keys, scopes and what makes two requests the same."""

from __future__ import annotations

from tests.adapters.http import Http
from tests.adapters.scenario import scenario

HOSTILE = [
    *("", " ", '""', '" "'),
    *("a,b", "a, b", '"a", "b"', '"a" "b"', '"a";q=1', "a;q=1"),
    *('"open', 'a"b', '"a\\n"', '"a\\'),
    *("a b", "a\tb", "\x80", "\u00c3\u00a9", "\u00f0\u009f\u0092\u00b3"),
    *("x" * 256, "x" * 5000, '"' + "x" * 256 + '"'),
]


@scenario()
def without_a_key_nothing_is_shared(http: Http) -> None:
    """KEY-06: two requests without a key both run and both get answers of their own."""
    first, second = http.post(key=None), http.post(key=None)
    assert (first.status, second.status) == (201, 201)
    assert first.body != second.body
    assert not second.replayed
    assert http.runs == 2


@scenario(required=True)
def a_required_key_is_asked_for(http: Http) -> None:
    """KEY-06, HTT-07: 400 says which header; nothing runs."""
    got = http.post(key=None)
    assert got.status == 400
    assert got.code == "idempotency_key_missing"
    assert got.problem["retry"] == "fix_request"
    assert "Idempotency-Key" in got.problem["detail"]
    assert got["Cache-Control"] == "no-store"
    assert http.runs == 0


@scenario(required=True)
def safe_methods_pass_untouched(http: Http) -> None:
    """HTT-03: GET, HEAD and OPTIONS need no key, and one that is sent means nothing."""
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"):
        for key in (None, "k"):
            got = http.send(method, "/status/200", key=key, body=b"", content_type=None)
            assert got.status == 200
            assert not got.replayed
    assert http.runs == 10


@scenario()
def hostile_keys_are_refused_before_anything_runs(http: Http) -> None:
    """KEY-07: 400 for what is empty, repeated, parametrised, too long or not visible ASCII; no prefix meets."""
    for key in HOSTILE:
        got = http.post(key=key)
        assert got.status == 400
        assert got.code == "idempotency_key_invalid"
    assert http.runs == 0


@scenario()
def a_repeated_key_header_is_refused(http: Http) -> None:
    """KEY-08: two keys name no one operation, not even twice the same."""
    got = http.post(key="k", headers=[("Idempotency-Key", "k")])
    assert got.code == "idempotency_key_invalid"
    assert http.runs == 0


@scenario()
def quoted_and_bare_are_one_key(http: Http) -> None:
    """KEY-08: the draft's quoted string and the bare value name the same operation; quotes do not count."""
    assert http.post(key='"order-1"').status == 201
    assert http.post(key="order-1").replayed
    assert http.post(key='  "order-1" ').replayed
    assert http.post(key='"a\\"b\\\\c"').status == 201
    assert http.post(key='"a\\"b\\\\c"').replayed
    assert http.post(key='"' + "x" * 255 + '"').status == 201
    assert http.post(key="x" * 255).replayed


@scenario()
def two_users_with_one_key_share_nothing(http: Http) -> None:
    """KEY-01, SEC-04: a key is its user's own; nobody sees or burns another's."""
    mallory = http.post(user="mallory", body=b'{"junk":1}')
    alice = http.post(user="alice")
    assert not alice.replayed
    assert alice.body != mallory.body
    assert http.post(user="alice").body == alice.body
    assert http.runs == 2


@scenario()
def nobody_is_refused(http: Http) -> None:
    """Without a scope nothing is shared: 400, and nothing runs."""
    got = http.post(user=None)
    assert got.status == 400
    assert got.code == "idempotency_scope_missing"
    assert http.runs == 0


@scenario()
def another_body_under_a_key_is_refused(http: Http) -> None:
    """KEY-05: 422, nothing runs, the record stands and still answers its own request."""
    first = http.post(body=b'{"amount":100,"secret":"of the first"}')
    for body in (b'{"amount":9000}', b"", b"[]", b'{"amount":"100","secret":"of the first"}'):
        got = http.post(body=body)
        assert got.status == 422
        assert got.code == "idempotency_key_reuse"
        assert got.problem["retry"] == "new_key"
        assert b"first request" in got.body
        assert b"secret" not in got.body
        assert b"key-1" not in got.body
    assert http.post(body=b'{"secret":"of the first","amount":100.0}').body == first.body
    assert http.runs == 1


@scenario()
def another_route_method_or_query_is_another_request(http: Http) -> None:
    """KEY-02, KEY-03: path, method, query and media type are part of the request; never the first's answer."""
    http.post("/pay")
    assert http.post("/echo").code == "idempotency_key_reuse"
    assert http.send("PATCH", "/pay").code == "idempotency_key_reuse"
    assert http.post("/pay?dry=1").code == "idempotency_key_reuse"
    assert http.post("/pay/").code == "idempotency_key_reuse"
    assert http.post("/pay", content_type="text/plain").code == "idempotency_key_reuse"
    assert http.runs == 1


@scenario()
def a_query_in_another_order_is_the_same(http: Http) -> None:
    """KEY-04, CAN-07: names may change places, repeats of one name may not; names and values keep apart."""
    http.post("/pay?a=1&b=2")
    assert http.post("/pay?b=2&a=1").replayed
    assert http.post("/pay?b=%32&a=1").replayed
    assert http.post("/pay?a=1&b=2&c").code == "idempotency_key_reuse"
    http.post("/pay?a=1&a=2", key="k2")
    assert http.post("/pay?a=2&a=1", key="k2").code == "idempotency_key_reuse"
    http.post("/pay?a=&a=b&c=", key="k3")
    assert http.post("/pay?a=&b=c&b=", key="k3").code == "idempotency_key_reuse"


@scenario(methods=("POST", "PUT", "DELETE"))
def put_and_delete_by_choice(http: Http) -> None:
    """Other unsafe methods are guarded where they are named, and then PATCH is not."""
    for method in ("PUT", "DELETE"):
        assert http.send(method, "/pay", key=method).status == 201
        assert http.send(method, "/pay", key=method).replayed
    assert not [http.send("PATCH", "/pay", key="p") for _ in range(2)][1].replayed


@scenario(header="X-Request-Key")
def a_header_of_ones_own(http: Http) -> None:
    """The key may come in another header; the usual one then means nothing."""
    mine = [("X-Request-Key", "k")]
    http.post(key=None, headers=mine)
    assert http.post(key="other", headers=mine).replayed
    assert not [http.post(key="k") for _ in range(2)][1].replayed

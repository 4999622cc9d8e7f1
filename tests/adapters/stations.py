"""The ways in which the shop is served: each makes a WSGI application that protects it."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, Response, request

from idemcore import Engine
from idemcore_flask import Idempotency
from idemcore_wsgi import IdempotencyMiddleware
from tests.adapters.shop import Reply, Seen, Shop

METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
Station = Callable[..., Any]


def _as_it_is(app: Any) -> Any:
    return app


def plain(
    shop: Shop, engine: Engine, *, around: Any = _as_it_is, required: bool = False, **options: Any
) -> Any:
    """A bare WSGI application behind the middleware."""
    return IdempotencyMiddleware(around(plain_app(shop)), engine, scope=_who, required=required, **options)


def django(
    shop: Shop, engine: Engine, *, around: Any = _as_it_is, required: bool = False, **options: Any
) -> Any:
    """Django behind the middleware."""
    return IdempotencyMiddleware(around(django_app(shop)), engine, scope=_who, required=required, **options)


def flask_route(shop: Shop, engine: Engine, *, required: bool = False, **options: Any) -> Any:
    """A Flask view with the decorator."""
    idempotency = Idempotency()
    app = Flask("route")
    idempotency.init_app(app, engine=engine, scope=_flask_who)
    protect = idempotency.required if required else idempotency.optional
    named: dict[str, Any] = {"methods": ["POST", "PATCH"], **options}  # it answers others too, and says so
    app.add_url_rule("/<path:path>", view_func=protect(**named)(_view(shop)), methods=METHODS)
    return app


def flask_app(shop: Shop, engine: Engine, *, required: bool = False, **options: Any) -> Any:
    """A Flask app that is protected as a whole."""
    app = Flask("whole")
    protect: Any = "required" if required else "optional"
    Idempotency(app, engine=engine, scope=_flask_who, protect=protect, **options)
    app.add_url_rule("/<path:path>", view_func=_view(shop), methods=METHODS)
    return app


STATIONS: dict[str, Station] = {
    "wsgi": plain,
    "flask-route": flask_route,
    "flask-app": flask_app,
    "django": django,
}


def plain_app(shop: Shop) -> Any:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {
            name[5:].title().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        seen = Seen(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", ""), headers, body
        )
        reply = shop.answer(seen)
        if isinstance(reply.body, bytes):
            fields = reply.headers
            if not reply.status.startswith("204"):
                fields = [*fields, ("Content-Length", str(len(reply.body)))]
            start_response(reply.status, fields)
            return [reply.body]
        start_response(reply.status, reply.headers)
        return reply.body

    return app


def django_app(shop: Shop) -> Any:
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
    from django.urls import re_path

    def view(django_request: HttpRequest) -> Any:
        reply = django_request.environ["tests.shop"].answer(
            Seen(
                str(django_request.method),
                django_request.path,
                django_request.META.get("QUERY_STRING", ""),
                dict(django_request.headers),
                django_request.body,
            )
        )
        kind = HttpResponse if isinstance(reply.body, bytes) else StreamingHttpResponse
        code, _, reason = reply.status.partition(" ")
        response = kind(reply.body, status=int(code), reason=reason)
        del response["Content-Type"]
        for name, value in reply.headers:
            if name == "Set-Cookie":
                response.cookies.load(value)
            else:
                response[name] = value
        if isinstance(response, HttpResponse) and code != "204":
            response["Content-Length"] = str(len(response.content))
        return response

    if not settings.configured:
        urls = types.ModuleType("shop_urls")
        urls.__dict__["urlpatterns"] = [re_path(r"^.*$", view)]
        sys.modules["shop_urls"] = urls
        settings.configure(
            ROOT_URLCONF="shop_urls", ALLOWED_HOSTS=["*"], SECRET_KEY="not one", LOGGING_CONFIG=None
        )
        import django as django_package

        django_package.setup()
    handler = WSGIHandler()

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ["tests.shop"] = shop
        answer: Iterable[bytes] = handler(environ, start_response)
        return answer

    return app


def _view(shop: Shop) -> Callable[..., Any]:
    def view(path: str) -> Any:
        reply: Reply = shop.answer(
            Seen(
                request.method,
                request.path,
                request.query_string.decode("latin-1"),
                dict(request.headers),
                request.get_data(),
            )
        )
        response = Response(reply.body, reply.status)
        del response.headers["Content-Type"]
        for name, value in reply.headers:
            response.headers.add(name, value)
        return response

    return view


def _who(environ: dict[str, Any]) -> Any:
    return environ.get("HTTP_X_USER")


def _flask_who() -> Any:
    return request.headers.get("X-User")

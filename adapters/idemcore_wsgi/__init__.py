"""WSGI middleware for idemcore: protects any WSGI application (PEP 3333), whatever framework it is in.

app = IdempotencyMiddleware(app, Engine("sqlite:///payments.db"), scope=tenant_of)
"""

from idemcore_wsgi.middleware import IdempotencyMiddleware

__all__ = ["IdempotencyMiddleware"]

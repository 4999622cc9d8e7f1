"""Flask extension for idemcore: makes views safe to retry, route by route or for a whole app.

idempotency = Idempotency()
idempotency.init_app(app, engine=idem, scope=lambda: g.tenant_id)

@app.post("/payments")
@idempotency.required
def create_payment(): ...
"""

try:
    from idemcore_flask.extension import Idempotency
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("flask", "werkzeug"):
        raise
    raise ImportError("idemcore_flask needs Flask: pip install 'idemcore[flask]'") from error

__all__ = ["Idempotency"]

"""Records in a database, through SQLAlchemy: PostgreSQL, MariaDB, MySQL and SQLite."""

try:
    from idemcore.stores.sql.ddl import table_ddl
    from idemcore.stores.sql.store import SQLAlchemyStore
    from idemcore.stores.sql.table import DEFAULT_NAME, idempotency_table
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "sqlalchemy":
        raise
    raise ImportError("A store in a database needs SQLAlchemy: pip install 'idemcore[sql]'") from error

__all__ = ["DEFAULT_NAME", "SQLAlchemyStore", "idempotency_table", "table_ddl"]

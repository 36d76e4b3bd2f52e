"""Estimated row counts without reading the rows."""

#: As of the last ANALYZE, negative if there was none; or (SQLite, where the oldest rows are deleted first) by the first
#: and last row number.
_ROW_COUNT_QUERIES = {
    "postgresql": "SELECT reltuples FROM pg_class WHERE oid = to_regclass('{name}')",
    "mariadb": "SELECT table_rows FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name = '{name}'",
    "sqlite": "SELECT (SELECT max(rowid) FROM {name}) - (SELECT min(rowid) FROM {name}) + 1",
}


def row_count_statement(dialect: str, name: str) -> str:
    """The statement for one of our tables: it returns one number, or NULL."""
    return _ROW_COUNT_QUERIES[dialect].format(name=name)

"""Estimated row counts, without reading the rows."""

#: As of the last time that it was analysed, below 0 if it never was; or (SQLite, where the oldest rows go first) by the
#: numbers of the first and the last row.
_ROW_COUNT_QUERIES = {
    "postgresql": "SELECT reltuples FROM pg_class WHERE oid = to_regclass('{name}')",
    "mariadb": "SELECT table_rows FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name = '{name}'",
    "sqlite": "SELECT (SELECT max(rowid) FROM {name}) - (SELECT min(rowid) FROM {name}) + 1",
}


def row_count_statement(dialect: str, name: str) -> str:
    """The statement that asks for it, for a table of ours: one number, or NULL."""
    return _ROW_COUNT_QUERIES[dialect].format(name=name)

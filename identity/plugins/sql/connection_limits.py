"""The server's connection limits, compared with what the processes of this installation may open."""

from sqlalchemy import Connection, text

from identity.plugins.sql.settings import MARIADB, POSTGRESQL, SqlPluginSettings

#: Name and value of each limit; the lowest counts, NULL is none. Some connections are reserved for superusers.
_LIMITS = {
    POSTGRESQL: """
        SELECT 'max_connections', current_setting('max_connections')::int
            - current_setting('superuser_reserved_connections')::int
            - coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0)
        UNION ALL SELECT 'CONNECTION LIMIT of the role', nullif(rolconnlimit, -1)
        FROM pg_roles WHERE rolname = current_user
        UNION ALL SELECT 'CONNECTION LIMIT of the database', nullif(datconnlimit, -1)
        FROM pg_database WHERE datname = current_database()
    """,
    MARIADB: """
        SELECT 'max_connections', @@max_connections
        UNION ALL SELECT 'max_user_connections', nullif(@@max_user_connections, 0)
    """,
}


def connection_limit_problem(
    connection: Connection, settings: SqlPluginSettings, process_count: int, *, pools: int = 2
) -> str | None:
    """A message if the pools of this many processes may exceed the server's limit. Raises SQLAlchemyError."""
    found = connection.execute(text(_LIMITS[connection.dialect.name])).all()
    most, name = min((int(limit), str(name)) for name, limit in found if limit is not None)
    per_process = pools * settings.pool_size
    needed = process_count * per_process
    if needed <= most:
        return None
    return (
        f"{process_count} processes × {per_process} (identity.plugin.sql.database_connections) are up to {needed}"
        f" connections, and the server gives {most} ({name}, less what it keeps for superusers). Lower"
        " database_connections, raise the limit, or put a pooler before it. Count the processes of other machines as"
        " well."
    )

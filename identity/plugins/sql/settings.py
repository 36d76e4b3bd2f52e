"""What an operator can set: ``identity.plugin.sql.NAME`` in the ini file."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from identity.ini_values import BadSetting, setting, span

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
MARIADB = "mariadb"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to reach the database."""

    url: str = field(
        repr=False,
        metadata={
            "doc": "Where the data is: sqlite:///FILE, postgresql://USER@HOST/DATABASE or mariadb://USER@HOST/DATABASE."
        },
    )
    password_file: Path | None = setting(
        "A file that holds the database password, closed to others (mode 0600). It overrides the URL's password.",
        default=None,
    )
    pool_size: int = setting(
        "Connections that each process keeps open for reading and, with a server, as many again for writing. "
        "They are opened when needed, so there are never more than threads.",
        default=10,
        at_least=1,
    )
    max_overflow: int = setting("Connections beyond pool_size during a rush.", default=10, at_least=0)
    pool_timeout: timedelta = span("How long a request waits for a free connection.", "5s")
    connect_timeout: timedelta = span(
        "With a server: how long connecting may take; MariaDB counts whole seconds.", "3s"
    )
    statement_timeout: timedelta = span(
        "With a server: how long a statement may run; 0 for ever. PostgreSQL that is silent for two seconds longer is "
        "given up.",
        "5s",
        at_least="0",
    )
    lock_timeout: timedelta = span(
        "With a server: how long a statement waits for a lock; 0 for ever. MariaDB counts whole seconds.",
        "3s",
        at_least="0",
    )
    idle_timeout: timedelta = span(
        "With a server: how long a transaction may do nothing before the database ends it; 0 for ever. MariaDB counts "
        "whole seconds.",
        "10s",
        at_least="0",
    )
    pooler: bool = setting(
        "PostgreSQL: true if a pooler that gives each transaction any of its connections, as pgbouncer does in "
        "transaction mode, stands before the server. Nothing is prepared or set on a connection then: give the "
        "timeouts above to the role.",
        default=False,
    )
    busy_timeout: timedelta = span("SQLite: how long a writer waits for other writers.", "5s", at_least="0")
    share_commits: bool = setting(
        "SQLite: whether requests that are ready at the same time share one commit. Each is answered only after it.",
        default=True,
    )

    def __post_init__(self) -> None:
        self.database_url()

    def database_url(self) -> URL:
        """The URL, its driver named; raises BadSetting if this plugin does not speak to such a database."""
        try:
            url = make_url(self.url)
        except (ArgumentError, ValueError):
            raise BadSetting(
                "url", "must be sqlite:///FILE, postgresql://USER@HOST/DATABASE or mariadb://USER@HOST/DATABASE"
            ) from None
        if url.get_backend_name() == POSTGRESQL:
            return url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == MARIADB:
            return url.set(drivername="mariadb+pymysql")
        if url.get_backend_name() != SQLITE:
            raise BadSetting("url", "must start with sqlite:///, postgresql:// or mariadb://")
        if url.database in (None, "", ":memory:"):
            raise BadSetting("url", "must name a file: sqlite:///FILE")
        return url.set(drivername="sqlite+pysqlite")

"""The plugin's settings: ``identity.plugin.sql.NAME`` in the ini file."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from identity.api.plugins import InvalidSetting, duration, setting

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
MARIADB = "mariadb"

#: Seconds for a healthy server to report its own timeout before it is considered dead.
NETWORK_SECONDS = 2

#: Both servers' positions are read once a second: they are up to two seconds old when they are compared.
MIN_STALENESS = timedelta(seconds=3)


@dataclass(frozen=True, kw_only=True)
class SqlPluginSettings:
    """Database settings."""

    url: str = field(
        repr=False,
        metadata={
            "doc": "The database: sqlite:///FILE, postgresql://USER@HOST/DATABASE or mariadb://USER@HOST/DATABASE."
        },
    )
    password_file: Path | None = setting(
        "A file that holds the database password, closed to others (mode 0600). It overrides the URL's password.",
        default=None,
    )
    database_connections: int = setting(
        "Maximum connections per process, opened on demand: half of them for reading, half for writing, and as many as "
        "half of them to a standby. A server sees up to processes × database_connections. SQLite has one for writing.",
        default=30,
        minimum=2,
    )
    pool_timeout: timedelta = duration(
        "How long a request waits for a free connection, of this process or the server.", "5s"
    )
    connect_timeout: timedelta = duration(
        "With a server: how long connecting may take; MariaDB counts whole seconds.", "3s"
    )
    statement_timeout: timedelta = duration(
        "With a server: how long a statement may run; 0 for no limit. If the server stays silent for two seconds "
        "longer, the connection is closed.",
        "5s",
        at_least="0",
    )
    lock_timeout: timedelta = duration(
        "With a server: how long a statement waits for a lock; 0 for no limit. MariaDB counts whole seconds.",
        "3s",
        at_least="0",
    )
    idle_timeout: timedelta = duration(
        "With a server: how long a transaction may be idle before the database ends it; 0 for no limit. MariaDB counts "
        "whole seconds.",
        "10s",
        at_least="0",
    )
    pooler: bool = setting(
        "PostgreSQL: true behind a pooler that may use another connection for each transaction, such as pgbouncer in "
        "transaction mode. The service then prepares and sets nothing on connections: set the timeouts above on the "
        "database role.",
        default=False,
    )
    standby_url: str | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "PostgreSQL: a standby, or several (postgresql://USER@/DATABASE?host=ONE,TWO), from which "
            "introspection and userinfo are answered as far as standby_staleness allows. It uses the same "
            "password_file, and must not be behind a pooler."
        },
    )
    standby_staleness: timedelta = duration(
        "Maximum measured lag of a standby: for that long, introspection may still report a revoked token as active. "
        "0 without a standby_url, else at least 3s.",
        "0s",
        at_least="0",
        at_most="5m",
    )
    busy_timeout: timedelta = duration("SQLite: how long a writer waits for other writers.", "5s", at_least="0")
    share_commits: bool = setting(
        "SQLite: whether requests that are ready at the same time share one commit. Responses are sent after it.",
        default=True,
    )

    @property
    def pool_size(self) -> int:
        """Number of connections of each of the two pools."""
        return self.database_connections // 2

    def __post_init__(self) -> None:
        if "options" in self.database_url().query and self.pooler:
            raise InvalidSetting(
                "url",
                "must have no ?options= where pooler is true, as nothing is set on connections: use ALTER ROLE … SET",
            )
        if self.standby_url is not None:
            self.standby_database_url()
            if self.standby_staleness < MIN_STALENESS:
                raise InvalidSetting(
                    "standby_staleness",
                    f"must be at least {MIN_STALENESS.seconds}s: by how much the server of standby_url may be behind",
                )
        elif self.standby_staleness:
            raise InvalidSetting("standby_staleness", "needs standby_url, the server that may be behind")

    def standby_database_url(self) -> URL:
        """The standby's URL with its driver. Raises InvalidSetting if no standby is possible."""
        try:
            url = make_url(self.standby_url or "")
        except (ArgumentError, ValueError):
            url = None
        if url is None or url.get_backend_name() != POSTGRESQL:
            raise InvalidSetting("standby_url", "must be postgresql://USER@HOST/DATABASE")
        primary = self.database_url()
        if primary.get_backend_name() != POSTGRESQL:
            raise InvalidSetting("standby_url", "is offered for PostgreSQL alone, and url names another database")
        url = url.set(drivername=primary.drivername)
        if _database_location(url) == _database_location(primary):
            raise InvalidSetting("standby_url", "names what url names: leave it out, or name a standby of that server")
        return url

    def database_url(self) -> URL:
        """The URL with its driver. Raises InvalidSetting for an unsupported database."""
        try:
            url = make_url(self.url)
        except (ArgumentError, ValueError):
            raise InvalidSetting(
                "url", "must be sqlite:///FILE, postgresql://USER@HOST/DATABASE or mariadb://USER@HOST/DATABASE"
            ) from None
        if url.get_backend_name() == POSTGRESQL:
            return url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == MARIADB:
            return url.set(drivername="mariadb+pymysql")
        if url.get_backend_name() != SQLITE:
            raise InvalidSetting("url", "must start with sqlite:///, postgresql:// or mariadb://")
        if url.database in (None, "", ":memory:"):
            raise InvalidSetting("url", "must name a file: sqlite:///FILE")
        return url.set(drivername="sqlite+pysqlite")


def _database_location(url: URL) -> tuple[object, ...]:
    """Server and database of the URL, without credentials; a default port may be omitted."""
    return url.host, url.port or 5432, url.database, url.query

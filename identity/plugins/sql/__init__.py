"""Storage "sql": SQLite for one machine, PostgreSQL or MariaDB for many, through one plugin."""

from collections.abc import Iterable

from identity import hookimpl
from identity.extension_points import SystemCheck
from identity.plugins.sql.backend import SqlBackend
from identity.plugins.sql.settings import SqlPluginSettings
from identity.storage.backend import Backend

__all__ = ["SqlBackend", "SqlPlugin", "SqlPluginSettings"]

_Settings = SqlPluginSettings


class SqlPlugin:
    """Offers the backend "sql"."""

    hookspecs = 1
    Settings = SqlPluginSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._backend = SqlBackend(settings)

    @hookimpl
    def identity_storage_backends(self) -> list[Backend]:
        """Offer the SQL backend; it opens no connection before it is used."""
        return [self._backend]

    @hookimpl
    def identity_system_checks(self) -> Iterable[SystemCheck]:
        """Whether the standby can be read from, if one is set; the primary does without it."""
        # None of readiness: all nodes have the same one.
        return [
            SystemCheck("standby", self._backend.standby_problem, affects_readiness=False)
        ] * self._backend.has_standby

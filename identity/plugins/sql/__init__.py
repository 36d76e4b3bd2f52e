"""Storage "sql": SQLite for one machine, PostgreSQL or MariaDB for several."""

from collections.abc import Iterable

from identity.api.plugins import SystemCheck, hookimpl
from identity.plugins.sql.backend import SqlBackend
from identity.plugins.sql.settings import SqlPluginSettings
from identity.storage.backend import Backend

__all__ = ["SqlBackend", "SqlPlugin", "SqlPluginSettings"]

_Settings = SqlPluginSettings


class SqlPlugin:
    """Storage in SQLite, PostgreSQL or MariaDB."""

    hookspecs = 1
    Settings = SqlPluginSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._backend = SqlBackend(settings)

    @hookimpl
    def identity_storage_backends(self) -> list[Backend]:
        """The SQL backend; it opens no connection before it is used."""
        return [self._backend]

    @hookimpl
    def identity_system_checks(self) -> Iterable[SystemCheck]:
        """Check the standby, if one is set; the primary serves without it."""
        # Not part of readiness: all nodes share one standby.
        return [
            SystemCheck("standby", self._backend.standby_problem, affects_readiness=False)
        ] * self._backend.has_standby

"""Storage "sql": SQLite for one machine, PostgreSQL or MariaDB for many, through one plugin."""

from collections.abc import Iterable

from identity import hookimpl
from identity.operations import Check
from identity.plugins.sql.backend import SqlBackend
from identity.plugins.sql.settings import Settings
from identity.storage.backend import Backend

__all__ = ["Plugin", "Settings", "SqlBackend"]

_Settings = Settings


class Plugin:
    """Offers the backend "sql"."""

    hookspecs = 1
    Settings = Settings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._backend = SqlBackend(settings)

    @hookimpl
    def identity_storage_backends(self) -> list[Backend]:
        """Offer the SQL backend; it opens no connection before it is used."""
        return [self._backend]

    @hookimpl
    def identity_checks(self) -> Iterable[Check]:
        """Whether the standby can be read from, if one is set; the primary does without it."""
        # None of readiness: all nodes have the same one.
        return [Check("standby", self._backend.standby_problem, readiness=False)] * self._backend.lags

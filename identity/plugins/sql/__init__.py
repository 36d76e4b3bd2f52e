"""Storage "sql": SQLite for one machine, PostgreSQL or MariaDB for many, through one plugin."""

from identity import hookimpl
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

    @hookimpl
    def identity_storage_backends(self) -> list[Backend]:
        """Offer the SQL backend; it opens no connection before it is used."""
        return [SqlBackend(self.settings)]

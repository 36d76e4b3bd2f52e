"""SqlStorage: all stores over one connection."""

from typing import Any

from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.stores.applications import SqlApplicationStore
from identity.plugins.sql.stores.attempts import SqlAttemptStore
from identity.plugins.sql.stores.audit import SqlAuditStore
from identity.plugins.sql.stores.authorization_requests import SqlAuthorizationRequestStore
from identity.plugins.sql.stores.credentials import SqlCredentialStore
from identity.plugins.sql.stores.effects import SqlEffectStore
from identity.plugins.sql.stores.managers import SqlManagerStore
from identity.plugins.sql.stores.organizations import SqlOrganizationStore
from identity.plugins.sql.stores.outbox import SqlOutboxStore
from identity.plugins.sql.stores.project_grants import SqlProjectGrantStore
from identity.plugins.sql.stores.projects import SqlProjectStore
from identity.plugins.sql.stores.purges import SqlPurgeStore
from identity.plugins.sql.stores.records import SqlRecordStore
from identity.plugins.sql.stores.sealed import SqlSealedStore
from identity.plugins.sql.stores.sessions import SqlSessionStore
from identity.plugins.sql.stores.signing_keys import SqlSigningKeyStore
from identity.plugins.sql.stores.tokens import SqlTokenStore
from identity.plugins.sql.stores.upstream_providers import SqlUpstreamProviderStore
from identity.plugins.sql.stores.user_grants import SqlUserGrantStore
from identity.plugins.sql.stores.users import SqlUserStore
from identity.storage.backend import Storage

_STORES: dict[str, type[SqlStore]] = {
    "organizations": SqlOrganizationStore,
    "projects": SqlProjectStore,
    "project_grants": SqlProjectGrantStore,
    "user_grants": SqlUserGrantStore,
    "users": SqlUserStore,
    "credentials": SqlCredentialStore,
    "applications": SqlApplicationStore,
    "upstream_providers": SqlUpstreamProviderStore,
    "managers": SqlManagerStore,
    "sessions": SqlSessionStore,
    "authorization_requests": SqlAuthorizationRequestStore,
    "attempts": SqlAttemptStore,
    "tokens": SqlTokenStore,
    "signing_keys": SqlSigningKeyStore,
    "outbox": SqlOutboxStore,
    "audit": SqlAuditStore,
    "records": SqlRecordStore,
    "effects": SqlEffectStore,
    "purges": SqlPurgeStore,
    "sealed": SqlSealedStore,
}


class SqlStorage(Storage):
    """All stores over one connection; each is made when it is first asked for."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self.connection = connection

    def __getattr__(self, name: str) -> Any:
        if name not in _STORES:
            raise AttributeError(name)
        store = self.__dict__[name] = _STORES[name](self.connection)
        return store

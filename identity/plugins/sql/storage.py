"""SqlStorage: all stores over one connection."""

from collections.abc import Callable
from typing import TypeVar

from identity.api.plugins import cached_property
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.stores.application_requests import SqlApplicationRequestStore
from identity.plugins.sql.stores.applications import SqlApplicationStore
from identity.plugins.sql.stores.attempts import SqlAttemptStore
from identity.plugins.sql.stores.attributes import SqlAttributeMappingStore, SqlAttributeStore
from identity.plugins.sql.stores.audit import SqlAuditStore
from identity.plugins.sql.stores.authorization_requests import SqlAuthorizationRequestStore
from identity.plugins.sql.stores.credentials import SqlCredentialStore
from identity.plugins.sql.stores.deletion_impact import SqlDeletionImpactStore
from identity.plugins.sql.stores.figures import SqlFigureStore
from identity.plugins.sql.stores.groups import (
    SqlGroupGrantStore,
    SqlGroupManagerStore,
    SqlGroupMappingStore,
    SqlGroupMemberStore,
    SqlGroupStore,
)
from identity.plugins.sql.stores.managers import SqlManagerStore
from identity.plugins.sql.stores.organizations import SqlOrganizationStore
from identity.plugins.sql.stores.outbox import SqlOutboxStore
from identity.plugins.sql.stores.project_grants import SqlProjectGrantStore
from identity.plugins.sql.stores.projects import SqlProjectStore
from identity.plugins.sql.stores.purges import SqlPurgeStore
from identity.plugins.sql.stores.records import SqlRecordStore
from identity.plugins.sql.stores.sealed_values import SqlSealedValueStore
from identity.plugins.sql.stores.search import SqlSearchStore
from identity.plugins.sql.stores.sent_mails import SqlSentMailStore
from identity.plugins.sql.stores.sessions import SqlSessionStore
from identity.plugins.sql.stores.signing_keys import SqlSigningKeyStore
from identity.plugins.sql.stores.tokens import SqlTokenStore
from identity.plugins.sql.stores.upstream_providers import SqlUpstreamProviderStore
from identity.plugins.sql.stores.user_grants import SqlUserGrantStore
from identity.plugins.sql.stores.users import SqlUserStore
from identity.plugins.sql.stores.webhook_deliveries import SqlWebhookDeliveryStore
from identity.plugins.sql.stores.webhooks import SqlWebhookStore
from identity.storage.backend import Storage

Store = TypeVar("Store")


def _store(kind: Callable[[DatabaseConnection], Store]) -> cached_property[Store]:
    def make(storage: "SqlStorage") -> Store:
        return kind(storage.connection)

    return cached_property(make)


class SqlStorage(Storage):
    """All stores over one connection, each created on first use."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self.connection = connection

    organizations = _store(SqlOrganizationStore)
    projects = _store(SqlProjectStore)
    project_grants = _store(SqlProjectGrantStore)
    user_grants = _store(SqlUserGrantStore)
    groups = _store(SqlGroupStore)
    group_members = _store(SqlGroupMemberStore)
    group_grants = _store(SqlGroupGrantStore)
    group_managers = _store(SqlGroupManagerStore)
    group_mappings = _store(SqlGroupMappingStore)
    users = _store(SqlUserStore)
    attributes = _store(SqlAttributeStore)
    attribute_mappings = _store(SqlAttributeMappingStore)
    credentials = _store(SqlCredentialStore)
    applications = _store(SqlApplicationStore)
    upstream_providers = _store(SqlUpstreamProviderStore)
    webhooks = _store(SqlWebhookStore)
    webhook_deliveries = _store(SqlWebhookDeliveryStore)
    managers = _store(SqlManagerStore)
    sessions = _store(SqlSessionStore)
    authorization_requests = _store(SqlAuthorizationRequestStore)
    attempts = _store(SqlAttemptStore)
    tokens = _store(SqlTokenStore)
    signing_keys = _store(SqlSigningKeyStore)
    outbox = _store(SqlOutboxStore)
    sent_mails = _store(SqlSentMailStore)
    audit = _store(SqlAuditStore)
    records = _store(SqlRecordStore)
    figures = _store(SqlFigureStore)
    application_requests = _store(SqlApplicationRequestStore)
    deletion_impact = _store(SqlDeletionImpactStore)
    purges = _store(SqlPurgeStore)
    sealed_values = _store(SqlSealedValueStore)
    search = _store(SqlSearchStore)

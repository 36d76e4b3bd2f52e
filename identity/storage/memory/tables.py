"""Tables of frozen values: shared with the committed state until they are written to.

Foreign keys and uniqueness rules are declared beside each table; cascades follow from them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

from identity.domain.application_requests import ApplicationRequest
from identity.domain.applications import Application, ClientSecret
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition, StoredAttribute
from identity.domain.audit import AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.figures import FigureKey
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.outbox import OutboxMessage
from identity.domain.permissions import ManagerLevel
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.sent_mails import SentMail
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import PasswordHash, User
from identity.domain.webhooks import Webhook, WebhookDelivery
from identity.storage.errors import DuplicateValue, RowNotFound, StorageError

KeyT = TypeVar("KeyT")
RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class TableConstraints:
    """Constraints of each row of a table. ``foreign_keys`` maps a field to the table of the parent; ``cascades`` maps a
    further table to the key of the row it is deleted with. ``unique`` maps the field in the error to a function that
    returns the unique value, None for no value. ``primary_key_field`` is in the error if the key itself is taken."""

    foreign_keys: Mapping[str, str] = field(default_factory=dict)
    cascades: Mapping[str, Callable[[Any, Any], object]] = field(default_factory=dict)
    unique: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    primary_key_field: str = "id"


class MemoryTable(Generic[KeyT, RowT]):
    """One table in one transaction: copied on the first write, so that others keep their view."""

    def __init__(
        self, name: str, rules: TableConstraints, rows: dict[KeyT, RowT], tables: "dict[str, MemoryTable[Any, Any]]"
    ) -> None:
        self.rows = rows
        self.is_writable = True
        self.name = name
        self._rules = rules
        self._tables = tables
        self._copied = False

    def __iter__(self) -> Iterator[RowT]:
        return iter(tuple(self.rows.values()))

    def __contains__(self, key: KeyT) -> bool:
        return key in self.rows

    def find(self, key: KeyT | None) -> RowT | None:
        return None if key is None else self.rows.get(key)

    def get(self, key: KeyT) -> RowT:
        """Raises RowNotFound."""
        if key not in self.rows:
            raise RowNotFound(key)
        return self.rows[key]

    def find_many(self, keys: Collection[KeyT]) -> dict[KeyT, RowT]:
        """The rows with these keys; unknown keys are left out."""
        return {key: self.rows[key] for key in keys if key in self.rows}

    def insert(self, rows: Mapping[KeyT, RowT]) -> None:
        """Store new rows, all or none. Raises RowNotFound or DuplicateValue."""
        self._require_parents(rows)
        self._require_unique(rows)
        if any(key in self.rows for key in rows):
            raise DuplicateValue(self._rules.primary_key_field)
        self._copy_on_write().update(rows)

    def replace(self, key: KeyT, row: RowT) -> None:
        """Store the row, replacing the one with its key if any. Raises RowNotFound or DuplicateValue."""
        self._require_parents({key: row})
        self._require_unique({key: row})
        self.replace_unchecked(key, row)

    def replace_unchecked(self, key: KeyT, row: RowT) -> None:
        """Like ``replace``, for a row whose constrained fields are unchanged."""
        self._copy_on_write()[key] = row

    def delete(self, key: KeyT) -> None:
        """Delete the row with this key, and its dependent rows. Raises RowNotFound."""
        self.get(key)
        del self._copy_on_write()[key]
        for memory_table in self._tables.values():
            memory_table.delete_where(memory_table._child_filter(self.name, key))

    def delete_where(self, doomed: Callable[[KeyT, RowT], bool] | None) -> int:
        """Delete every row for which ``doomed`` is true; returns the number deleted."""
        if doomed is None:
            return 0
        keys = [key for key, row in self.rows.items() if doomed(key, row)]
        for key in keys:
            if key in self.rows:
                self.delete(key)
        return len(keys)

    def _child_filter(self, parent: str, id_: object) -> Callable[[KeyT, RowT], bool] | None:
        """A predicate for the rows that depend on that row; None if there can be none."""
        links = [name for name, table in self._rules.foreign_keys.items() if table == parent]
        goes_with = self._rules.cascades.get(parent)
        if not links and goes_with is None:
            return None
        return lambda key, row: (
            any(getattr(row, name) == id_ for name in links) or (goes_with is not None and goes_with(key, row) == id_)
        )

    def _require_parents(self, rows: Mapping[KeyT, RowT]) -> None:
        for row in rows.values():
            for name, table in self._rules.foreign_keys.items():
                parent = getattr(row, name)
                if parent is not None:
                    self._tables[table].get(parent)

    def _require_unique(self, rows: Mapping[KeyT, RowT]) -> None:
        for name, value in self._rules.unique.items():
            existing = {value(row) for key, row in self.rows.items() if key not in rows}
            for row in rows.values():
                mine = value(row)
                if mine is not None and mine in existing:
                    raise DuplicateValue(name)
                existing.add(mine)

    def _copy_on_write(self) -> dict[KeyT, RowT]:
        if not self.is_writable:
            raise StorageError("This storage was opened for reading, or its transaction is over.")
        if not self._copied:
            self.rows, self._copied = dict(self.rows), True
        return self.rows


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """The count of a key, its last time, and when it changes next."""

    number: int
    next_at: datetime
    counted_at: datetime
    user_id: str | None = None


def _table(
    *,
    key: str = "id",
    unique: Mapping[str, Callable[[Any], object]] | None = None,
    goes_with: Mapping[str, Callable[[Any, Any], object]] | None = None,
    **parents: str,
) -> Any:
    return field(metadata={"rules": TableConstraints(parents, goes_with or {}, unique or {}, key)})


def _managed_by_level(level: ManagerLevel) -> Callable[[Any, Manager | GroupManager], str | None]:
    return lambda _, manager: manager.resource.id if manager.resource.level is level else None


@dataclass(frozen=True, slots=True)
class MemoryTables:
    """All tables in one transaction."""

    instance: MemoryTable[str, Instance] = _table(key="instance")
    organizations: MemoryTable[str, Organization] = _table(unique={"primary_domain": attrgetter("primary_domain")})
    domains: MemoryTable[tuple[str, str], OrganizationDomain] = _table(
        key="domain",
        unique={"domain": lambda domain: domain.name if domain.is_effective else None},
        goes_with={"organizations": lambda _, domain: None if domain.is_effective else domain.organization_id},
    )
    projects: MemoryTable[str, Project] = _table(organization_id="organizations")
    project_roles: MemoryTable[tuple[str, str], ProjectRole] = _table(key="key", project_id="projects")
    project_grants: MemoryTable[str, ProjectGrant] = _table(
        project_id="projects",
        organization_id="organizations",
        unique={"organization_id": attrgetter("project_id", "organization_id")},
    )
    users: MemoryTable[str, User] = _table(
        organization_id="organizations",
        unique={"user_name": lambda user: (user.organization_id, name_key(user.user_name))},
    )
    attribute_definitions: MemoryTable[str, AttributeDefinition] = _table(
        organization_id="organizations", unique={"key": attrgetter("organization_id", "key")}
    )
    attribute_values: MemoryTable[tuple[str, str], StoredAttribute] = _table(
        user_id="users", definition_id="attribute_definitions"
    )
    user_grants: MemoryTable[str, UserGrant] = _table(
        user_id="users",
        organization_id="organizations",
        project_id="projects",
        project_grant_id="project_grants",
        unique={"user_id": attrgetter("user_id", "project_id", "project_grant_id")},
    )
    groups: MemoryTable[str, Group] = _table(
        organization_id="organizations",
        unique={"name": lambda group: (group.organization_id, name_key(group.name))},
    )
    group_members: MemoryTable[str, GroupMember] = _table(
        group_id="groups",
        user_id="users",
        mapping_id="group_mappings",
        unique={"user_id": attrgetter("group_id", "user_id")},
    )
    group_grants: MemoryTable[str, GroupGrant] = _table(
        group_id="groups",
        project_id="projects",
        project_grant_id="project_grants",
        unique={"project_id": attrgetter("group_id", "project_id")},
    )
    group_managers: MemoryTable[str, GroupManager] = _table(
        group_id="groups",
        unique={"resource_id": attrgetter("group_id", "resource")},
        goes_with={
            "projects": _managed_by_level(ManagerLevel.PROJECT),
            "project_grants": _managed_by_level(ManagerLevel.PROJECT_GRANT),
        },
    )
    group_mappings: MemoryTable[str, GroupMapping] = _table(group_id="groups", provider_id="upstream_providers")
    attribute_mappings: MemoryTable[str, AttributeMapping] = _table(
        provider_id="upstream_providers",
        attribute_id="attribute_definitions",
        unique={"attribute_id": attrgetter("provider_id", "directory", "attribute_id")},
    )
    passwords: MemoryTable[str, PasswordHash] = _table(user_id="users")
    service_user_keys: MemoryTable[str, ServiceUserKey] = _table(user_id="users")
    service_user_secrets: MemoryTable[str, ServiceUserSecret] = _table(user_id="users")
    personal_access_tokens: MemoryTable[str, PersonalAccessToken] = _table(user_id="users")
    applications: MemoryTable[str, Application] = _table(project_id="projects")
    federated_credentials: MemoryTable[str, FederatedCredential] = _table(
        user_id="users", application_id="applications"
    )
    client_secrets: MemoryTable[tuple[str, str], ClientSecret] = _table(
        goes_with={"applications": lambda key, _: key[0]}
    )
    upstream_providers: MemoryTable[str, UpstreamProvider] = _table(organization_id="organizations")
    webhooks: MemoryTable[str, Webhook] = _table(organization_id="organizations")
    webhook_deliveries: MemoryTable[str, WebhookDelivery] = _table(webhook_id="webhooks")
    managers: MemoryTable[str, Manager] = _table(
        user_id="users",
        unique={"user_id": attrgetter("user_id", "resource")},
        goes_with={
            "organizations": _managed_by_level(ManagerLevel.ORGANIZATION),
            "projects": _managed_by_level(ManagerLevel.PROJECT),
            "project_grants": _managed_by_level(ManagerLevel.PROJECT_GRANT),
        },
    )
    sessions: MemoryTable[str, Session] = _table(user_id="users", unique={"digest": attrgetter("digest")})
    authorization_requests: MemoryTable[str, PendingAuthorization] = _table(user_id="users")
    attempts: MemoryTable[str, AttemptCount] = _table(user_id="users")
    families: MemoryTable[str, TokenFamily] = _table(
        user_id="users", client_id="applications", provider_id="upstream_providers"
    )
    authorization_codes: MemoryTable[bytes, AuthorizationCode] = _table(key="digest", family_id="families")
    access_tokens: MemoryTable[bytes, AccessToken] = _table(
        key="digest",
        user_id="users",
        application_id="applications",
        goes_with={"client_secrets": lambda _, token: (token.application_id, token.client_secret_id)},
        key_id="service_user_keys",
        secret_id="service_user_secrets",  # noqa: S106
        personal_access_token_id="personal_access_tokens",  # noqa: S106
        federated_credential_id="federated_credentials",
        family_id="families",
    )
    refresh_tokens: MemoryTable[bytes, RefreshToken] = _table(key="digest", family_id="families")
    signing_keys: MemoryTable[str, SigningKey] = _table(unique={"generation": attrgetter("generation")})
    outgoing_messages: MemoryTable[str, OutboxMessage] = _table()
    audit_events: MemoryTable[str, AuditEvent] = _table()
    records: MemoryTable[tuple[str, str, bytes], Record] = _table(user_id="users", application_id="applications")
    figures: MemoryTable[FigureKey, int] = _table()
    sent_mails: MemoryTable[str, SentMail] = _table(user_id="users")
    application_requests: MemoryTable[str, ApplicationRequest] = _table(user_id="users", application_id="applications")

    @classmethod
    def from_state(cls, state: Mapping[str, dict[Any, Any]], *, writable: bool) -> "MemoryTables":
        tables: dict[str, MemoryTable[Any, Any]] = {}
        for item in fields(cls):
            tables[item.name] = MemoryTable(item.name, item.metadata["rules"], state.get(item.name, {}), tables)
            tables[item.name].is_writable = writable
        return cls(**tables)

    def state(self) -> dict[str, dict[Any, Any]]:
        """The contents of the tables, to be committed."""
        return {field.name: getattr(self, field.name).rows for field in fields(self)}

    def close(self) -> None:
        for item in fields(self):
            getattr(self, item.name).is_writable = False

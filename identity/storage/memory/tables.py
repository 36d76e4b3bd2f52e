"""Tables of frozen values: shared with the committed state until they are written to.

What rows refer to, and of what there is only one, stands beside each table. What goes with a row follows from it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

from identity.domain.applications import Application, ClientSecret
from identity.domain.audit import AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.outbox import OutgoingMessage
from identity.domain.permissions import Level
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import PasswordHash, User
from identity.storage.errors import Duplicate, Missing, StorageError

Key = TypeVar("Key")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for each row of a table.

    ``parents`` names, by field, the table that holds what the row belongs to; ``goes_with`` tells, by table, the key of
    what else it goes with. ``unique`` makes, by the name that is told, what no two rows have; None is no such thing.
    ``key`` is what is told where the key itself is taken.
    """

    parents: Mapping[str, str] = field(default_factory=dict)
    goes_with: Mapping[str, Callable[[Any, Any], object]] = field(default_factory=dict)
    unique: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    key: str = "id"


class Table(Generic[Key, Row]):
    """One table as one transaction sees it: copied on the first write, so that others keep what they see."""

    def __init__(self, name: str, rules: Rules, rows: dict[Key, Row], others: "dict[str, Table[Any, Any]]") -> None:
        self.rows = rows
        self.writable = True
        self.name = name
        self._rules = rules
        self._others = others
        self._copied = False

    def __iter__(self) -> Iterator[Row]:
        return iter(tuple(self.rows.values()))

    def __contains__(self, key: Key) -> bool:
        return key in self.rows

    def find(self, key: Key) -> Row | None:
        """The row with this key."""
        return self.rows.get(key)

    def get(self, key: Key) -> Row:
        """The row with this key. Raises Missing."""
        if key not in self.rows:
            raise Missing(key)
        return self.rows[key]

    def find_many(self, keys: Collection[Key]) -> dict[Key, Row]:
        """The rows with these keys; unknown keys are left out."""
        return {key: self.rows[key] for key in keys if key in self.rows}

    def insert(self, rows: Mapping[Key, Row]) -> None:
        """Store new rows, all or none. Raises Missing or Duplicate."""
        self._require_parents(rows)
        self._require_unique(rows)
        if any(key in self.rows for key in rows):
            raise Duplicate(self._rules.key)
        self._own().update(rows)

    def replace(self, key: Key, row: Row) -> None:
        """Store a row in the place of the one with its key, or where there was none. Raises Missing or Duplicate."""
        self._require_parents({key: row})
        self._require_unique({key: row})
        self.put(key, row)

    def put(self, key: Key, row: Row) -> None:
        """The same for a row that cannot break a rule: it has what the one before had."""
        self._own()[key] = row

    def delete(self, key: Key) -> None:
        """Delete the row with this key and all that goes with it. Raises Missing."""
        self.get(key)
        del self._own()[key]
        for other in self._others.values():
            other.delete_where(other._children_of(self.name, key))

    def delete_where(self, doomed: Callable[[Key, Row], bool] | None) -> int:
        """Delete every row of which ``doomed`` is true; returns how many went."""
        if doomed is None:
            return 0
        keys = [key for key, row in self.rows.items() if doomed(key, row)]
        for key in keys:
            if key in self.rows:
                self.delete(key)
        return len(keys)

    def _children_of(self, parent: str, id_: object) -> Callable[[Key, Row], bool] | None:
        """Tells which rows go with that one; None if none can."""
        links = [name for name, table in self._rules.parents.items() if table == parent]
        goes_with = self._rules.goes_with.get(parent)
        if not links and goes_with is None:
            return None
        return lambda key, row: (
            any(getattr(row, name) == id_ for name in links) or (goes_with is not None and goes_with(key, row) == id_)
        )

    def _require_parents(self, rows: Mapping[Key, Row]) -> None:
        for row in rows.values():
            for name, table in self._rules.parents.items():
                parent = getattr(row, name)
                if parent is not None:
                    self._others[table].get(parent)

    def _require_unique(self, rows: Mapping[Key, Row]) -> None:
        for name, value in self._rules.unique.items():
            taken = {value(row) for key, row in self.rows.items() if key not in rows}
            for row in rows.values():
                mine = value(row)
                if mine is not None and mine in taken:
                    raise Duplicate(name)
                taken.add(mine)

    def _own(self) -> dict[Key, Row]:
        if not self.writable:
            raise StorageError("This storage was opened for reading, or its transaction is over.")
        if not self._copied:
            self.rows, self._copied = dict(self.rows), True
        return self.rows


@dataclass(frozen=True, slots=True)
class Count:
    """How often a key was counted, the last time when, and the next moment at which something changes."""

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
    return field(metadata={"rules": Rules(parents, goes_with or {}, unique or {}, key)})


def _managed(level: Level) -> Callable[[Any, Manager], str | None]:
    return lambda _, manager: manager.resource.id if manager.resource.level is level else None


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables as one transaction sees them."""

    instance: Table[str, Instance] = _table(key="instance")
    organizations: Table[str, Organization] = _table(unique={"primary_domain": attrgetter("primary_domain")})
    domains: Table[tuple[str, str], OrganizationDomain] = _table(
        key="domain",
        unique={"domain": lambda domain: domain.name if domain.counts else None},
        goes_with={"organizations": lambda _, domain: None if domain.counts else domain.organization_id},
    )
    projects: Table[str, Project] = _table(organization_id="organizations")
    project_roles: Table[tuple[str, str], ProjectRole] = _table(key="key", project_id="projects")
    project_grants: Table[str, ProjectGrant] = _table(
        project_id="projects",
        organization_id="organizations",
        unique={"organization_id": attrgetter("project_id", "organization_id")},
    )
    users: Table[str, User] = _table(
        organization_id="organizations",
        unique={"user_name": lambda user: (user.organization_id, name_key(user.user_name))},
    )
    user_grants: Table[str, UserGrant] = _table(
        user_id="users",
        organization_id="organizations",
        project_id="projects",
        project_grant_id="project_grants",
        unique={"user_id": attrgetter("user_id", "project_id", "project_grant_id")},
    )
    passwords: Table[str, PasswordHash] = _table(user_id="users")
    service_user_keys: Table[str, ServiceUserKey] = _table(user_id="users")
    service_user_secrets: Table[str, ServiceUserSecret] = _table(user_id="users")
    personal_access_tokens: Table[str, PersonalAccessToken] = _table(user_id="users")
    applications: Table[str, Application] = _table(project_id="projects")
    client_secrets: Table[tuple[str, str], ClientSecret] = _table(goes_with={"applications": lambda key, _: key[0]})
    upstream_providers: Table[str, UpstreamProvider] = _table(organization_id="organizations")
    managers: Table[str, Manager] = _table(
        user_id="users",
        unique={"user_id": attrgetter("user_id", "resource")},
        goes_with={
            "organizations": _managed(Level.ORGANIZATION),
            "projects": _managed(Level.PROJECT),
            "project_grants": _managed(Level.PROJECT_GRANT),
        },
    )
    sessions: Table[str, Session] = _table(user_id="users", unique={"digest": attrgetter("digest")})
    authorization_requests: Table[str, PendingAuthorization] = _table(user_id="users")
    attempts: Table[str, Count] = _table(user_id="users")
    families: Table[str, TokenFamily] = _table(user_id="users", client_id="applications")
    authorization_codes: Table[bytes, AuthorizationCode] = _table(key="digest", family_id="families")
    access_tokens: Table[bytes, AccessToken] = _table(
        key="digest",
        user_id="users",
        application_id="applications",
        goes_with={"client_secrets": lambda _, token: (token.application_id, token.client_secret_id)},
        key_id="service_user_keys",
        secret_id="service_user_secrets",  # noqa: S106
        personal_access_token_id="personal_access_tokens",  # noqa: S106
        family_id="families",
    )
    refresh_tokens: Table[bytes, RefreshToken] = _table(key="digest", family_id="families")
    signing_keys: Table[str, SigningKey] = _table(unique={"generation": attrgetter("generation")})
    outgoing_messages: Table[str, OutgoingMessage] = _table()
    audit_events: Table[str, AuditEvent] = _table()
    records: Table[tuple[str, str, bytes], Record] = _table(user_id="users", application_id="applications")

    @classmethod
    def of(cls, state: Mapping[str, dict[Any, Any]], *, writable: bool) -> "Tables":
        """The tables of a committed state."""
        tables: dict[str, Table[Any, Any]] = {}
        for one in fields(cls):
            tables[one.name] = Table(one.name, one.metadata["rules"], state.get(one.name, {}), tables)
            tables[one.name].writable = writable
        return cls(**tables)

    def state(self) -> dict[str, dict[Any, Any]]:
        """What the tables hold now, to be committed."""
        return {one.name: getattr(self, one.name).rows for one in fields(self)}

    def close(self) -> None:
        """Refuse every further write."""
        for one in fields(self):
            getattr(self, one.name).writable = False

"""Tables of frozen values: shared with the committed state until they are written to."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from identity.domain.applications import Application, ClientSecret
from identity.domain.audit import AuditEvent
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.outbox import OutgoingMessage
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.users import PasswordHash, User
from identity.storage.errors import Duplicate, Missing, Stale, StorageError

Key = TypeVar("Key")
Row = TypeVar("Row")


class Versioned(Protocol):
    """A row that is updated by version."""

    @property
    def id(self) -> str:
        """The row's key."""

    @property
    def version(self) -> int:
        """Counts the changes of the row."""


VersionedRow = TypeVar("VersionedRow", bound=Versioned)


class Table(Generic[Key, Row]):
    """One table as one transaction sees it: copied on the first write, so that others keep what they see."""

    def __init__(self, rows: dict[Key, Row], *, writable: bool) -> None:
        self.rows = rows
        self.writable = writable
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

    def insert(self, key: Key, row: Row, *, named: str = "id") -> None:
        """Store a new row. Raises Duplicate, with the name of the key's field, if the key is taken."""
        if key in self.rows:
            raise Duplicate(named)
        self.put(key, row)

    def put(self, key: Key, row: Row) -> None:
        """Store a row, new or not."""
        self._own()[key] = row

    def delete(self, key: Key) -> None:
        """Delete the row with this key. Raises Missing."""
        self.get(key)
        del self._own()[key]

    def delete_where(self, doomed: Callable[[Row], bool]) -> None:
        """Delete every row of which ``doomed`` is true."""
        for key, row in tuple(self.rows.items()):
            if doomed(row):
                self.delete(key)

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


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables as one transaction sees them."""

    instance: Table[str, Instance]
    organizations: Table[str, Organization]
    domains: Table[tuple[str, str], OrganizationDomain]
    projects: Table[str, Project]
    project_roles: Table[tuple[str, str], ProjectRole]
    project_grants: Table[str, ProjectGrant]
    user_grants: Table[str, UserGrant]
    users: Table[str, User]
    passwords: Table[str, PasswordHash]
    service_user_keys: Table[str, ServiceUserKey]
    service_user_secrets: Table[str, ServiceUserSecret]
    personal_access_tokens: Table[str, PersonalAccessToken]
    applications: Table[str, Application]
    client_secrets: Table[tuple[str, str], ClientSecret]
    managers: Table[str, Manager]
    sessions: Table[str, Session]
    authorization_requests: Table[str, PendingAuthorization]
    attempts: Table[str, Count]
    authorization_codes: Table[bytes, AuthorizationCode]
    families: Table[str, TokenFamily]
    access_tokens: Table[bytes, AccessToken]
    refresh_tokens: Table[bytes, RefreshToken]
    signing_keys: Table[str, SigningKey]
    outgoing_messages: Table[str, OutgoingMessage]
    audit_events: Table[str, AuditEvent]
    records: Table[tuple[str, str, bytes], Record]

    @classmethod
    def of(cls, state: Mapping[str, dict[Any, Any]], *, writable: bool) -> "Tables":
        """The tables of a committed state."""
        return cls(*(Table(state.get(field.name, {}), writable=writable) for field in fields(cls)))

    def state(self) -> dict[str, dict[Any, Any]]:
        """What the tables hold now, to be committed."""
        return {field.name: getattr(self, field.name).rows for field in fields(self)}

    def close(self) -> None:
        """Refuse every further write."""
        for field in fields(self):
            getattr(self, field.name).writable = False


def update(table: Table[str, VersionedRow], row: VersionedRow) -> None:
    """Replace the row by its next version. Raises Missing, or Stale if another version follows the stored one."""
    if row.version != table.get(row.id).version + 1:
        raise Stale(row.id)
    table.put(row.id, row)


Credential = TypeVar("Credential", ClientSecret, ServiceUserSecret, PersonalAccessToken)


def touch(table: Table[Any, Credential], uses: Mapping[str, datetime]) -> None:
    """Move ``last_used_at`` of the rows with these ids forward, never back."""
    for key, row in tuple(table.rows.items()):
        at = uses.get(row.id)
        if at is not None and (row.last_used_at is None or row.last_used_at < at):
            table.put(key, replace(row, last_used_at=at))


Expiring = TypeVar("Expiring", ServiceUserKey, PersonalAccessToken)


def expiring(
    tables: Tables,
    rows: Iterable[Expiring],
    after: datetime,
    until: datetime,
    limit: int,
    organization_id: str | None,
) -> tuple[Expiring, ...]:
    """Up to ``limit`` rows, of one organization's users or of all, with ``after < expires_at <= until``, soonest
    first."""
    found = [
        row
        for row in rows
        if after < row.expires_at <= until and organization_id in (None, tables.users.get(row.user_id).organization_id)
    ]
    return tuple(sorted(found, key=lambda row: (row.expires_at, row.id))[:limit])


def purge(table: Table[Key, Row], limit: int, due: Callable[[Row], bool], delete: Callable[[Key], None]) -> int:
    """Delete up to ``limit`` rows that are due; returns how many went."""
    keys = [key for key, row in table.rows.items() if due(row)][:limit]
    for key in keys:
        delete(key)
    return len(keys)


def require_free(taken: Iterable[object], field: str) -> None:
    """Raise Duplicate, naming the field, if there is any row that has taken the value."""
    if any(True for _ in taken):
        raise Duplicate(field)

"""Users in SQL: people and programs share a table, since they share a name space."""

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import CompoundSelect, bindparam, delete, insert, select, union

from identity.domain.names import name_key
from identity.domain.users import Address, HumanUser, Profile, ServiceUser, Subject, TokenFormat, User
from identity.plugins.sql.rows import (
    Prepared,
    Record,
    SqlStore,
    Values,
    find_by_id,
    moment,
    seconds,
    starts_with,
    versioned,
)
from identity.plugins.sql.stores import organizations
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import users as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.users import MOST_WITH_ONE_EMAIL, UserKind, UserStore

COLUMNS = (
    table.c.id,
    table.c.organization_id,
    table.c.user_name,
    table.c.display_name,
    table.c.created_at,
    table.c.changed_at,
    table.c.description,
    table.c.access_token_type,
    table.c.profile,
    table.c.active,
    table.c.version,
)
_END = len(COLUMNS)

_SUBJECT = select(*COLUMNS, *organizations.COLUMNS).join(
    organizations_table, organizations_table.c.id == table.c.organization_id
)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
_FIND_SUBJECT = Prepared(_SUBJECT.where(table.c.id == bindparam("key")))
_FIND_BY_NAME = select(*COLUMNS).where(
    table.c.organization_id == bindparam("organization"), table.c.name_key == bindparam("name")
)
_FIND_BY_LOGIN_NAME = _SUBJECT.where(
    table.c.name_key == bindparam("name"), organizations_table.c.primary_domain == bindparam("domain")
)
# Two are enough to see that a bare name is not unique.
_FIND_BY_BARE_NAME = _SUBJECT.where(table.c.name_key == bindparam("name")).limit(2)
_FIND_BY_EMAIL = (
    _SUBJECT.where(table.c.organization_id == bindparam("organization"), table.c.email_key == bindparam("email"))
    .order_by(table.c.created_at, table.c.id)
    .limit(MOST_WITH_ONE_EMAIL)
)
# The kind is fixed: a value of the other kind finds no row.
_UPDATE = versioned(table).where(table.c.kind == bindparam("same_kind"))
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_ID = select(table.c.id).where(table.c.organization_id == bindparam("organization"), table.c.kind == bindparam("kind"))
_PAGE = select(*COLUMNS).where(table.c.organization_id == bindparam("organization"), table.c.kind == bindparam("kind"))


class SqlUserStore(SqlStore, UserStore):
    """One row each; what belongs to it goes by foreign keys."""

    def add(self, user: User) -> None:
        """Store a new user."""
        self._try(_ADD, _values(user))

    def find(self, user_id: str) -> User | None:
        """The user with this id."""
        row = self._one(_FIND, {"key": user_id})
        return None if row is None else user_of(*row)

    def find_subject(self, user_id: str) -> Subject | None:
        """The user with its organization, in one query."""
        row = self._one(_FIND_SUBJECT, {"key": user_id})
        return None if row is None else subject_of(row)

    def find_by_name(self, organization_id: str, user_name: str) -> User | None:
        """The organization's user of this name."""
        row = self._one(_FIND_BY_NAME, {"organization": organization_id, "name": name_key(user_name)})
        return None if row is None else user_of(*row)

    def find_by_login_name(self, login_name: str) -> Subject | None:
        """The user named ``user_name@primary-domain``, or by a bare user name where just one user has it."""
        name, at, domain = login_name.rpartition("@")
        if at:
            row = self._one(_FIND_BY_LOGIN_NAME, {"name": name_key(name), "domain": domain.strip().lower()})
            return None if row is None else subject_of(row)
        rows = self._all(_FIND_BY_BARE_NAME, {"name": name_key(login_name)})
        return subject_of(rows[0]) if len(rows) == 1 else None

    def find_by_email(self, organization_id: str, email: str) -> tuple[Subject, ...]:
        """The organization's people with this email address, oldest first."""
        key = name_key(email)
        # Whoever has no address, service users included, is stored with an empty one.
        rows = self._all(_FIND_BY_EMAIL, {"organization": organization_id, "email": key}) if key else ()
        return tuple(subject_of(row) for row in rows)

    def update(self, user: User) -> None:
        """Replace the stored value."""
        values = _values(user)
        self._replace(_UPDATE, {**values, "same_kind": values["kind"]})

    def remove(self, user_id: str) -> None:
        """Delete it with all that is its own."""
        self._touch_one(_REMOVE, {"key": user_id})

    def page(self, organization_id: str, kind: UserKind, request: PageRequest = FIRST_PAGE) -> Page[User]:
        """The organization's users of one kind by user name."""
        statement = _PAGE
        if request.query:
            statement = statement.where(table.c.id.in_(_starting_with(request.query)))
        whole = PageRequest(limit=request.limit, cursor=request.cursor, active=request.active)
        statement = statement.params(organization=organization_id, kind=kind.value)
        return self._page_by_name(statement, table, whole, user_of)


def _starting_with(query: str) -> CompoundSelect[Any]:
    """The ids of the organization's users of whom something known starts so: one index answers for each part."""
    key = name_key(query)
    parts = (
        starts_with(table.c.name_key, key),
        starts_with(table.c.display_key, key),
        starts_with(table.c.email_key, key),
        starts_with(table.c.id, query),
    )
    return union(*(_ID.where(part) for part in parts))


def subject_of(row: Record) -> Subject:
    """The subject in a row of user columns, then organization columns."""
    return Subject(user_of(*row[:_END]), organizations.organization_of(*row[_END:]))


def user_of(
    id_: str,
    organization_id: str,
    user_name: str,
    display_name: str,
    created_at: int,
    changed_at: int,
    description: str,
    access_token_type: str,
    profile: str | None,
    active: bool,
    version: int,
) -> User:
    """The user in a row of ``COLUMNS``."""
    if profile is not None:
        return HumanUser(
            id=id_,
            organization_id=organization_id,
            user_name=user_name,
            profile=_profile_of(profile),
            created_at=moment(created_at),
            changed_at=moment(changed_at),
            active=active,
            version=version,
        )
    return ServiceUser(
        id=id_,
        organization_id=organization_id,
        user_name=user_name,
        display_name=display_name,
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        description=description,
        access_token_type=TokenFormat(access_token_type),
        active=active,
        version=version,
    )


def _profile_of(stored: str) -> Profile:
    """The profile in its text."""
    members = json.loads(stored)
    if "address" in members:
        members["address"] = Address(**members["address"])
    return Profile(**members)


def _profile_text(profile: Profile) -> str:
    """What is known of the person as JSON, without what is unknown."""
    members = {name: value for name, value in asdict(profile).items() if value}
    if "address" in members:
        members["address"] = {name: value for name, value in members["address"].items() if value}
    return json.dumps(members, ensure_ascii=False)


def _values(user: User) -> Values:
    values: Values = {
        "id": user.id,
        "organization_id": user.organization_id,
        "user_name": user.user_name,
        "name_key": name_key(user.user_name),
        "display_name": user.display_name,
        "display_key": name_key(user.display_name),
        "created_at": seconds(user.created_at),
        "changed_at": seconds(user.changed_at),
        "active": user.active,
        "version": user.version,
    }
    if isinstance(user, HumanUser):
        return values | {
            "kind": UserKind.HUMAN.value,
            "email_key": name_key(user.profile.email),
            "description": "",
            "access_token_type": TokenFormat.OPAQUE.value,
            "profile": _profile_text(user.profile),
        }
    return values | {
        "kind": UserKind.SERVICE.value,
        "email_key": "",
        "description": user.description,
        "access_token_type": user.access_token_type.value,
        "profile": None,
    }

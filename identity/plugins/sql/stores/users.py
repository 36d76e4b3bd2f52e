"""Users in SQL: people and programs share a table, since they share a name space."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, case, delete, insert, not_, select

from identity.domain.names import login_name_key, name_key
from identity.domain.users import Address, HumanUser, Profile, ServiceUser, Subject, TokenFormat, User
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import (
    Prepared,
    Record,
    Values,
    find_by_id,
    moment,
    moment_or_none,
    move_forward,
    object_of,
    row_of,
    seconds,
    seconds_or_none,
    versioned,
)
from identity.plugins.sql.stores import organizations
from identity.plugins.sql.tables import last_sign_in
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
    table.c.last_sign_in_at,
    table.c.registered,
    table.c.named_at,
)
_END = len(COLUMNS)
_OF_PROFILE, _OF_ADDRESS = ([one.name for one in fields(kind)] for kind in (Profile, Address))
_ORDERS = {
    "user_name": table.c.name_key,
    "display_name": table.c.display_key,
    "email": table.c.email_key,
    "created_at": table.c.created_at,
    "last_sign_in_at": last_sign_in,
}

_SUBJECT = select(*COLUMNS, *organizations.COLUMNS).join(
    organizations_table, organizations_table.c.id == table.c.organization_id
)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
_FIND_SUBJECT = Prepared(_SUBJECT.where(table.c.id == bindparam("key")))
_FIND_SUBJECTS = _SUBJECT.where(table.c.id.in_(bindparam("ids", expanding=True)))
_FIND_BY_NAME = select(*COLUMNS).where(
    table.c.organization_id == bindparam("organization"), table.c.name_key == bindparam("name")
)
_FIND_BY_LOGIN_NAME = _SUBJECT.where(
    table.c.name_key == bindparam("name"), organizations_table.c.primary_domain == bindparam("domain")
)
_MADE_THERE = and_(table.c.organization_id == bindparam("first_in"), not_(table.c.registered))
_FIND_BY_BARE_NAME = (
    _SUBJECT.where(table.c.name_key == bindparam("name"), table.c.named_at.is_not(None))
    .order_by(case((_MADE_THERE, 0), else_=1), table.c.named_at, table.c.id)
    .limit(1)
)
_FIND_BY_EMAIL = (
    _SUBJECT.where(table.c.organization_id == bindparam("organization"), table.c.email_key == bindparam("email"))
    .order_by(table.c.created_at, table.c.id)
    .limit(MOST_WITH_ONE_EMAIL)
)
# The kind is fixed: a value of the other kind finds no row.
_UPDATE = versioned(table).where(table.c.kind == bindparam("same_kind"))
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_NOTE_SIGN_IN = move_forward(table.c.last_sign_in_at).where(table.c.kind == UserKind.HUMAN.value)


class SqlUserStore(PagedStore, UserStore):
    """One row each; what belongs to it goes by foreign keys."""

    def add(self, user: User) -> None:
        """Store a new user."""
        last_sign_in_at = user.last_sign_in_at if isinstance(user, HumanUser) else None
        self._try(_ADD, {**_values(user), "last_sign_in_at": seconds_or_none(last_sign_in_at)})

    def add_many(self, users: Sequence[User]) -> None:
        """Store new users, all or none."""
        self._add_all(_ADD, [_values(user) for user in users])

    def find(self, user_id: str) -> User | None:
        """The user with this id."""
        row = self._one(_FIND, {"key": user_id})
        return None if row is None else user_of(*row)

    def find_subject(self, user_id: str) -> Subject | None:
        """The user with its organization, in one query."""
        row = self._one(_FIND_SUBJECT, {"key": user_id})
        return None if row is None else subject_of(row)

    def find_many(self, ids: Collection[str]) -> Mapping[str, Subject]:
        """The users with these ids and their organizations."""
        subjects = self._many(_FIND_SUBJECTS, ids, lambda *row: subject_of(row))
        return {subject.user.id: subject for subject in subjects}

    def find_by_name(self, organization_id: str, user_name: str) -> User | None:
        """The organization's user of this name."""
        row = self._one(_FIND_BY_NAME, {"organization": organization_id, "name": name_key(user_name)})
        return None if row is None else user_of(*row)

    def find_by_login_name(self, login_name: str) -> Subject | None:
        """The user named ``user_name@primary-domain``."""
        name, domain = login_name_key(login_name)
        row = self._one(_FIND_BY_LOGIN_NAME, {"name": name, "domain": domain})
        return None if row is None else subject_of(row)

    def find_by_bare_name(self, user_name: str, *, first_in: str) -> Subject | None:
        """The person of this name that a manager made in ``first_in``, else who has had it for longest."""
        row = self._one(_FIND_BY_BARE_NAME, {"name": name_key(user_name), "first_in": first_in})
        return None if row is None else subject_of(row)

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

    def note_sign_in(self, user_id: str, at: datetime) -> None:
        """Move a person's ``last_sign_in_at`` forward."""
        self._change(_NOTE_SIGN_IN, {"row": user_id, "at": seconds(at)})

    def page(self, organization_id: str | None, kind: UserKind | None, request: PageRequest = FIRST_PAGE) -> Page[User]:
        """The organization's users of one kind, or of all and both."""
        place = () if organization_id is None else (table.c.organization_id == organization_id,)
        kinds = () if kind is None else (table.c.kind == kind.value,)
        return self._page(select(*COLUMNS).where(*place, *kinds), table, request, user_of, _ORDERS)


def expiring(
    of_users: Table,
    columns: Iterable[ColumnElement[Any]],
    after: datetime,
    until: datetime,
    limit: int,
    organization_id: str | None,
) -> Select[Any]:
    """Rows, of one organization's users or of all, with ``after < expires_at <= until``, soonest first."""
    expires_at = of_users.c.expires_at
    statement = select(*columns).where(expires_at > seconds(after), expires_at <= seconds(until))
    if organization_id is not None:
        # Not joined: planners would begin with all users of the organization, which are many more than what expires.
        owner = select(table.c.organization_id).where(table.c.id == of_users.c.user_id).scalar_subquery()
        statement = statement.where(owner == organization_id)
    return statement.order_by(expires_at, of_users.c.id).limit(limit)


def subject_of(row: Record) -> Subject:
    """The subject in a row of user columns, then organization columns."""
    return Subject(user_of(*row[:_END]), organizations.organization_of(*row[_END:]))


@row_of(*COLUMNS)
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
    last_sign_in_at: int | None,
    registered: bool,
    named_at: int | None,
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
            registered=registered,
            named_at=moment_or_none(named_at),
            last_sign_in_at=moment_or_none(last_sign_in_at),
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


@lru_cache(1024)
def _profile_of(stored: str) -> Profile:
    """The profile in its text. Raises ValueError or TypeError."""
    members = object_of(stored)
    address = Address(**members.pop("address", {}))
    profile = Profile(**members, address=address)
    for value in (profile, address):
        for member in fields(value):
            if type(getattr(value, member.name)) is not member.type:
                raise ValueError("not a profile")
    return profile


def _profile_text(profile: Profile) -> str:
    """What is known of the person as JSON, without what is unknown."""
    address = _known(profile.address, _OF_ADDRESS)
    return json.dumps(_known(profile, _OF_PROFILE) | {"address": address}, ensure_ascii=False)


def _known(thing: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(thing, name))}


def _values(user: User) -> Values:
    """What an update replaces: all but the last sign-in, which moves by itself."""
    values: Values = {
        "id": user.id,
        "organization_id": user.organization_id,
        "user_name": user.user_name,
        "name_key": name_key(user.user_name),
        "display_name": user.display_name,
        "display_key": name_key(user.display_name),
        "search_text": user.search_text,
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
            "registered": user.registered,
            "named_at": seconds_or_none(user.named_at),
        }
    return values | {
        "kind": UserKind.SERVICE.value,
        "email_key": "",
        "description": user.description,
        "access_token_type": user.access_token_type.value,
        "profile": None,
        "registered": False,
        "named_at": None,
    }

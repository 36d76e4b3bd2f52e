"""Users in SQL: people and programs share a table, since they share a name space."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, case, literal_column, not_, select, update

from identity.domain.email_addresses import domain_spellings, email_key, is_same_mailbox
from identity.domain.names import login_name_key, name_key
from identity.domain.users import PROVEN, HumanUser, PasswordHash, Subject, User
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.mapping import Mapped, Row, slices
from identity.plugins.sql.rows import move_forward, upsert
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores import organizations
from identity.plugins.sql.tables import instance, last_sign_in, passwords
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import users as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.users import MOST_WITH_ONE_EMAIL, UserKind, UserStore

ROWS = Entities[User](table)
#: What a subject is made of.
SUBJECT = (
    *ROWS.columns,
    *organizations.ROWS.columns,
    select(instance.c.rules_version)
    .where(instance.c.id == literal_column("1"))
    .scalar_subquery()
    .label("rules_version"),
)
_USER, _ORGANIZATION, _RULES = slices(ROWS, organizations.ROWS, 1)
_ORDERS = {
    "user_name": table.c.name_key,
    "display_name": table.c.display_key,
    "email": table.c.email_key,
    "created_at": table.c.created_at,
    "last_sign_in_at": last_sign_in,
}

_SUBJECT = select(*SUBJECT).join(organizations_table, organizations_table.c.id == table.c.organization_id)

_FIND_SUBJECT = CompiledStatement(_SUBJECT.where(table.c.id == bindparam("key")))
_FIND_SUBJECTS = _SUBJECT.where(table.c.id.in_(bindparam("ids", expanding=True)))
_FIND_BY_NAME = ROWS.select.where(
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
#: How many of the people are looked through whose addresses look alike.
_MOST_ALIKE = 10 * MOST_WITH_ONE_EMAIL
_FIND_BY_EMAIL = (
    _SUBJECT.where(
        table.c.organization_id == bindparam("organization"),
        table.c.email_key.in_([bindparam("in_dns"), bindparam("as_written")]),
    )
    .order_by(table.c.created_at, table.c.id)
    .limit(_MOST_ALIKE)
)
_PROVEN = table.c.email_verified_by.in_(sorted(PROVEN))
_ACTIVE = and_(table.c.active, organizations_table.c.active)
_BY_VERIFIED_EMAIL = (
    _SUBJECT.where(table.c.verified_email_key == bindparam("key"))
    .order_by(table.c.created_at, table.c.id)
    .limit(bindparam("limit"))
)
_NAMED = table.alias()


def _clash(address: ColumnElement[Any]) -> Select[Any]:
    """Somebody whose address is the login name of another, in an organization with this domain."""
    return (
        select(table.c.id)
        .join(_NAMED, and_(_NAMED.c.organization_id == table.c.organization_id, _NAMED.c.id != table.c.id))
        .where(
            table.c.organization_id == bindparam("organization"),
            table.c.email_verified_by.is_not(None),
            address == _NAMED.c.name_key.concat(bindparam("of_domain", type_=Text())),
        )
        .limit(1)
    )


_CLASHES = (_clash(table.c.email_key), _clash(table.c.verified_email_key))

_PROVEN_ELSEWHERE = (
    select(table.c.verified_email_key)
    .distinct()
    .join(organizations_table, organizations_table.c.id == table.c.organization_id)
    .where(table.c.organization_id != bindparam("organization"), _PROVEN, _ACTIVE)
    .order_by(table.c.verified_email_key)
    .limit(bindparam("limit"))
)
# The kind is fixed: a value of the other kind finds no row.
_UPDATE = ROWS.versioned.where(table.c.kind == bindparam("same_kind"))
_NOTE_SIGN_IN = move_forward(table.c.last_sign_in_at).where(table.c.kind == UserKind.HUMAN.value)

_TO_DELETE = (
    select(table.c.id)
    .where(table.c.deletion_at.is_not(None), table.c.deletion_at <= bindparam("at"))
    .order_by(table.c.deletion_at, table.c.id)
    .limit(bindparam("limit"))
)

_PASSWORDS = Mapped[PasswordHash](passwords)
_FIND_PASSWORD = _PASSWORDS.select.where(passwords.c.user_id == bindparam("user"))
_IS_STILL = (
    update(passwords)
    .where(passwords.c.user_id == bindparam("user"), passwords.c.hash == bindparam("known"))
    .values(hash=passwords.c.hash)
)
_MUST_CHANGE = _PASSWORDS.select.where(passwords.c.user_id.in_(bindparam("ids", expanding=True)))
_SET_PASSWORD = upsert(
    passwords, by=[passwords.c.user_id], replacing=(passwords.c.hash, passwords.c.changed_at, passwords.c.must_change)
)


class SqlUserStore(SqlEntityStore[User], UserStore):
    """One row each; what belongs to it goes by foreign keys."""

    rows = ROWS

    def add_many(self, users: Sequence[User]) -> None:
        self._add_all(ROWS.insert, [ROWS.values(user) for user in users])

    def find_subject(self, user_id: str) -> Subject | None:
        return self._find(subject_of, _FIND_SUBJECT, {"key": user_id})

    def find_subjects(self, ids: Collection[str]) -> Mapping[str, Subject]:
        return {subject.user.id: subject for subject in self._many(_FIND_SUBJECTS, ids, subject_of)}

    def find_by_name(self, organization_id: str, user_name: str) -> User | None:
        return self._find(ROWS.of, _FIND_BY_NAME, {"organization": organization_id, "name": name_key(user_name)})

    def find_by_login_name(self, login_name: str) -> Subject | None:
        name, domain = login_name_key(login_name)
        return self._find(subject_of, _FIND_BY_LOGIN_NAME, {"name": name, "domain": domain})

    def find_by_bare_name(self, user_name: str, *, first_in: str) -> Subject | None:
        return self._find(subject_of, _FIND_BY_BARE_NAME, {"name": name_key(user_name), "first_in": first_in})

    def find_by_email(self, organization_id: str, email: str) -> tuple[Subject, ...]:
        if email_key(email) is None:
            return ()
        # The column is coarser than the rule, so that lists can be sorted by it.
        in_dns, as_written = map(name_key, domain_spellings(email))
        values = {"organization": organization_id, "in_dns": in_dns, "as_written": as_written}
        found = map(subject_of, self._all(_FIND_BY_EMAIL, values))
        same = [
            one for one in found if isinstance(one.user, HumanUser) and is_same_mailbox(one.user.profile.email, email)
        ]
        return tuple(same[:MOST_WITH_ONE_EMAIL])

    def find_by_verified_email(
        self,
        key: str,
        *,
        organization_id: str | None = None,
        proven: bool = False,
        active: bool = False,
        limit: int = MOST_WITH_ONE_EMAIL,
    ) -> tuple[Subject, ...]:
        query, values = _BY_VERIFIED_EMAIL, {"key": key, "limit": limit}
        if organization_id is not None:
            query = query.where(table.c.organization_id == bindparam("organization"))
            values["organization"] = organization_id
        if proven:
            query = query.where(_PROVEN)
        if active:
            query = query.where(_ACTIVE)
        found = map(subject_of, self._all(query, values))
        # A release before 0011 changes the profile alone.
        return tuple(one for one in found if isinstance(one.user, HumanUser) and one.user.verified_email_key == key)

    def has_address_as_login_name(self, organization_id: str, domain: str) -> bool:
        values = {"organization": organization_id, "of_domain": f"@{domain}"}
        return any(self._all(query, values) for query in _CLASHES)

    def addresses_proven_elsewhere(self, organization_id: str, domain: str, limit: int) -> tuple[str, ...]:
        values = {"organization": organization_id, "limit": limit}
        of_domain = table.c.verified_email_key.endswith(f"@{domain}", autoescape=True)
        return tuple(row[0] for row in self._all(_PROVEN_ELSEWHERE.where(of_domain), values))

    def update(self, value: User) -> None:
        values = ROWS.values(value)
        # It moves by itself.
        del values["last_sign_in_at"]
        self._replace(_UPDATE, {**values, "same_kind": values["kind"]})

    def note_sign_in(self, user_id: str, at: datetime) -> None:
        self._change(_NOTE_SIGN_IN, {"row": user_id, "at": seconds(at)})

    def page(self, organization_id: str | None, kind: UserKind | None, request: PageRequest = FIRST_PAGE) -> Page[User]:
        place = () if organization_id is None else (table.c.organization_id == organization_id,)
        kinds = () if kind is None else (table.c.kind == kind.value,)
        return self._page(ROWS, ROWS.select.where(*place, *kinds), request, _ORDERS)

    def to_delete(self, at: datetime, limit: int) -> tuple[str, ...]:
        return tuple(row[0] for row in self._all(_TO_DELETE, {"at": seconds(at), "limit": limit}))

    def find_password(self, user_id: str) -> PasswordHash | None:
        return self._find(_PASSWORDS.of, _FIND_PASSWORD, {"user": user_id})

    def set_password(self, password: PasswordHash) -> None:
        self._try(_SET_PASSWORD, _PASSWORDS.values(password))

    def is_password_still(self, user_id: str, hash: str) -> bool:  # noqa: A002
        # The row is locked by being written as it is.
        return self._change(_IS_STILL, {"user": user_id, "known": hash}) == 1

    def must_change_password(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        return {one.user_id: one.must_change for one in self._many(_MUST_CHANGE, user_ids, _PASSWORDS.of)}


def subject_of(row: Row) -> Subject:
    """The subject in a row of ``SUBJECT``."""
    return Subject(ROWS.of(row[_USER]), organizations.ROWS.of(row[_ORGANIZATION]), *row[_RULES])


def subject_or_none(row: Row) -> Subject | None:
    """The same, where there may be none."""
    return subject_of(row) if any(row[_USER]) else None

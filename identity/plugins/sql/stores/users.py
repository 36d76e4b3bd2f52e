"""Users in SQL: people and service users share a table, since they share a namespace."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, case, func, literal_column, not_, select, update

from identity.domain.access_revocations import AccessScope
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.email_addresses import domain_spellings, email_key, is_same_mailbox
from identity.domain.names import login_name_key, name_key
from identity.domain.users import GLOBALLY_TRUSTED_VERIFIERS, Agent, HumanUser, PasswordHash, Subject, User
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.entity_store import EntityTable
from identity.plugins.sql.row_mapping import MappedTable, Row, Values, row_slices, skip_unreadable
from identity.plugins.sql.sql_store import advance_timestamp, upsert
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores import organizations
from identity.plugins.sql.tables import instance, last_sign_in, passwords, user_search_terms
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import users as table
from identity.plugins.sql.term_index import TermIndexedStore
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.users import MAX_USERS_PER_EMAIL, UserKind, UserStore

ENTITY_TABLE = EntityTable[User](table)
#: Columns of a subject.
SUBJECT_COLUMNS = (
    *ENTITY_TABLE.columns,
    *organizations.ENTITY_TABLE.columns,
    select(instance.c.rules_version)
    .where(instance.c.id == literal_column("1"))
    .scalar_subquery()
    .label("rules_version"),
)
_USER, _ORGANIZATION, _RULES = row_slices(ENTITY_TABLE, organizations.ENTITY_TABLE, 1)
_SORT_COLUMNS = {
    "user_name": table.c.name_key,
    "display_name": table.c.display_key,
    "email": table.c.email_key,
    "created_at": table.c.created_at,
    "last_sign_in_at": last_sign_in,
}

_SELECT_SUBJECT = select(*SUBJECT_COLUMNS).join(
    organizations_table, organizations_table.c.id == table.c.organization_id
)

_FIND_SUBJECT = CompiledStatement(_SELECT_SUBJECT.where(table.c.id == bindparam("key")))
_FIND_BY_NAME = ENTITY_TABLE.select.where(
    table.c.organization_id == bindparam("organization"), table.c.name_key == bindparam("name")
)
_FIND_BY_LOGIN_NAME = _SELECT_SUBJECT.where(
    table.c.name_key == bindparam("name"), organizations_table.c.primary_domain == bindparam("domain")
)
_CREATED_BY_MANAGER = and_(table.c.organization_id == bindparam("first_in"), not_(table.c.registered))
_FIND_BY_USER_NAME_ALONE = (
    _SELECT_SUBJECT.where(table.c.name_key == bindparam("name"), table.c.named_at.is_not(None))
    .order_by(case((_CREATED_BY_MANAGER, 0), else_=1), table.c.named_at, table.c.id)
    .limit(1)
)
#: Maximum number of people examined with similar addresses.
_MAX_EMAIL_CANDIDATES = 10 * MAX_USERS_PER_EMAIL
_FIND_BY_EMAIL = (
    _SELECT_SUBJECT.where(
        table.c.organization_id == bindparam("organization"),
        table.c.email_key.in_([bindparam("in_dns"), bindparam("as_written")]),
    )
    # An expression, so that SQLite does not read all people of the organization in the order of another index.
    .order_by(table.c.created_at + literal_column("0"), table.c.id)
    .limit(_MAX_EMAIL_CANDIDATES)
)
_IS_PROVEN = table.c.email_verified_by.in_(sorted(GLOBALLY_TRUSTED_VERIFIERS))
_IS_ACTIVE = and_(table.c.active, organizations_table.c.active)
_OTHER_USERS = table.alias()


def _login_name_conflict(address: ColumnElement[Any]) -> Select[Any]:
    """A person whose address is another person's login name, in an organization with this domain."""
    of_domain = bindparam("of_domain", type_=Text())
    before_domain = func.substr(address, 1, func.char_length(address) - func.char_length(of_domain))
    return (
        select(table.c.id)
        .join(
            _OTHER_USERS,
            and_(_OTHER_USERS.c.organization_id == table.c.organization_id, _OTHER_USERS.c.id != table.c.id),
        )
        .where(
            table.c.organization_id == bindparam("organization"),
            table.c.email_verified_by.is_not(None),
            # Finds the other person by an index; the rest compares the domain.
            _OTHER_USERS.c.name_key == before_domain,
            address == _OTHER_USERS.c.name_key.concat(of_domain),
        )
        .limit(1)
    )


_LOGIN_NAME_CONFLICTS = (_login_name_conflict(table.c.email_key), _login_name_conflict(table.c.verified_email_key))

# The kind cannot change: a value of the other kind matches no row.
_UPDATE = ENTITY_TABLE.versioned.where(table.c.kind == bindparam("same_kind"))
_UPDATE_LAST_SIGN_IN = advance_timestamp(table.c.last_sign_in_at).where(table.c.kind == UserKind.HUMAN.value)

# Their number is limited, so they are found by one index and sorted.
_LIST_AGENTS = ENTITY_TABLE.select.where(table.c.owner_user_id == bindparam("owner")).order_by(
    table.c.created_at, table.c.id
)
_STOP_AGENTS = (
    update(table)
    .where(table.c.owner_user_id == bindparam("owner"), table.c.stopped_at.is_(None))
    .values(stopped_at=bindparam("at"), changed_at=bindparam("at"), version=table.c.version + 1)
)

_PASSWORD_TABLE = MappedTable[PasswordHash](passwords)
_FIND_PASSWORD = _PASSWORD_TABLE.select.where(passwords.c.user_id == bindparam("user"))
_LOCK_PASSWORD = (
    update(passwords)
    .where(passwords.c.user_id == bindparam("user"), passwords.c.hash == bindparam("known"))
    .values(hash=passwords.c.hash)
)
_SET_PASSWORD = upsert(
    passwords,
    index_elements=[passwords.c.user_id],
    update_columns=(passwords.c.hash, passwords.c.changed_at, passwords.c.must_change),
)


class SqlUserStore(TermIndexedStore[User], UserStore):
    """One row each; dependent rows are deleted by foreign keys."""

    entity_table = ENTITY_TABLE
    term_table = user_search_terms

    def add_many(self, users: Sequence[User]) -> None:
        self._insert_all(ENTITY_TABLE.insert, [ENTITY_TABLE.to_row(user) for user in users])
        self._insert_terms(users)

    def _term_scopes(self, value: User) -> Values:
        kind = UserKind.HUMAN if isinstance(value, HumanUser) else UserKind.SERVICE
        return {"organization_id": value.organization_id, "kind": kind.value}

    def find_subject(self, user_id: str) -> Subject | None:
        return self._fetch_value(read_subject, _FIND_SUBJECT, {"key": user_id})

    def find_subjects(self, ids: Collection[str]) -> Mapping[str, Subject]:
        return {item.user.id: item for item in self._fetch_values_by_id(_SELECT_SUBJECT, table.c.id, ids, read_subject)}

    def find_by_name(self, organization_id: str, user_name: str) -> User | None:
        return self._fetch_value(
            ENTITY_TABLE.from_row, _FIND_BY_NAME, {"organization": organization_id, "name": name_key(user_name)}
        )

    def find_by_login_name(self, login_name: str) -> Subject | None:
        name, domain = login_name_key(login_name)
        return self._fetch_value(read_subject, _FIND_BY_LOGIN_NAME, {"name": name, "domain": domain})

    def find_by_user_name_alone(self, user_name: str, *, preferred_organization_id: str) -> Subject | None:
        return self._fetch_value(
            read_subject, _FIND_BY_USER_NAME_ALONE, {"name": name_key(user_name), "first_in": preferred_organization_id}
        )

    def find_by_email(self, organization_id: str, email: str) -> tuple[Subject, ...]:
        if email_key(email) is None:
            return ()
        # The column is normalized less strictly than the rule, so that lists can be sorted by it.
        in_dns, as_written = map(name_key, domain_spellings(email))
        values = {"organization": organization_id, "in_dns": in_dns, "as_written": as_written}
        found = map(read_subject, self._fetch_all(_FIND_BY_EMAIL, values))
        same = [
            subject
            for subject in found
            if isinstance(subject.user, HumanUser) and is_same_mailbox(subject.user.profile.email, email)
        ]
        return tuple(same[:MAX_USERS_PER_EMAIL])

    def find_by_verified_email(
        self,
        key: str,
        *,
        organization_id: str | None = None,
        is_proven: bool = False,
        active: bool = False,
        limit: int = MAX_USERS_PER_EMAIL,
    ) -> tuple[Subject, ...]:
        query = _SELECT_SUBJECT.where(table.c.verified_email_key == key)
        if organization_id is not None:
            query = query.where(table.c.organization_id == organization_id)
        if is_proven:
            query = query.where(_IS_PROVEN)
        if active:
            query = query.where(_IS_ACTIVE)
        found = map(read_subject, self._fetch_all(query.order_by(table.c.created_at, table.c.id).limit(limit)))
        # Releases before 0011 change only the profile.
        return tuple(item for item in found if isinstance(item.user, HumanUser) and item.user.verified_email_key == key)

    def has_email_used_as_login_name(self, organization_id: str, domain: str) -> bool:
        values = {"organization": organization_id, "of_domain": f"@{domain}"}
        return any(self._fetch_all(query, values) for query in _LOGIN_NAME_CONFLICTS)

    def list_email_keys_verified_in_other_organizations(
        self, organization_id: str, domain: str, limit: int
    ) -> tuple[str, ...]:
        key = table.c.verified_email_key
        select_keys = select(key).join(organizations_table, organizations_table.c.id == table.c.organization_id)
        proven = select_keys.where(table.c.organization_id != organization_id, _IS_PROVEN, _IS_ACTIVE)
        found = proven.where(key.endswith(f"@{domain}", autoescape=True)).distinct().order_by(key).limit(limit)
        return tuple(row[0] for row in self._fetch_all(found))

    def update(self, value: User) -> None:
        values = ENTITY_TABLE.to_row(value)
        # Updated separately.
        del values["last_sign_in_at"]
        self._update_versioned(_UPDATE, {**values, "same_kind": values["kind"]})
        self._update_terms(value)

    def update_last_sign_in(self, user_id: str, signed_in_at: datetime) -> None:
        self._execute(_UPDATE_LAST_SIGN_IN, {"row": user_id, "at": seconds_from_datetime(signed_in_at)})

    def page(
        self,
        organization_id: str | None,
        kind: UserKind | None,
        request: PageRequest = FIRST_PAGE,
        *,
        with_agents: bool = True,
    ) -> ResultPage[User]:
        organization_condition = () if organization_id is None else (table.c.organization_id == organization_id,)
        kinds = () if kind is None else (kind_condition(kind, with_agents=with_agents),)
        return self._page(
            ENTITY_TABLE, ENTITY_TABLE.select.where(*organization_condition, *kinds), request, _SORT_COLUMNS
        )

    def list_with_other_algorithms(self, algorithms: Collection[str], limit: int) -> tuple[User, ...]:
        # A comparison with NULL is not true.
        is_unlisted = table.c.id_token_signed_response_alg.not_in(sorted(algorithms))
        found = ENTITY_TABLE.select.where(table.c.active, is_unlisted).order_by(table.c.id).limit(limit)
        return tuple(skip_unreadable(ENTITY_TABLE.from_row, self._fetch_all(found)))

    def list_due_deletions(self, now: datetime, limit: int) -> tuple[str, ...]:
        due = select(table.c.id).where(
            table.c.deletion_at.is_not(None), table.c.deletion_at <= seconds_from_datetime(now)
        )
        rows = self._fetch_all(due.order_by(table.c.deletion_at, table.c.id).limit(limit))
        return tuple(row[0] for row in rows)

    def list_agents(self, owner_user_id: str) -> tuple[Agent, ...]:
        found = self._fetch_values(ENTITY_TABLE.from_row, _LIST_AGENTS, {"owner": owner_user_id})
        return tuple(user for user in found if isinstance(user, Agent))

    def stop_agents(self, owner_user_id: str, stopped_at: datetime) -> int:
        return self._execute(_STOP_AGENTS, {"owner": owner_user_id, "at": seconds_from_datetime(stopped_at)})

    def find_password(self, user_id: str) -> PasswordHash | None:
        return self._fetch_value(_PASSWORD_TABLE.from_row, _FIND_PASSWORD, {"user": user_id})

    def set_password(self, password: PasswordHash) -> None:
        self._execute_in_savepoint(_SET_PASSWORD, _PASSWORD_TABLE.to_row(password))

    def lock_password_hash(self, user_id: str, hash: str) -> bool:
        # Writing the row unchanged locks it.
        return self._execute(_LOCK_PASSWORD, {"user": user_id, "known": hash}) == 1

    def list_must_change_password(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        rows = _PASSWORD_TABLE
        found = self._fetch_values_by_id(rows.select, passwords.c.user_id, user_ids, rows.from_row)
        return {password.user_id: password.must_change for password in found}


def kind_condition(kind: UserKind, *, with_agents: bool = True) -> ColumnElement[bool]:
    """True for users in a list of this kind."""
    # Not IN: compiled statements cannot expand it.
    has_agents = kind is UserKind.SERVICE and with_agents
    return table.c.kind != UserKind.HUMAN.value if has_agents else table.c.kind == kind.value


def read_subject(row: Row) -> Subject:
    """The subject in a row of ``SUBJECT_COLUMNS``."""
    return Subject(
        ENTITY_TABLE.from_row(row[_USER]), organizations.ENTITY_TABLE.from_row(row[_ORGANIZATION]), *row[_RULES]
    )


def read_subject_or_none(row: Row) -> Subject | None:
    """Like ``read_subject``, for an outer join."""
    return read_subject(row) if any(row[_USER]) else None


def scope_condition(scope: AccessScope) -> Callable[[Any], ColumnElement[bool]]:
    """The condition that a column names a user of the scope, which is a user or an organization."""
    if scope.target is DeletionTarget.USER:
        return lambda user_id: user_id == scope.id
    members = organization_users(scope.id, scope.except_user_ids)
    return lambda user_id: user_id.in_(members)


def organization_users(organization_id: str, except_ids: Collection[str]) -> Select[Any]:
    """The ids of the organization's users, except these: for changes of all of them by one statement."""
    users = select(table.c.id).where(table.c.organization_id == organization_id)
    return users.where(table.c.id.not_in(sorted(except_ids))) if except_ids else users

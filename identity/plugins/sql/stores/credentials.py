"""What service users prove who they are with, in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Table, bindparam, case, delete, func, select

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject
from identity.plugins.sql.batching import Lookup
from identity.plugins.sql.codecs import moment, seconds
from identity.plugins.sql.galera_locks import guard
from identity.plugins.sql.mapping import Mapped, readable, row_of, slices
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import move_forward
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import organizations, personal_access_tokens, service_user_keys, service_user_secrets
from identity.plugins.sql.tables import users as users_table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.credentials import Credential, CredentialStore, Expiring
from identity.storage.stores.users import UserKind


class _Rows(Mapped[Any]):
    """A mapped table of credentials with the statements that all of them need."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        this = (table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))
        self.oldest_first = (table.c.created_at, table.c.id)
        self.of_user = self.select.where(table.c.user_id == bindparam("user"))
        self.find = self.select.where(*this)
        self.remove = delete(table).where(*this)
        self.touch = move_forward(table.c.last_used_at)
        #: The rows with their service users and organizations.
        self.held = (
            select(*self.columns, *users.SUBJECT)
            .select_from(table)
            .join(users_table, users_table.c.id == table.c.user_id)
            .join(organizations, organizations.c.id == users_table.c.organization_id)
            .where(users_table.c.kind == UserKind.SERVICE.value)
        )


_KEYS, _SECRETS = _Rows(service_user_keys), _Rows(service_user_secrets)
_ROWS = {ServiceUserKey: _KEYS, ServiceUserSecret: _SECRETS, PersonalAccessToken: _Rows(personal_access_tokens)}
_KEY, _SIGNER = slices(_KEYS, users.SUBJECT)
_SECRET, _HOLDER = slices(_SECRETS, users.SUBJECT)

_FIND_SIGNER = Lookup(_KEYS.held, {"key": service_user_keys.c.id, "user": service_user_keys.c.user_id})
#: One row per secret.
_FIND_HOLDER = Lookup(_SECRETS.held.order_by(*_SECRETS.oldest_first), {"user": service_user_secrets.c.user_id})
_SECRETS_OF = _SECRETS.of_user.order_by(*_SECRETS.oldest_first)
_EXPIRES_AT = service_user_keys.c.expires_at
_LIVE = bindparam("at") < _EXPIRES_AT
_SUMMARIES = (
    select(
        service_user_keys.c.user_id,
        func.count(case((_LIVE, 1))),
        func.coalesce(func.min(case((_LIVE, _EXPIRES_AT))), func.max(_EXPIRES_AT)),
        func.max(service_user_keys.c.last_used_at),
    )
    .where(service_user_keys.c.user_id.in_(bindparam("ids", expanding=True)))
    .group_by(service_user_keys.c.user_id)
)


class SqlCredentialStore(PagedStore, CredentialStore):
    """One row each; the access tokens that it obtained go by foreign keys."""

    def add(self, credential: ServiceUserKey | ServiceUserSecret | PersonalAccessToken) -> None:
        rows = _ROWS[type(credential)]
        self._try(rows.insert, rows.values(credential))

    def find(self, kind: type[Credential], id: str, user_id: str) -> Credential | None:  # noqa: A002
        return self._find(_ROWS[kind].of, _ROWS[kind].find, {"key": id, "user": user_id})

    def remove(self, kind: type[Credential], user_id: str, id: str) -> None:  # noqa: A002
        self._touch_one(_ROWS[kind].remove, {"key": id, "user": user_id})

    def touch(self, kind: type[Credential], uses: Mapping[str, datetime]) -> None:
        self._move_forward(_ROWS[kind].touch, uses)

    def page(self, kind: type[Credential], user_id: str, request: PageRequest = FIRST_PAGE) -> Page[Credential]:
        return self._page_newest_first(_ROWS[kind], _ROWS[kind].of_user.params(user=user_id), request)

    def expiring(
        self,
        kind: type[Expiring],
        after: datetime,
        until: datetime,
        limit: int,
        *,
        organization_id: str | None = None,
    ) -> tuple[Expiring, ...]:
        return self._list(_ROWS[kind].of, _expiring(_ROWS[kind], after, until, limit, organization_id))

    def find_signer(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        row = self._one(_FIND_SIGNER, {"key": key_id, "user": user_id})
        return None if row is None else (_KEYS.of(row[_KEY]), users.subject_of(row[_SIGNER]))

    def key_summaries(self, user_ids: Collection[str], at: datetime) -> Mapping[str, KeySummary]:
        return dict(self._many(_SUMMARIES.params(at=seconds(at)), user_ids, _summary_of))

    def find_holder(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        rows = self._all(_FIND_HOLDER, {"user": user_id})
        if not rows:
            return None
        return users.subject_of(rows[0][_HOLDER]), tuple(readable(_SECRETS.of, (row[_SECRET] for row in rows)))

    def secrets(self, user_id: str, *, locked: bool = False) -> tuple[ServiceUserSecret, ...]:
        if locked:
            guard(self._connection, "secrets", user_id)
            self._one(users.ROWS.lock, {"key": user_id})
        return self._list(_SECRETS.of, _SECRETS_OF, {"user": user_id})


def _expiring(rows: _Rows, after: datetime, until: datetime, limit: int, organization_id: str | None) -> Select[Any]:
    columns = rows.table.c
    statement = rows.select.where(columns.expires_at > seconds(after), columns.expires_at <= seconds(until))
    if organization_id is not None:
        # Not joined: planners would begin with all users of the organization, which are many more than what expires.
        owner = select(users_table.c.organization_id).where(users_table.c.id == columns.user_id).scalar_subquery()
        statement = statement.where(owner == organization_id)
    return statement.order_by(columns.expires_at, columns.id).limit(limit)


@row_of(*_SUMMARIES.selected_columns)
def _summary_of(user_id: str, live: int, next_expiry: int, last_used_at: int | None) -> tuple[str, KeySummary]:
    last_used = None if last_used_at is None else moment(last_used_at)
    return user_id, KeySummary(live=live, next_expiry=moment(next_expiry), last_used_at=last_used)

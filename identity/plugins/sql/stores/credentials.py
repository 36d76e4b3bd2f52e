"""Credentials of service users and applications in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, bindparam, case, delete, func, select

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject
from identity.plugins.sql.column_codecs import datetime_from_seconds, seconds_from_datetime
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.paging import PagedSqlStore
from identity.plugins.sql.query_batching import BatchedLookup
from identity.plugins.sql.row_mapping import MappedTable, row_reader, row_slices, skip_unreadable
from identity.plugins.sql.sql_store import advance_timestamp
from identity.plugins.sql.stores import applications, users
from identity.plugins.sql.tables import (
    federated_credentials,
    organizations,
    personal_access_tokens,
    service_user_keys,
    service_user_secrets,
)
from identity.plugins.sql.tables import users as users_table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.credentials import Credential, CredentialStore, CredentialT, ExpiringCredentialT
from identity.storage.stores.users import UserKind


class _CredentialTable(MappedTable[Any]):
    """A mapped table of credentials with the statements common to all kinds."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.oldest_first = (table.c.created_at, table.c.id)
        self.update_last_used = advance_timestamp(table.c.last_used_at)
        #: The rows with their service users and organizations.
        self.with_subject = (
            select(*self.columns, *users.SUBJECT_COLUMNS)
            .select_from(table)
            .join(users_table, users_table.c.id == table.c.user_id)
            .join(organizations, organizations.c.id == users_table.c.organization_id)
            .where(users.kind_condition(UserKind.SERVICE))
        )

    def owner_condition(self, owner_id: str) -> ColumnElement[bool]:
        """Selects the rows of a user or, by the form of the id, of an application."""
        columns = self.table.c
        column = columns.user_id if _is_user_id(owner_id) else columns.get("application_id", columns.user_id)
        return column == owner_id


_KEY_TABLE, _SECRET_TABLE = _CredentialTable(service_user_keys), _CredentialTable(service_user_secrets)
_FEDERATED_TABLE = _CredentialTable(federated_credentials)
_TABLES_BY_CLASS: Mapping[type, _CredentialTable] = {
    ServiceUserKey: _KEY_TABLE,
    ServiceUserSecret: _SECRET_TABLE,
    PersonalAccessToken: _CredentialTable(personal_access_tokens),
    FederatedCredential: _FEDERATED_TABLE,
}
_KEY, _KEY_SUBJECT = row_slices(_KEY_TABLE, users.SUBJECT_COLUMNS)
_SECRET, _SECRET_SUBJECT = row_slices(_SECRET_TABLE, users.SUBJECT_COLUMNS)
_FEDERATED, _FEDERATED_SUBJECT = row_slices(_FEDERATED_TABLE, users.SUBJECT_COLUMNS)

_FIND_KEY_WITH_SUBJECT = BatchedLookup(
    _KEY_TABLE.with_subject, {"key": service_user_keys.c.id, "user": service_user_keys.c.user_id}
)
#: One row per secret.
_FIND_SUBJECT_WITH_SECRETS = BatchedLookup(
    _SECRET_TABLE.with_subject.order_by(*_SECRET_TABLE.oldest_first), {"user": service_user_secrets.c.user_id}
)
#: One row per credential.
_FIND_SUBJECT_WITH_FEDERATED = BatchedLookup(
    _FEDERATED_TABLE.with_subject.order_by(*_FEDERATED_TABLE.oldest_first), {"user": federated_credentials.c.user_id}
)
_EXPIRES_AT = service_user_keys.c.expires_at
_IS_LIVE = bindparam("at") < _EXPIRES_AT
_KEY_SUMMARIES = select(
    service_user_keys.c.user_id,
    func.count(case((_IS_LIVE, 1))),
    func.coalesce(func.min(case((_IS_LIVE, _EXPIRES_AT))), func.max(_EXPIRES_AT)),
    func.max(service_user_keys.c.last_used_at),
).group_by(service_user_keys.c.user_id)


class SqlCredentialStore(PagedSqlStore, CredentialStore):
    """One row each; access tokens obtained with it are deleted by foreign keys."""

    def add(self, credential: Credential) -> None:
        rows = _TABLES_BY_CLASS[type(credential)]
        self._execute_in_savepoint(rows.insert, rows.to_row(credential))

    def find(self, kind: type[CredentialT], id: str, owner_id: str) -> CredentialT | None:
        rows = _TABLES_BY_CLASS[kind]
        return self._fetch_value(rows.from_row, rows.select.where(*_is_credential(rows, id, owner_id)))

    def delete(self, kind: type[CredentialT], owner_id: str, id: str) -> None:
        rows = _TABLES_BY_CLASS[kind]
        self._execute_for_one(delete(rows.table).where(*_is_credential(rows, id, owner_id)))

    def update_last_used(self, kind: type[CredentialT], uses: Mapping[str, datetime]) -> None:
        self._advance_timestamps(_TABLES_BY_CLASS[kind].update_last_used, uses)

    def page(
        self, kind: type[CredentialT], owner_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[CredentialT]:
        rows = _TABLES_BY_CLASS[kind]
        return self._page_newest_first(rows, rows.select.where(rows.owner_condition(owner_id)), request)

    def list_expiring(
        self,
        kind: type[ExpiringCredentialT],
        after: datetime,
        until: datetime,
        limit: int,
        *,
        organization_id: str | None = None,
    ) -> tuple[ExpiringCredentialT, ...]:
        rows, columns = _TABLES_BY_CLASS[kind], _TABLES_BY_CLASS[kind].table.c
        statement = rows.select.where(
            columns.expires_at > seconds_from_datetime(after), columns.expires_at <= seconds_from_datetime(until)
        )
        if organization_id is not None:
            # Not joined: planners would begin with all users of the organization, who are many more than the expiring
            # credentials.
            owner = select(users_table.c.organization_id).where(users_table.c.id == columns.user_id).scalar_subquery()
            statement = statement.where(owner == organization_id)
        return self._fetch_values(rows.from_row, statement.order_by(columns.expires_at, columns.id).limit(limit))

    def find_key_with_subject(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        row = self._fetch_one(_FIND_KEY_WITH_SUBJECT, {"key": key_id, "user": user_id})
        return None if row is None else (_KEY_TABLE.from_row(row[_KEY]), users.read_subject(row[_KEY_SUBJECT]))

    def key_summaries(self, user_ids: Collection[str], now: datetime) -> Mapping[str, KeySummary]:
        summaries = _KEY_SUMMARIES.params(at=seconds_from_datetime(now))
        return dict(self._fetch_values_by_id(summaries, service_user_keys.c.user_id, user_ids, _read_summary))

    def find_subject_with_secrets(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        rows = self._fetch_all(_FIND_SUBJECT_WITH_SECRETS, {"user": user_id})
        if not rows:
            return None
        return users.read_subject(rows[0][_SECRET_SUBJECT]), tuple(
            skip_unreadable(_SECRET_TABLE.from_row, (row[_SECRET] for row in rows))
        )

    def find_subject_with_federated_credentials(
        self, user_id: str
    ) -> tuple[Subject, tuple[FederatedCredential, ...]] | None:
        rows = self._fetch_all(_FIND_SUBJECT_WITH_FEDERATED, {"user": user_id})
        if not rows:
            return None
        return users.read_subject(rows[0][_FEDERATED_SUBJECT]), tuple(
            skip_unreadable(_FEDERATED_TABLE.from_row, (row[_FEDERATED] for row in rows))
        )

    def list_federated_credentials(self, owner_id: str, *, locked: bool = False) -> tuple[FederatedCredential, ...]:
        return self._list(_FEDERATED_TABLE, owner_id, locked=locked)

    def list_secrets(self, user_id: str, *, locked: bool = False) -> tuple[ServiceUserSecret, ...]:
        return self._list(_SECRET_TABLE, user_id, locked=locked)

    def _list(self, rows: _CredentialTable, owner_id: str, *, locked: bool) -> tuple[Any, ...]:
        if locked:
            lock_names(self._connection, "secrets", owner_id)
            owners = users.ENTITY_TABLE if _is_user_id(owner_id) else applications.ENTITY_TABLE
            self._fetch_one(owners.lock(owner_id))
        found = rows.select.where(rows.owner_condition(owner_id))
        return self._fetch_values(rows.from_row, found.order_by(*rows.oldest_first))


def _is_user_id(owner_id: str) -> bool:
    return "-" in owner_id


def _is_credential(rows: _CredentialTable, id_: str, owner_id: str) -> tuple[ColumnElement[bool], ...]:
    return rows.table.c.id == id_, rows.owner_condition(owner_id)


@row_reader(*_KEY_SUMMARIES.selected_columns)
def _read_summary(user_id: str, live: int, next_expiry: int, last_used_at: int | None) -> tuple[str, KeySummary]:
    last_used = None if last_used_at is None else datetime_from_seconds(last_used_at)
    return user_id, KeySummary(
        live_count=live, next_expires_at=datetime_from_seconds(next_expiry), last_used_at=last_used
    )

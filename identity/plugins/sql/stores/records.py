"""Records in SQL."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, not_, or_, update

from identity.domain.attempts import NO_NEXT_ATTEMPT
from identity.domain.records import Record
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.dialect_statements import UpdateReturning, UpdateWithInserts, Upsert
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.row_mapping import MappedTable, Values
from identity.plugins.sql.sql_store import SqlStore, upsert
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores.users import organization_users
from identity.plugins.sql.tables import records as table
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow, StorageUnavailable
from identity.storage.stores.records import RecordStore

RECORD_TABLE = MappedTable[Record](table)
KEY_COLUMNS = (table.c.plugin, table.c.kind, table.c.key)
_KIND_CONDITION = (table.c.plugin == bindparam("plugin_is"), table.c.kind == bindparam("kind_is"))
_KEY_CONDITION = (*_KIND_CONDITION, table.c.key == bindparam("key_is"))

# One statement that inserts the row, or replaces an expired one. It waits for a concurrent insert; a read after a
# refusal sees that row. A damaged timestamp, which SQLite sorts after all others, counts as expired.
_ADD = CompiledStatement(Upsert(table, KEY_COLUMNS))
_ADD_LAST = CompiledStatement(UpdateWithInserts(Upsert(table, KEY_COLUMNS), key="records_key"))
_REPLACE_EXPIRED = upsert(
    table,
    index_elements=KEY_COLUMNS,
    update_columns=(column for column in RECORD_TABLE.columns if not column.primary_key),
    where=not_(
        table.c.expires_at.between(
            bindparam("now", type_=table.c.expires_at.type) + 1, seconds_from_datetime(NO_NEXT_ATTEMPT)
        )
    ),
)
_FIND = CompiledStatement(RECORD_TABLE.select.where(*_KEY_CONDITION))
_LOCK = RECORD_TABLE.select.where(*_KEY_CONDITION).with_for_update(read=True)
_REPLACE = update(table).where(*_KEY_CONDITION, table.c.version == bindparam("previous"))
_CONSUME = CompiledStatement(
    UpdateReturning(
        update(table)
        .where(
            *_KEY_CONDITION,
            table.c.taken_at.is_(None),
            or_(table.c.expires_at.is_(None), table.c.expires_at > bindparam("at")),
        )
        .values(taken_at=bindparam("at"), version=table.c.version + 1),
        *RECORD_TABLE.columns,
    )
)
_USER_CONDITION = table.c.user_id == bindparam("user")
_APPLICATION_CONDITION = table.c.application_id == bindparam("application")
#: Conditions by owners given.
_OWNER_CONDITIONS = {
    ("user",): (_USER_CONDITION,),
    ("application",): (_APPLICATION_CONDITION,),
    ("user", "application"): (_USER_CONDITION, _APPLICATION_CONDITION),
}
_LIST_FOR_OWNER = {
    names: RECORD_TABLE.select.where(*_KIND_CONDITION, *owned).order_by(table.c.created_at.desc(), table.c.key.desc())
    for names, owned in _OWNER_CONDITIONS.items()
}
_DELETE = delete(table).where(*_KEY_CONDITION)
_DELETE_FOR_OWNER = {names: delete(table).where(*_KIND_CONDITION, *owned) for names, owned in _OWNER_CONDITIONS.items()}

#: Maximum attempts when a conflicting record has disappeared before it can be read.
_MAX_TRIES = 3


class SqlRecordStore(SqlStore, RecordStore):
    """One row each; deleted by foreign keys."""

    def add(self, record: Record, *, replacing_expired: bool = False, is_last_write: bool = False) -> Record | None:
        values = RECORD_TABLE.to_row(record)
        if replacing_expired:
            values["now"] = values["created_at"]
        statement = _REPLACE_EXPIRED if replacing_expired else _ADD
        # Without an owner there is no constraint to violate.
        has_owner = record.user_id is not None or record.application_id is not None
        for _ in range(_MAX_TRIES):
            if is_last_write and not (replacing_expired or has_owner):
                row = self._execute_update_with_inserts(_ADD_LAST, {table.name: values}, is_last_write=True)
                is_added = row is not None
            else:
                is_added = bool((self._execute_in_savepoint if has_owner else self._execute)(statement, values))
            if is_added:
                return None
            holder = self.find(record.plugin, record.kind, record.key)
            if holder is not None:
                return holder
        raise StorageUnavailable("The record comes and goes.")

    def find(self, plugin: str, kind: str, key: bytes, *, locked: bool = False) -> Record | None:
        if locked:
            lock_names(self._connection, "record", plugin, kind, key.hex())
        return self._fetch_value(RECORD_TABLE.from_row, _LOCK if locked else _FIND, _key_parameters(plugin, kind, key))

    def find_many(self, plugin: str, kind: str, keys: Collection[bytes]) -> Mapping[bytes, Record]:
        of_kind = RECORD_TABLE.select.where(table.c.plugin == plugin, table.c.kind == kind)
        return {item.key: item for item in self._fetch_values_by_id(of_kind, table.c.key, keys, RECORD_TABLE.from_row)}

    def replace(self, record: Record) -> None:
        lock_names(self._connection, "record", record.plugin, record.kind, record.key.hex())
        this = _key_parameters(record.plugin, record.kind, record.key)
        if self._execute_in_savepoint(
            _REPLACE, {**RECORD_TABLE.to_row(record), **this, "previous": record.version - 1}
        ):
            return
        if self.find(record.plugin, record.kind, record.key) is None:
            raise RowNotFound
        raise StaleRow

    def consume(self, plugin: str, kind: str, key: bytes, consumed_at: datetime) -> Record:
        record = self._fetch_value(
            RECORD_TABLE.from_row,
            _CONSUME,
            {**_key_parameters(plugin, kind, key), "at": seconds_from_datetime(consumed_at)},
        )
        if record is not None:
            return replace(record, taken_at=None, version=record.version - 1)
        stored = self.find(plugin, kind, key)
        if stored is None or stored.taken_at is None:
            raise RowNotFound
        raise AlreadyUsed(stored)

    def list_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        owners = _owner_parameters(user_id, application_id)
        if not owners:
            return ()
        parameters = {"plugin_is": plugin, "kind_is": kind, **owners}
        return self._fetch_values(RECORD_TABLE.from_row, _LIST_FOR_OWNER[tuple(owners)], parameters)

    def delete(self, plugin: str, kind: str, key: bytes) -> bool:
        return self._execute(_DELETE, _key_parameters(plugin, kind, key)) == 1

    def delete_for_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> int:
        owners = _owner_parameters(user_id, application_id)
        if not owners:
            return 0
        return self._execute(_DELETE_FOR_OWNER[tuple(owners)], {"plugin_is": plugin, "kind_is": kind, **owners})

    def delete_for_organization(
        self, plugin: str, kind: str, organization_id: str, *, except_user_ids: frozenset[str] = frozenset()
    ) -> int:
        of_members = table.c.user_id.in_(organization_users(organization_id, except_user_ids))
        return self._execute(delete(table).where(*_KIND_CONDITION, of_members), {"plugin_is": plugin, "kind_is": kind})


def _key_parameters(plugin: str, kind: str, key: bytes) -> Values:
    return {"plugin_is": plugin, "kind_is": kind, "key_is": key}


def _owner_parameters(user_id: str | None, application_id: str | None) -> dict[str, str]:
    owners = {"user": user_id, "application": application_id}
    return {name: owner for name, owner in owners.items() if owner is not None}

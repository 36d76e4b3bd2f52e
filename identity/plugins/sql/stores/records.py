"""Records in SQL."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, not_, or_, update

from identity.domain.attempts import NEVER
from identity.domain.records import Record
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.dialect_statements import UpdateReturning
from identity.plugins.sql.galera_locks import guard
from identity.plugins.sql.mapping import Mapped, Values
from identity.plugins.sql.rows import SqlStore, add_unless_there, upsert
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import records as table
from identity.storage.errors import AlreadyUsed, Missing, Stale, Unavailable
from identity.storage.stores.records import RecordStore

ROWS = Mapped[Record](table)
KEY = (table.c.plugin, table.c.kind, table.c.key)
_KIND = (table.c.plugin == bindparam("plugin_is"), table.c.kind == bindparam("kind_is"))
_THIS = (*_KIND, table.c.key == bindparam("key_is"))

# One statement that makes the row, or replaces an expired one. It waits for whoever is making the row; what is read
# after a refusal is what that one stored. A moment that is none, which SQLite takes for later than all, is over.
_ADD = add_unless_there(table, *KEY)
_TAKE_OVER = upsert(
    table,
    by=KEY,
    replacing=(column for column in ROWS.columns if not column.primary_key),
    where=not_(table.c.expires_at.between(bindparam("now", type_=table.c.expires_at.type) + 1, seconds(NEVER))),
)
_FIND = CompiledStatement(ROWS.select.where(*_THIS))
_LOCK = ROWS.select.where(*_THIS).with_for_update(read=True)
_REPLACE = update(table).where(*_THIS, table.c.version == bindparam("previous"))
_TAKE = CompiledStatement(
    UpdateReturning(
        update(table)
        .where(
            *_THIS,
            table.c.taken_at.is_(None),
            or_(table.c.expires_at.is_(None), table.c.expires_at > bindparam("at")),
        )
        .values(taken_at=bindparam("at"), version=table.c.version + 1),
        *ROWS.columns,
    )
)
_USER, _APPLICATION = table.c.user_id == bindparam("user"), table.c.application_id == bindparam("application")
#: By the names of the owners that are given.
_OWNED = {("user",): (_USER,), ("application",): (_APPLICATION,), ("user", "application"): (_USER, _APPLICATION)}
_OF_OWNER = {
    names: ROWS.select.where(*_KIND, *owned).order_by(table.c.created_at.desc(), table.c.key.desc())
    for names, owned in _OWNED.items()
}
_DROP = delete(table).where(*_THIS)
_DROP_OF_OWNER = {names: delete(table).where(*_KIND, *owned) for names, owned in _OWNED.items()}

#: How often a record is looked for that took the key and is gone when it is to be read.
_TRIES = 3


class SqlRecordStore(SqlStore, RecordStore):
    """One row each; it goes by foreign keys."""

    def add(self, record: Record, *, replacing_expired: bool = False) -> Record | None:
        values = ROWS.values(record)
        if replacing_expired:
            values["now"] = values["created_at"]
        statement = _TAKE_OVER if replacing_expired else _ADD
        # Without an owner there is no rule that it could break.
        send = self._change if record.user_id is None and record.application_id is None else self._try
        for _ in range(_TRIES):
            if send(statement, values):
                return None
            holder = self.find(record.plugin, record.kind, record.key)
            if holder is not None:
                return holder
        raise Unavailable("The record comes and goes.")

    def find(self, plugin: str, kind: str, key: bytes, *, locked: bool = False) -> Record | None:
        if locked:
            guard(self._connection, "record", plugin, kind, key.hex())
        return self._find(ROWS.of, _LOCK if locked else _FIND, _this(plugin, kind, key))

    def replace(self, record: Record) -> None:
        guard(self._connection, "record", record.plugin, record.kind, record.key.hex())
        this = _this(record.plugin, record.kind, record.key)
        if self._try(_REPLACE, {**ROWS.values(record), **this, "previous": record.version - 1}):
            return
        if self.find(record.plugin, record.kind, record.key) is None:
            raise Missing
        raise Stale

    def take(self, plugin: str, kind: str, key: bytes, at: datetime) -> Record:
        taken = self._find(ROWS.of, _TAKE, {**_this(plugin, kind, key), "at": seconds(at)})
        if taken is not None:
            return replace(taken, taken_at=None, version=taken.version - 1)
        stored = self.find(plugin, kind, key)
        if stored is None or stored.taken_at is None:
            raise Missing
        raise AlreadyUsed(stored)

    def of_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        owners = _owners(user_id, application_id)
        if not owners:
            return ()
        parameters = {"plugin_is": plugin, "kind_is": kind, **owners}
        return self._list(ROWS.of, _OF_OWNER[tuple(owners)], parameters)

    def drop(self, plugin: str, kind: str, key: bytes) -> bool:
        return self._change(_DROP, _this(plugin, kind, key)) == 1

    def drop_of_owner(
        self, plugin: str, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> int:
        owners = _owners(user_id, application_id)
        if not owners:
            return 0
        return self._change(_DROP_OF_OWNER[tuple(owners)], {"plugin_is": plugin, "kind_is": kind, **owners})


def _this(plugin: str, kind: str, key: bytes) -> Values:
    return {"plugin_is": plugin, "kind_is": kind, "key_is": key}


def _owners(user_id: str | None, application_id: str | None) -> dict[str, str]:
    given = {"user": user_id, "application": application_id}
    return {name: owner for name, owner in given.items() if owner is not None}

"""The outbox in SQL."""

from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, select, update

from identity.domain.outbox import OutgoingMessage
from identity.plugins.sql.rows import SqlStore, moment, moment_or_none, seconds
from identity.plugins.sql.tables import outgoing_messages as table
from identity.storage.stores.outbox import OutboxStore

_ADD = insert(table)
_DUE = (
    select(
        table.c.id,
        table.c.kind,
        table.c.sealed,
        table.c.created_at,
        table.c.next_at,
        table.c.expires_at,
        table.c.attempts,
    )
    .where(table.c.next_at <= bindparam("at"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
)
_NEXT_AT = select(func.min(table.c.next_at))
_POSTPONE = (
    update(table)
    .where(table.c.id == bindparam("message"))
    .values(next_at=bindparam("at"), attempts=table.c.attempts + 1)
)
_REMOVE = delete(table).where(table.c.id == bindparam("message"))


class SqlOutboxStore(SqlStore, OutboxStore):
    """One row per message."""

    def add(self, message: OutgoingMessage) -> None:
        """Store a new message."""
        values = {
            "id": message.id,
            "kind": message.kind,
            "sealed": message.sealed,
            "created_at": seconds(message.created_at),
            "next_at": seconds(message.next_at),
            "expires_at": seconds(message.expires_at),
            "attempts": message.attempts,
        }
        self._try(_ADD, values)

    def due(self, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        """Messages whose ``next_at`` has come, oldest ``next_at`` first."""
        return tuple(
            OutgoingMessage(
                id=id_,
                kind=kind,
                sealed=sealed,
                created_at=moment(created_at),
                next_at=moment(next_at),
                expires_at=moment(expires_at),
                attempts=attempts,
            )
            for id_, kind, sealed, created_at, next_at, expires_at, attempts in self._all(
                _DUE, {"at": seconds(at), "limit": limit}
            )
        )

    def next_at(self) -> datetime | None:
        """When the next message is due; None if there is none at all."""
        row = self._one(_NEXT_AT, {})
        return None if row is None else moment_or_none(row[0])

    def postpone(self, message_id: str, next_at: datetime) -> None:
        """Try it again then; one more attempt is counted."""
        self._touch_one(_POSTPONE, {"message": message_id, "at": seconds(next_at)})

    def remove(self, message_id: str) -> None:
        """Delete it."""
        self._touch_one(_REMOVE, {"message": message_id})

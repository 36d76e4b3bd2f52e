"""Sessions of people at their browsers in SQL."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import bindparam, select, update

from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedIn
from identity.plugins.sql.batching import ListQuery
from identity.plugins.sql.codecs import proofs_text, seconds
from identity.plugins.sql.mapping import Mapped, Row, slices
from identity.plugins.sql.rows import SqlStore, find_by_id
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import sessions as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import Missing
from identity.storage.stores.sessions import MOST_OF_USER, SessionStore

_ROWS = Mapped[Session](table)
_SESSION, _SUBJECT = slices(_ROWS, users.SUBJECT)
_THIS = table.c.id == bindparam("session")
_OPEN = table.c.ended_at.is_(None)
_OF_USER = (table.c.user_id == bindparam("user"), _OPEN)

_ADD = CompiledStatement(_ROWS.insert)
_FIND = CompiledStatement(find_by_id(table, _ROWS.columns))
_SIGNED_IN = (
    select(*_ROWS.columns, *users.SUBJECT)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(_OPEN)
    .order_by(table.c.selected_at.desc(), table.c.id)
)
_OF_BROWSER = ListQuery(_SIGNED_IN, table.c.digest)
_GOING_ON = (
    _SIGNED_IN.where(table.c.ends_at > bindparam("at")).order_by(None).order_by(table.c.id).limit(bindparam("most"))
)
_GOING_ON_OF = _GOING_ON.where(users_table.c.organization_id == bindparam("organization"))
_LIST = (
    _ROWS.select.where(*_OF_USER, table.c.ends_at > bindparam("at"))
    .order_by(table.c.last_seen_at.desc(), table.c.id)
    .limit(MOST_OF_USER)
)
_REAUTHENTICATE = update(table).where(_THIS, _OPEN)
_TOUCH = CompiledStatement(
    update(table).where(_THIS, table.c.last_seen_at < bindparam("at")).values(last_seen_at=bindparam("at"))
)
_SELECT = CompiledStatement(
    update(table).where(_THIS, table.c.selected_at < bindparam("at")).values(selected_at=bindparam("at"))
)
_CLOSE = update(table).values(ended_at=bindparam("at"))
_CLOSE_ONE = _CLOSE.where(_THIS, _OPEN)
_CLOSE_OF_USER = _CLOSE.where(*_OF_USER, table.c.id != bindparam("but"))


class SqlSessionStore(SqlStore, SessionStore):
    """One row each."""

    def add(self, session: Session) -> None:
        self._try(_ADD, _ROWS.values(session))

    def find(self, session_id: str) -> Session | None:
        return self._find(_ROWS.of, _FIND, {"key": session_id})

    def of_browser(self, digests: Collection[bytes]) -> tuple[SignedIn, ...]:
        if not digests:
            return ()
        # Whose session or account cannot be read is not signed in; the others at this browser are.
        return self._list(_signed_in_of, *_OF_BROWSER.of(digests))

    def of_user(self, user_id: str, at: datetime) -> tuple[Session, ...]:
        return self._list(_ROWS.of, _LIST, {"user": user_id, "at": seconds(at)})

    def open(self, organization_id: str | None, at: datetime, most: int) -> tuple[SignedIn, ...]:
        given = {"at": seconds(at), "most": most}
        if organization_id is None:
            return self._list(_signed_in_of, _GOING_ON, given)
        return self._list(_signed_in_of, _GOING_ON_OF, {**given, "organization": organization_id})

    def reauthenticate(
        self,
        session_id: str,
        *,
        digest: bytes,
        proofs: tuple[Proof, ...],
        authenticated_at: datetime,
        at: datetime,
        ends_at: datetime,
    ) -> None:
        now = seconds(at)
        values = {
            "session": session_id,
            "digest": digest,
            "proofs": proofs_text(proofs),
            "authenticated_at": seconds(authenticated_at),
            "selected_at": now,
            "last_seen_at": now,
            "ends_at": seconds(ends_at),
        }
        if not self._try(_REAUTHENTICATE, values):
            raise Missing

    def touch(self, session_id: str, at: datetime) -> None:
        self._change(_TOUCH, {"session": session_id, "at": seconds(at)})

    def select(self, session_id: str, at: datetime) -> None:
        self._change(_SELECT, {"session": session_id, "at": seconds(at)})

    def end(self, session_id: str, at: datetime) -> bool:
        return self._change(_CLOSE_ONE, {"session": session_id, "at": seconds(at)}) == 1

    def end_of_user(self, user_id: str, at: datetime, *, but: str | None = None) -> int:
        return self._change(_CLOSE_OF_USER, {"user": user_id, "at": seconds(at), "but": but or ""})


def _signed_in_of(row: Row) -> SignedIn:
    return SignedIn(_ROWS.of(row[_SESSION]), users.subject_of(row[_SUBJECT]))

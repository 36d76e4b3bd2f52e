"""Sessions of people at their browsers in SQL."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from identity.domain.sessions import Session, SignedIn
from identity.plugins.sql.rows import (
    Prepared,
    SqlStore,
    find_by_id,
    listed,
    moment,
    moment_or_none,
    readable,
    row_of,
    seconds,
    seconds_or_none,
    tuple_of,
)
from identity.plugins.sql.stores import organizations, users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import sessions as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import Missing
from identity.storage.stores.sessions import MOST_OF_USER, SessionStore

_COLUMNS = (
    table.c.id,
    table.c.digest,
    table.c.user_id,
    table.c.started_at,
    table.c.authenticated_at,
    table.c.selected_at,
    table.c.last_seen_at,
    table.c.ends_at,
    table.c.methods,
    table.c.user_agent,
    table.c.client_address,
    table.c.ended_at,
)
_END = len(_COLUMNS)
_THIS = table.c.id == bindparam("session")
_OPEN = table.c.ended_at.is_(None)
_OF_USER = (table.c.user_id == bindparam("user"), _OPEN)

_ADD = Prepared(insert(table))
_FIND = Prepared(find_by_id(table, _COLUMNS))
_SIGNED_IN = (
    select(*_COLUMNS, *users.COLUMNS, *organizations.COLUMNS)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(_OPEN)
    .order_by(table.c.selected_at.desc(), table.c.id)
)
#: Hardly a browser shows more digests than these; where it shows fewer, the last one is given again.
_FEW = ("first", "second", "third")
_OF_FEW = Prepared(_SIGNED_IN.where(table.c.digest.in_([bindparam(name) for name in _FEW])))
_OF_MANY = _SIGNED_IN.where(table.c.digest.in_(bindparam("digests", expanding=True)))
_LIST = (
    select(*_COLUMNS)
    .where(*_OF_USER, table.c.ends_at > bindparam("at"))
    .order_by(table.c.last_seen_at.desc(), table.c.id)
    .limit(MOST_OF_USER)
)
_REAUTHENTICATE = update(table).where(_THIS, _OPEN)
_TOUCH = Prepared(
    update(table).where(_THIS, table.c.last_seen_at < bindparam("at")).values(last_seen_at=bindparam("at"))
)
_SELECT = Prepared(
    update(table).where(_THIS, table.c.selected_at < bindparam("at")).values(selected_at=bindparam("at"))
)
_CLOSE = update(table).values(ended_at=bindparam("at"))
_CLOSE_ONE = _CLOSE.where(_THIS, _OPEN)
_CLOSE_OF_USER = _CLOSE.where(*_OF_USER)
_CLOSE_OTHERS = _CLOSE_OF_USER.where(table.c.id != bindparam("session"))
_OVER = (
    select(table.c.id).where(table.c.ends_at < bindparam("before")).order_by(table.c.ends_at).limit(bindparam("limit"))
)
_PURGE = delete(table).where(table.c.id.in_(_OVER))


class SqlSessionStore(SqlStore, SessionStore):
    """One row each."""

    def add(self, session: Session) -> None:
        """Store a new session."""
        values = {
            "id": session.id,
            "digest": session.digest,
            "user_id": session.user_id,
            "started_at": seconds(session.started_at),
            "authenticated_at": seconds(session.authenticated_at),
            "selected_at": seconds(session.selected_at),
            "last_seen_at": seconds(session.last_seen_at),
            "ends_at": seconds(session.ends_at),
            "methods": listed(session.methods),
            "user_agent": session.user_agent,
            "client_address": session.client_address,
            "ended_at": seconds_or_none(session.ended_at),
        }
        self._try(_ADD, values)

    def find(self, session_id: str) -> Session | None:
        """The session with this id, ended or not."""
        row = self._one(_FIND, {"key": session_id})
        return None if row is None else _session_of(*row)

    def of_browser(self, digests: Collection[bytes]) -> tuple[SignedIn, ...]:
        """Those sessions that have one of these digests and are not ended, last selected first, in one query."""
        shown = list(digests)
        if not shown:
            return ()
        if len(shown) <= len(_FEW):
            filled = [*shown, *shown[-1:] * (len(_FEW) - len(shown))]
            rows = self._all(_OF_FEW, dict(zip(_FEW, filled, strict=True)))
        else:
            rows = self._all(_OF_MANY, {"digests": shown})
        # Whose session or account cannot be read is not signed in; the others at this browser are.
        return tuple(readable(_signed_in_of, rows))

    def of_user(self, user_id: str, at: datetime) -> tuple[Session, ...]:
        """The user's sessions that are not over, last seen first."""
        return tuple(readable(_session_of, self._all(_LIST, {"user": user_id, "at": seconds(at)})))

    def reauthenticate(
        self, session_id: str, *, digest: bytes, methods: tuple[str, ...], at: datetime, ends_at: datetime
    ) -> None:
        """Give the session a new digest and move its moments, by one conditional write."""
        now = seconds(at)
        values = {
            "session": session_id,
            "digest": digest,
            "methods": listed(methods),
            "authenticated_at": now,
            "selected_at": now,
            "last_seen_at": now,
            "ends_at": seconds(ends_at),
        }
        if not self._try(_REAUTHENTICATE, values):
            raise Missing

    def touch(self, session_id: str, at: datetime) -> None:
        """Move "last seen" forward."""
        self._change(_TOUCH, {"session": session_id, "at": seconds(at)})

    def select(self, session_id: str, at: datetime) -> None:
        """Move "selected" forward."""
        self._change(_SELECT, {"session": session_id, "at": seconds(at)})

    def end(self, session_id: str, at: datetime) -> bool:
        """End the session; False if there is none or it has ended already."""
        return self._change(_CLOSE_ONE, {"session": session_id, "at": seconds(at)}) == 1

    def end_of_user(self, user_id: str, at: datetime, *, but: str | None = None) -> int:
        """End all sessions of the user, but one."""
        parameters = {"user": user_id, "at": seconds(at)}
        if but is None:
            return self._change(_CLOSE_OF_USER, parameters)
        return self._change(_CLOSE_OTHERS, {**parameters, "session": but})

    def purge(self, before: datetime, limit: int) -> int:
        """Delete sessions whose absolute end lies before."""
        return self._change(_PURGE, {"before": seconds(before), "limit": limit})


def _signed_in_of(*row: Any) -> SignedIn:
    return SignedIn(_session_of(*row[:_END]), users.subject_of(row[_END:]))


@row_of(*_COLUMNS)
def _session_of(
    id_: str,
    digest: bytes,
    user_id: str,
    started_at: int,
    authenticated_at: int,
    selected_at: int,
    last_seen_at: int,
    ends_at: int,
    methods: str,
    user_agent: str,
    client_address: str,
    ended_at: int | None,
) -> Session:
    return Session(
        id=id_,
        digest=digest,
        user_id=user_id,
        started_at=moment(started_at),
        authenticated_at=moment(authenticated_at),
        selected_at=moment(selected_at),
        last_seen_at=moment(last_seen_at),
        ends_at=moment(ends_at),
        methods=tuple_of(methods),
        user_agent=user_agent,
        client_address=client_address,
        ended_at=moment_or_none(ended_at),
    )

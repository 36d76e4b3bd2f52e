"""Sessions of people at their browsers, in memory."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedInAccount
from identity.storage.errors import RowNotFound
from identity.storage.memory.entity_store import MemoryStore, advance_timestamp
from identity.storage.memory.tables import MemoryTables
from identity.storage.memory.users import MemoryUserStore
from identity.storage.stores.sessions import MAX_SESSIONS_PER_USER, SessionStore


class MemorySessionStore(MemoryStore, SessionStore):
    """Rows by id."""

    def add(self, session: Session) -> None:
        self._tables.sessions.insert({session.id: session})

    def find(self, session_id: str) -> Session | None:
        return self._tables.sessions.find(session_id)

    def list_for_browser(self, digests: Collection[bytes]) -> tuple[SignedInAccount, ...]:
        sessions = [each for each in self._tables.sessions if each.digest in digests and each.ended_at is None]
        sessions.sort(key=lambda each: each.id)
        sessions.sort(key=lambda each: each.selected_at, reverse=True)
        users = MemoryUserStore(self._tables)
        subjects = ((each, users.find_subject(each.user_id)) for each in sessions)
        return tuple(SignedInAccount(each, subject) for each, subject in subjects if subject is not None)

    def list_for_user(self, user_id: str, now: datetime) -> tuple[Session, ...]:
        sessions = [each for each in self._open(user_id) if now < each.ends_at]
        sessions.sort(key=lambda each: each.id)
        sessions.sort(key=lambda each: each.last_seen_at, reverse=True)
        return tuple(sessions[:MAX_SESSIONS_PER_USER])

    def list_open(self, organization_id: str | None, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        users = MemoryUserStore(self._tables)
        sessions = sorted(
            (one for one in self._tables.sessions if one.ended_at is None and now < one.ends_at), key=lambda one: one.id
        )
        found = ((one, users.find_subject(one.user_id)) for one in sessions)
        kept = [
            SignedInAccount(one, subject)
            for one, subject in found
            if subject is not None and organization_id in (None, subject.organization.id)
        ]
        return tuple(kept[:limit])

    def reauthenticate(
        self,
        session_id: str,
        *,
        digest: bytes,
        proofs: tuple[Proof, ...],
        authenticated_at: datetime,
        seen_at: datetime,
        ends_at: datetime,
    ) -> None:
        session = self._tables.sessions.get(session_id)
        if session.ended_at is not None:
            raise RowNotFound("session")
        moved = replace(
            session,
            digest=digest,
            proofs=proofs,
            authenticated_at=authenticated_at,
            selected_at=seen_at,
            last_seen_at=seen_at,
            ends_at=ends_at,
        )
        self._tables.sessions.replace(session_id, moved)

    def update_last_seen(self, session_id: str, seen_at: datetime) -> None:
        advance_timestamp(self._tables.sessions, session_id, "last_seen_at", seen_at)

    def update_selected(self, session_id: str, selected_at: datetime) -> None:
        advance_timestamp(self._tables.sessions, session_id, "selected_at", selected_at)

    def end(self, session_id: str, ended_at: datetime) -> bool:
        session = self._tables.sessions.find(session_id)
        if session is None or session.ended_at is not None:
            return False
        self._tables.sessions.replace_unchecked(session_id, replace(session, ended_at=ended_at))
        return True

    def end_for_user(self, user_id: str, ended_at: datetime, *, except_id: str | None = None) -> int:
        return sum(self.end(each.id, ended_at) for each in self._open(user_id) if each.id != except_id)

    def _open(self, user_id: str) -> list[Session]:
        return [each for each in self._tables.sessions if each.user_id == user_id and each.ended_at is None]


def has_ended(tables: MemoryTables, session_id: str | None) -> bool:
    """True if there is such a session and it has ended."""
    session = None if session_id is None else tables.sessions.find(session_id)
    return session is not None and session.ended_at is not None

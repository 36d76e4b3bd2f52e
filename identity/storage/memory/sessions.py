"""Sessions of people at their browsers, in memory."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedIn
from identity.storage.errors import Missing
from identity.storage.memory.entities import MemoryStore, move_forward
from identity.storage.memory.tables import Tables
from identity.storage.memory.users import MemoryUserStore
from identity.storage.stores.sessions import MOST_OF_USER, SessionStore


class MemorySessionStore(MemoryStore, SessionStore):
    """Rows by id."""

    def add(self, session: Session) -> None:
        self._tables.sessions.insert({session.id: session})

    def find(self, session_id: str) -> Session | None:
        return self._tables.sessions.find(session_id)

    def of_browser(self, digests: Collection[bytes]) -> tuple[SignedIn, ...]:
        sessions = [each for each in self._tables.sessions if each.digest in digests and each.ended_at is None]
        sessions.sort(key=lambda each: each.id)
        sessions.sort(key=lambda each: each.selected_at, reverse=True)
        users = MemoryUserStore(self._tables)
        subjects = ((each, users.find_subject(each.user_id)) for each in sessions)
        return tuple(SignedIn(each, subject) for each, subject in subjects if subject is not None)

    def of_user(self, user_id: str, at: datetime) -> tuple[Session, ...]:
        sessions = [each for each in self._open(user_id) if at < each.ends_at]
        sessions.sort(key=lambda each: each.id)
        sessions.sort(key=lambda each: each.last_seen_at, reverse=True)
        return tuple(sessions[:MOST_OF_USER])

    def open(self, organization_id: str | None, at: datetime, most: int) -> tuple[SignedIn, ...]:
        users = MemoryUserStore(self._tables)
        sessions = sorted(
            (one for one in self._tables.sessions if one.ended_at is None and at < one.ends_at), key=lambda one: one.id
        )
        found = ((one, users.find_subject(one.user_id)) for one in sessions)
        kept = [
            SignedIn(one, subject)
            for one, subject in found
            if subject is not None and organization_id in (None, subject.organization.id)
        ]
        return tuple(kept[:most])

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
        session = self._tables.sessions.get(session_id)
        if session.ended_at is not None:
            raise Missing("session")
        moved = replace(
            session,
            digest=digest,
            proofs=proofs,
            authenticated_at=authenticated_at,
            selected_at=at,
            last_seen_at=at,
            ends_at=ends_at,
        )
        self._tables.sessions.replace(session_id, moved)

    def touch(self, session_id: str, at: datetime) -> None:
        move_forward(self._tables.sessions, session_id, "last_seen_at", at)

    def select(self, session_id: str, at: datetime) -> None:
        move_forward(self._tables.sessions, session_id, "selected_at", at)

    def end(self, session_id: str, at: datetime) -> bool:
        session = self._tables.sessions.find(session_id)
        if session is None or session.ended_at is not None:
            return False
        self._tables.sessions.put(session_id, replace(session, ended_at=at))
        return True

    def end_of_user(self, user_id: str, at: datetime, *, but: str | None = None) -> int:
        return sum(self.end(each.id, at) for each in self._open(user_id) if each.id != but)

    def _open(self, user_id: str) -> list[Session]:
        return [each for each in self._tables.sessions if each.user_id == user_id and each.ended_at is None]


def has_ended(tables: Tables, session_id: str | None) -> bool:
    """True if there is such a session and it has ended."""
    session = None if session_id is None else tables.sessions.find(session_id)
    return session is not None and session.ended_at is not None

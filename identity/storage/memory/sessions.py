"""Browser sessions, in memory."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from itertools import islice

from identity.domain.access_revocations import AccessScope
from identity.domain.authentication import Proof
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.sessions import Session, SignedInAccount
from identity.storage.errors import RowNotFound
from identity.storage.memory.entity_store import MemoryStore, advance_timestamp
from identity.storage.memory.tables import MemoryTables
from identity.storage.memory.users import organization_user_ids, require_subject
from identity.storage.stores.sessions import MAX_SESSIONS_PER_USER, SessionStore


class MemorySessionStore(MemoryStore, SessionStore):
    def add(self, session: Session) -> None:
        self._tables.sessions.insert({session.id: session})

    def find(self, session_id: str) -> Session | None:
        return self._tables.sessions.find(session_id)

    def list_for_browser(self, digests: Collection[bytes]) -> tuple[SignedInAccount, ...]:
        sessions = [session for session in self._open() if session.digest in digests]
        sessions.sort(key=lambda session: session.selected_at, reverse=True)
        return tuple(map(self._account, sessions))

    def list_for_user(self, user_id: str, now: datetime) -> tuple[Session, ...]:
        sessions = [session for session in self._open(user_id) if now < session.ends_at]
        sessions.sort(key=lambda session: session.last_seen_at, reverse=True)
        return tuple(sessions[:MAX_SESSIONS_PER_USER])

    def list_open(self, organization_id: str | None, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        accounts = (self._account(session) for session in self._open() if now < session.ends_at)
        return tuple(item for item in accounts if organization_id in (None, item.subject.organization.id))[:limit]

    def list_impersonations(self, scope: AccessScope) -> tuple[SignedInAccount, ...]:
        users = (
            {scope.id}
            if scope.target is DeletionTarget.USER
            else organization_user_ids(self._tables, scope.id, scope.except_user_ids)
        )
        found = (session for session in self._open() if session.is_impersonated)
        return tuple(self._account(item) for item in found if item.user_id in users or item.impersonator_id in users)

    def list_expired_impersonations(self, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        found = (session for session in self._open() if session.is_impersonated and session.ends_at <= now)
        return tuple(self._account(session) for session in islice(found, limit))

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
        return sum(self.end(session.id, ended_at) for session in self._open(user_id) if session.id != except_id)

    def end_for_organization(
        self, organization_id: str, ended_at: datetime, *, except_user_ids: frozenset[str] = frozenset()
    ) -> int:
        users = organization_user_ids(self._tables, organization_id, except_user_ids)
        found = [item for item in self._open() if item.user_id in users or item.impersonator_id in users]
        return sum(self.end(session.id, ended_at) for session in found)

    def end_for_impersonator(self, impersonator_id: str, ended_at: datetime) -> int:
        found = [session for session in self._open() if session.impersonator_id == impersonator_id]
        return sum(self.end(session.id, ended_at) for session in found)

    def _open(self, user_id: str | None = None) -> list[Session]:
        """The sessions that have not ended, of one user or of all, by id."""
        rows = (row for row in self._tables.sessions if user_id in (None, row.user_id) and row.ended_at is None)
        return sorted(rows, key=lambda session: session.id)

    def _account(self, session: Session) -> SignedInAccount:
        return SignedInAccount(session, require_subject(self._tables, session.user_id))


def has_ended(tables: MemoryTables, session_id: str | None) -> bool:
    session = tables.sessions.find(session_id)
    return session is not None and session.ended_at is not None

"""Sessions of people at their browsers."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime

from identity.domain.access_revocations import AccessScope
from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedInAccount

#: Maximum number of sessions listed per user.
MAX_SESSIONS_PER_USER = 100


class SessionStore(ABC):
    """Browsers are identified by digest (unique: DuplicateValue("digest")). No method makes an ended session live
    again."""

    @abstractmethod
    def add(self, session: Session) -> None:
        """Raises RowNotFound if there is no such user."""

    @abstractmethod
    def find(self, session_id: str) -> Session | None:
        """The session with this id, ended or not."""

    @abstractmethod
    def list_for_browser(self, digests: Collection[bytes]) -> tuple[SignedInAccount, ...]:
        """The sessions with these digests that have not ended, with user and organization, in one query; last selected
        first. Includes expired ones."""

    @abstractmethod
    def list_for_user(self, user_id: str, now: datetime) -> tuple[Session, ...]:
        """The user's sessions that have not ended and whose absolute end is after ``now``, last seen first; at most
        100."""

    @abstractmethod
    def list_open(self, organization_id: str | None, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        """Sessions of the organization's people, or of all, that have not ended and whose absolute end is after
        ``now``, with user and organization, by id; at most ``limit``."""

    @abstractmethod
    def list_impersonations(self, scope: AccessScope) -> tuple[SignedInAccount, ...]:
        """Sessions in which others are signed in as users of the scope, or its users as others, and that nobody has
        ended, also past their absolute end, with user and organization, by id. The scope is a user or an
        organization."""

    @abstractmethod
    def list_expired_impersonations(self, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        """Impersonated sessions that nobody ended before their absolute end, with user and organization, by id; at most
        ``limit``."""

    @abstractmethod
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
        """Set the session's digest, proofs, authenticated_at and ends_at, and move selected_at and last_seen_at to
        ``seen_at``, by one conditional write. Raises RowNotFound if there is none or it has ended."""

    @abstractmethod
    def update_last_seen(self, session_id: str, seen_at: datetime) -> None:
        """Move ``last_seen_at`` forward, never back. An unknown session is ignored."""

    @abstractmethod
    def update_selected(self, session_id: str, selected_at: datetime) -> None:
        """Move ``selected_at`` forward, never back. An unknown session is ignored."""

    @abstractmethod
    def end(self, session_id: str, ended_at: datetime) -> bool:
        """End the session; False if there is none or it has already ended, whose time is kept."""

    @abstractmethod
    def end_for_user(self, user_id: str, ended_at: datetime, *, except_id: str | None = None) -> int:
        """End all sessions of the user, except one; returns how many had not ended before."""

    @abstractmethod
    def end_for_organization(
        self, organization_id: str, ended_at: datetime, *, except_user_ids: frozenset[str] = frozenset()
    ) -> int:
        """End the sessions of the organization's users, except these, and those in which they are signed in as others;
        returns how many had not ended before."""

    @abstractmethod
    def end_for_impersonator(self, impersonator_id: str, ended_at: datetime) -> int:
        """End all sessions in which this user is signed in as another; returns how many had not ended before."""

"""Sessions of people at their browsers."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime

from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedInAccount

#: How many sessions of one user are listed.
MAX_SESSIONS_PER_USER = 100


class SessionStore(ABC):
    """Known to browsers by digest (unique: DuplicateValue("digest")). No method ever makes an ended session live
    again."""

    @abstractmethod
    def add(self, session: Session) -> None:
        """Store a new session. Raises RowNotFound if there is no such user."""

    @abstractmethod
    def find(self, session_id: str) -> Session | None:
        """The session with this id, ended or not."""

    @abstractmethod
    def list_for_browser(self, digests: Collection[bytes]) -> tuple[SignedInAccount, ...]:
        """Those sessions that have one of these digests and are not ended, with user and organization, in one query;
        last selected first. Expired ones are among them."""

    @abstractmethod
    def list_for_user(self, user_id: str, now: datetime) -> tuple[Session, ...]:
        """The user's sessions that are not ended and whose absolute end lies after ``now``, last seen first; 100 at
        most."""

    @abstractmethod
    def list_open(self, organization_id: str | None, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        """Sessions of the organization's people, or of all, that are not ended and whose absolute end lies after
        ``now``, with user and organization, by id; ``limit`` at most."""

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
        """Give the session a new digest, proofs, authenticated_at and ends_at, and move selected_at and last_seen_at
        to ``seen_at``, by one conditional write. Raises RowNotFound if there is none or it is ended."""

    @abstractmethod
    def update_last_seen(self, session_id: str, seen_at: datetime) -> None:
        """Move "last seen" forward; never back. An unknown session is ignored."""

    @abstractmethod
    def update_selected(self, session_id: str, selected_at: datetime) -> None:
        """Move "selected" forward; never back. An unknown session is ignored."""

    @abstractmethod
    def end(self, session_id: str, ended_at: datetime) -> bool:
        """End the session; False if there is none or it has ended already, which keeps its moment."""

    @abstractmethod
    def end_for_user(self, user_id: str, ended_at: datetime, *, except_id: str | None = None) -> int:
        """End all sessions of the user, but one; returns how many were not ended before."""

"""Session: one person signed in on one browser; PendingAuthorization: what waits for somebody to sign in."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from identity.domain.authentication import UNDATED_METHOD, Proof, dated_proofs, proof_methods
from identity.domain.users import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One person signed in on one browser. ``id`` is the sid of ID tokens; it authorises nothing.

    The browser shows a secret, of which the SHA-256 is kept; the secret changes at each sign-in, the id does not.
    ``proofs`` tell how and when the person proved to be it: first who they are, then with further factors.
    ``authenticated_at`` is when that was last begun, ``selected_at`` when the account was last chosen for the
    service's own pages, ``ends_at`` the end that no activity moves. ``ended_at`` is set by signing out.
    """

    id: str
    digest: bytes
    user_id: str
    started_at: datetime
    authenticated_at: datetime
    selected_at: datetime
    last_seen_at: datetime
    ends_at: datetime
    proofs: tuple[Proof, ...] = ()
    user_agent: str = ""
    client_address: str = ""
    ended_at: datetime | None = None

    @property
    def amr_methods(self) -> tuple[str, ...]:
        """By which methods the person proved to be it (RFC 8176)."""
        return proof_methods(self.proofs)

    @property
    def last_proof_at(self) -> datetime | None:
        """When the person last proved who they are; None if another provider alone says so, and not when."""
        if not any(UNDATED_METHOD in proof.methods for proof in self.proofs[:1]):
            return self.authenticated_at
        return max((proof.at for proof in dated_proofs(self.proofs)), default=None)

    def is_live(self, now: datetime, idle_timeout: timedelta, max_age: timedelta) -> bool:
        """True until it is ended, has been idle for ``idle_timeout``, reaches its absolute end, or the person proved
        who they are ``max_age`` ago."""
        return (
            self.ended_at is None
            and now < self.ends_at
            and now < self.last_seen_at + idle_timeout
            and now < self.authenticated_at + max_age
        )


@dataclass(frozen=True, slots=True)
class SignedInAccount:
    """A session together with whose it is."""

    session: Session
    subject: Subject

    def is_live(self, now: datetime, idle_age: timedelta, max_age: timedelta) -> bool:
        """True while the session lives and neither its user nor the user's organization is deactivated."""
        return self.subject.is_active and self.session.is_live(now, idle_age, max_age)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessionCount:
    """How many sessions a change would end, whether there may be more, and whether that of who asks is among them."""

    sessions: int = 0
    has_more: bool = False
    includes_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAuthorization:
    """An authorization request that waits for its user; bound to one browser by a secret, kept as SHA-256.

    ``parameters`` are the client's, as it sent them. A request of the service's own pages has ``target``,
    the path on the login host where the browser goes at the end, and ``parameters`` are what they demand (``Demand``).
    ``user_id`` and ``authenticated_at`` name who proved to be it here and is not yet signed in, because something else
    is still asked; ``session_id`` the session that was chosen or started. ``proofs`` are those that were given here,
    ``done`` names the interactions that are finished.
    """

    id: str
    digest: bytes
    created_at: datetime
    expires_at: datetime
    parameters: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    login_name: str = ""
    ui_locales: str = ""
    user_id: str | None = None
    authenticated_at: datetime | None = None
    proofs: tuple[Proof, ...] = ()
    session_id: str | None = None
    done: frozenset[str] = frozenset()
    finished_at: datetime | None = None
    version: int = 1

    @property
    def client_id(self) -> str | None:
        """The client that asked; None for the service's own pages."""
        return self.parameters.get("client_id")

    @property
    def authentication_state(self) -> tuple[str | None, datetime | None, str | None]:
        """Who answers, as far as that is settled: who proved it and when, or the session that was chosen."""
        return self.user_id, self.authenticated_at, self.session_id

    def restarted(self) -> "PendingAuthorization":
        """The same as it was before anybody proved who they are, or did anything else for it."""
        return replace(self, user_id=None, authenticated_at=None, proofs=(), session_id=None, done=frozenset())

    def is_expired(self, now: datetime) -> bool:
        """True from the second on at which it can no longer be continued."""
        return now >= self.expires_at

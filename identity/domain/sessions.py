"""Sessions of signed-in users, and authorization requests that wait for a sign-in."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar

from identity.domain.authentication import Proof, proof_methods
from identity.domain.messages import gettext_lazy
from identity.domain.names import is_printable
from identity.domain.users import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A user who is signed in on one browser. ``id`` is the sid of ID tokens and authorizes nothing.

    The browser presents a secret, stored as SHA-256; it changes at each sign-in, the id does not. ``proofs`` say how
    and when the user authenticated, first factor first. ``authenticated_at`` is when the last authentication began,
    ``selected_at`` when the account was last chosen for the service's own pages, ``ends_at`` the absolute end.
    ``ended_at`` is set by signing out. ``impersonator_id`` is the manager who is signed in as the user, without any
    proof of theirs."""

    #: How long a manager may be signed in as another user.
    IMPERSONATION_LIFETIME: ClassVar[timedelta] = timedelta(minutes=15)

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
    impersonator_id: str | None = None

    @property
    def is_impersonated(self) -> bool:
        return self.impersonator_id is not None

    @property
    def amr_methods(self) -> tuple[str, ...]:
        """The authentication methods of the user (RFC 8176)."""
        return proof_methods(self.proofs)

    @property
    def last_proof_at(self) -> datetime | None:
        """When the user last authenticated; None if only an upstream provider says so, without a time."""
        if not any(Proof.UNDATED_METHOD in proof.methods for proof in self.proofs[:1]):
            return self.authenticated_at
        return max((proof.at for proof in self.proofs if proof.is_dated), default=None)

    def is_live(self, now: datetime, idle_timeout: timedelta, max_age: timedelta) -> bool:
        """True until it is ended, idle for ``idle_timeout``, past its absolute end, or authenticated longer than
        ``max_age`` ago."""
        return (
            self.ended_at is None
            and now < self.ends_at
            and now < self.last_seen_at + idle_timeout
            and now < self.authenticated_at + max_age
        )


_LONGEST_REASON = 200


def impersonation_reason_problem(text: str) -> str | None:
    """What is wrong with the reason for signing in as another person: it is one line of text."""
    if not text.strip():
        return gettext_lazy("Give a reason.")
    if len(text) > _LONGEST_REASON:
        return gettext_lazy("Use at most {length} characters.", length=_LONGEST_REASON)
    return None if is_printable(text) else gettext_lazy("Use printable characters only.")


@dataclass(frozen=True, slots=True)
class SignedInAccount:
    """A session with its subject."""

    session: Session
    subject: Subject

    def is_live(self, now: datetime, idle_age: timedelta, max_age: timedelta) -> bool:
        """True while the session is live and neither the user nor the organization is deactivated."""
        return self.subject.is_active and self.session.is_live(now, idle_age, max_age)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessionCount:
    """How many sessions a change would end, whether there may be more, and whether the requester's is among them."""

    sessions: int = 0
    has_more: bool = False
    includes_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAuthorization:
    """An authorization request that waits for its user; bound to one browser by a secret, stored as SHA-256.

    ``parameters`` are the client's as sent. A request of the service's own pages has ``target``, the path on the
    login host to return to, and its ``parameters`` are the page's demands (``Demand``). ``user_id`` and
    ``authenticated_at`` name a user who has authenticated here but is not signed in yet; ``session_id`` is the
    session that was selected or started. ``proofs`` are those given here, ``done`` names completed interactions."""

    #: Completed step that records the demand for the strongest available proof, and the demand of our own pages for it.
    STRONGEST_PROOF_STEP: ClassVar[str] = "strongest"
    #: Completed step that records that the person chose another method: the instance's methods are offered.
    OTHER_METHOD_STEP: ClassVar[str] = "another_way"

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
        """The requesting client; None for the service's own pages."""
        return self.parameters.get("client_id")

    @property
    def authentication_state(self) -> tuple[str | None, datetime | None, str | None]:
        """Who has authenticated and when, or the selected session, as far as known."""
        return self.user_id, self.authenticated_at, self.session_id

    def restarted(self) -> "PendingAuthorization":
        """The request without any proofs and completed interactions."""
        return replace(self, user_id=None, authenticated_at=None, proofs=(), session_id=None, done=frozenset())

    def is_expired(self, now: datetime) -> bool:
        return now >= self.expires_at

"""Sessions: start, recognise, touch and end them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from identity.crypto.secrets import digest, new_id, new_token
from identity.domain.authentication import Proof, methods_of
from identity.domain.errors import NotFound
from identity.domain.policies import Policy
from identity.domain.records import CORE
from identity.domain.sessions import EndedSessions, Session, SignedIn
from identity.domain.users import HumanUser, Subject
from identity.services.changes import TransactionState, UseCases, told
from identity.services.holders import Holders
from identity.services.links import CodeKind
from identity.services.policies import INSTANCE, Policies
from identity.services.remembered_browsers import KIND as REMEMBERED_BROWSER
from identity.settings import Settings
from identity.storage.errors import Missing

_LAST_SEEN_STEP = timedelta(minutes=1)
_LONGEST_USER_AGENT = 500
#: How many sessions are looked at to tell how many a change would end.
_MOST_LOOKED_AT = 5000


class Sessions(UseCases):
    """A session belongs to one person at one browser, which shows its secret in a cookie."""

    def __init__(self, state: TransactionState, holders: Holders, policies: Policies, settings: Settings) -> None:
        super().__init__(state)
        self._holders, self._policies, self._settings = holders, policies, settings

    def of_browser(self, secrets: Collection[str]) -> tuple[SignedIn, ...]:
        """The sessions whose secrets a browser shows, last selected first; expired ones among them, ended ones not."""
        if not secrets:
            return ()
        with self._look() as storage:
            return storage.sessions.of_browser([digest(secret) for secret in secrets])

    def live(self, account: SignedIn) -> bool:
        """True if the account is signed in right now."""
        return account.live(self._now, *self._ages(account.subject))

    def current(self, secrets: Collection[str]) -> SignedIn | None:
        """The session that the service's own pages work with: the live one that was selected last."""
        return next((one for one in self.of_browser(secrets) if self.live(one) and self.enough(one)), None)

    def enough(self, account: SignedIn) -> bool:
        """True if what the person proved is what the policy asks of them now."""
        counting = self._policies.counting(account.subject, account.session.proofs)
        return bool(counting) and not self._policies.lacks_factor(account.subject, methods_of(counting))

    def ended_by(self, owner: str, policy: Policy) -> EndedSessions:
        """What would end if the instance or an organization set these rules; looked at up to a bound."""
        with self._look() as storage:
            found = storage.sessions.open(None if owner == INSTANCE else owner, self._now, _MOST_LOOKED_AT)
        self._holders.expect({one.subject.user.id for one in found})
        going_on = [one for one in found if self.live(one) and self.enough(one)]
        with self._policies.supposing(owner, policy):
            ended = [one for one in going_on if not (self.live(one) and self.enough(one))]
        own = self._audit.actor.session_id
        return EndedSessions(
            sessions=len(ended),
            more=len(found) == _MOST_LOOKED_AT,
            own=own is not None and any(one.session.id == own for one in ended),
        )

    def sign_in(
        self,
        subject: Subject,
        accounts: Collection[SignedIn],
        *,
        proofs: tuple[Proof, ...],
        user_agent: str,
        at: datetime | None = None,
        client_id: str | None = None,
        known: bool = True,
    ) -> tuple[SignedIn, str]:
        """The person's session at this browser, and the new secret to show for it from now on.

        ``accounts`` are the sessions that the browser has: a live one of the same person goes on under its id, an
        expired one is ended. ``at`` is when they began to prove who they are, ``client_id`` the application signed in
        to. With ``known`` they signed in at the browser before. Raises NotFound if the user is gone by now.
        """
        secret = new_token()
        at = at or self._now
        self._storage.users.note_sign_in(subject.user.id, at)
        for account in accounts:
            if account.subject.user.id != subject.user.id:
                continue
            if self.live(account):
                again = self._again(account, secret, proofs, at, client_id)
                if again is not None:
                    self._leave_others(subject, again)
                    return SignedIn(again, subject), secret
            else:
                self._storage.sessions.end(account.session.id, self._now)
        session = Session(
            id=new_id(),
            digest=digest(secret),
            user_id=subject.user.id,
            started_at=self._now,
            authenticated_at=at,
            selected_at=self._now,
            last_seen_at=self._now,
            ends_at=self.end_of(subject),
            proofs=proofs,
            user_agent=user_agent[:_LONGEST_USER_AGENT],
            client_address=self._audit.actor.client_address or "",
        )
        with told("user", subject.user.id):
            self._storage.sessions.add(session)
        # Where somebody signs in for the first time is no news to them.
        first = isinstance(subject.user, HumanUser) and subject.user.last_sign_in_at is None
        about = {"browser": session.user_agent} | ({} if known or first else {"new_browser": True})
        self._record("session.started", SignedIn(session, subject), client_id, about)
        self._leave_others(subject, session)
        return SignedIn(session, subject), secret

    def end_of(self, subject: Subject) -> datetime:
        """The end that no activity moves, of a session of the person that begins now."""
        return self._now + self._ages(subject)[1]

    def strengthen(
        self, account: SignedIn, proofs: tuple[Proof, ...], *, client_id: str | None = None
    ) -> tuple[SignedIn, str]:
        """The session with further proofs of its person, and the new secret to show for it from now on.

        Of a factor the latest proof counts. When the session ends, and when it began, stays. Raises NotFound if it was
        ended meanwhile.
        """
        secret, session = new_token(), account.session
        renewed = {proof.factor for proof in proofs}
        together = (*(one for one in session.proofs if one.factor not in renewed), *proofs)
        again = self._proved(account, secret, together, session.authenticated_at, session.ends_at, client_id)
        if again is None:
            raise NotFound("session", session.id)
        return SignedIn(again, account.subject), secret

    def touch(self, account: SignedIn) -> None:
        """Move "last seen", at most once a minute: most requests then write nothing."""
        if self._now - account.session.last_seen_at >= _LAST_SEEN_STEP:
            self._storage.sessions.touch(account.session.id, self._now)

    def select(self, account: SignedIn) -> None:
        """Have the service's own pages work with this session from now on."""
        # Ahead of one that was begun within the same second.
        self._storage.sessions.select(account.session.id, self._now + timedelta(seconds=1))

    def end(self, account: SignedIn, *, client_id: str | None = None) -> None:
        """Sign out, where an application asked for it with its ``client_id``: access tokens are dead from this moment
        on; refresh tokens with offline_access live on.

        Sign-ins for which the same person proved something, and which wait at whatever browser, begin anew.
        """
        self._storage.authorization_requests.begin_anew(account.subject.user.id)
        if self._storage.sessions.end(account.session.id, self._now):
            self._record("session.ended", account, client_id)

    def of_user(self, user_id: str) -> tuple[Session, ...]:
        """The person's live sessions at all browsers, last seen first."""
        found = self._storage.sessions.of_user(user_id, self._now)
        subject = self._storage.users.find_subject(user_id) if found else None
        if subject is None:
            return ()
        ages = self._ages(subject)
        return tuple(session for session in found if session.live(self._now, *ages))

    def end_one_of(self, subject: Subject, session_id: str) -> None:
        """Sign the person out of one of their sessions. Raises NotFound if it is not theirs or has ended."""
        session = self._storage.sessions.find(session_id)
        if session is None or session.user_id != subject.user.id or session.ended_at is not None:
            raise NotFound("session", session_id)
        self.end(SignedIn(session, subject))

    def end_all_of(self, subject: Subject, *, but: str | None = None) -> int:
        """Sign the person out everywhere; returns how many sessions ended.

        Sign-ins that wait and for which they proved something begin anew. ``but`` is the id of a session, or of a
        sign-in that waits, to be spared.
        """
        # First, so that a sign-in that is finished at this very moment has started its session by now.
        self._storage.authorization_requests.begin_anew(subject.user.id, but=but)
        ended = self._storage.sessions.end_of_user(subject.user.id, self._now, but=but)
        if ended:
            self._audit.record(
                "session.ended",
                kind="user",
                id=subject.user.id,
                organization_id=subject.organization.id,
                detail={"sessions": ended},
            )
        return ended

    def end_access(self, subject: Subject, *, but: str | None = None, applications: bool = True) -> None:
        """End whatever was opened as this person: sessions and sign-ins as ``end_all_of`` does, links that were mailed
        or handed out, and with ``applications`` all that applications hold."""
        for kind in (CodeKind.PASSWORD_RESET, CodeKind.EMAIL_CHANGE, REMEMBERED_BROWSER):
            self._storage.records.drop_of_owner(CORE, kind, user_id=subject.user.id)
        if applications:
            self._storage.tokens.revoke_of_user(subject.user.id, self._now)
        self.end_all_of(subject, but=but)

    def _ages(self, subject: Subject) -> tuple[timedelta, timedelta]:
        """How long a session of the person lasts unused, and at most."""
        policy, settings = self._policies.of_subject(subject), self._settings
        return policy.session_idle_age or settings.session_idle_age, policy.session_max_age or settings.session_max_age

    def _leave_others(self, subject: Subject, session: Session) -> None:
        """Where a person can be signed in at one browser alone, have them be so here."""
        if self._policies.of_subject(subject).single_session:
            self.end_all_of(subject, but=session.id)

    def _again(
        self, account: SignedIn, secret: str, proofs: tuple[Proof, ...], at: datetime, client_id: str | None
    ) -> Session | None:
        """The session after a further sign-in; None if it was ended meanwhile."""
        return self._proved(account, secret, proofs, at, self.end_of(account.subject), client_id)

    def _proved(
        self,
        account: SignedIn,
        secret: str,
        proofs: tuple[Proof, ...],
        at: datetime,
        ends_at: datetime,
        client_id: str | None,
    ) -> Session | None:
        again = replace(
            account.session,
            digest=digest(secret),
            proofs=proofs,
            authenticated_at=at,
            selected_at=self._now,
            last_seen_at=self._now,
            ends_at=ends_at,
        )
        try:
            self._storage.sessions.reauthenticate(
                again.id, digest=again.digest, proofs=proofs, authenticated_at=at, at=self._now, ends_at=ends_at
            )
        except Missing:
            return None
        self._record("session.renewed", SignedIn(again, account.subject), client_id)
        return again

    def _record(
        self, event: str, account: SignedIn, client_id: str | None = None, about: Mapping[str, object] | None = None
    ) -> None:
        session, user_id = account.session, account.subject.user.id
        with self._audit.acting(user_id, client_id=client_id, session_id=session.id):
            self._audit.record(
                event,
                kind="user",
                id=user_id,
                organization_id=account.subject.organization.id,
                detail={"session_id": session.id, "methods": list(session.methods), **(about or {})},
            )

"""Sessions: start, find, touch and end them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from identity.crypto.secrets import new_id, new_token, token_digest
from identity.domain.access_revocations import AccessScope
from identity.domain.applications import ApplicationClient
from identity.domain.audit import AuditEvent
from identity.domain.authentication import Proof, proof_methods
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.errors import NotFound
from identity.domain.policies import Policy
from identity.domain.records import CORE_NAMESPACE
from identity.domain.sessions import EndedSessionCount, Session, SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.services.agent_rules import AgentRules
from identity.services.base import Service, translate_storage_errors
from identity.services.impersonation_rules import ImpersonationRules
from identity.services.instance_managers import InstanceManagerService
from identity.services.one_time_links import OneTimeLinkKind
from identity.services.policies import INSTANCE_OWNER_ID, PolicyService
from identity.services.remembered_browsers import RECORD_KIND as REMEMBERED_BROWSER
from identity.storage.errors import RowNotFound
from identity.storage.paging import PageCursor, PageRequest, SortOrder
from identity.storage.stores.users import UserKind

#: Records of a person that can be used to sign in, or save a factor.
ACCESS_RECORD_KINDS = (OneTimeLinkKind.PASSWORD_RESET, OneTimeLinkKind.EMAIL_CHANGE, REMEMBERED_BROWSER)
_LAST_SEEN_STEP = timedelta(minutes=1)
_LONGEST_USER_AGENT = 500
#: How many people of an organization are read at a time, and in which order, which no change of a person changes.
_PEOPLE_AT_ONCE, _OLDEST_FIRST = 100, SortOrder("created_at")
#: Maximum number of sessions read to count how many a change would end.
_MOST_LOOKED_AT = 5000


@dataclass(eq=False, repr=False)
class SessionService(Service):
    """A session belongs to one person at one browser, which presents its secret in a cookie."""

    _holders: InstanceManagerService
    _policies: PolicyService
    _impersonation: ImpersonationRules
    _agent_rules: AgentRules

    def list_by_secrets(self, secrets: Collection[str]) -> tuple[SignedInAccount, ...]:
        """The sessions that a browser with these secrets may use, last selected first; includes expired but not ended
        ones. While a manager is signed in as a person, it is only that session; one that is not permitted any more
        is left out."""
        accounts = self.list_all_by_secrets(secrets)
        unimpersonated = tuple(account for account in accounts if not account.session.is_impersonated)
        if len(unimpersonated) == len(accounts):
            return accounts
        impersonated = (account for account in accounts if account.session.is_impersonated)
        found = next(
            (account for account in impersonated if self._is_impersonation_permitted(account, unimpersonated)), None
        )
        return unimpersonated if found is None else (found,)

    def list_all_by_secrets(self, secrets: Collection[str]) -> tuple[SignedInAccount, ...]:
        """All sessions for the secrets that a browser presents, to sign out of them."""
        if not secrets:
            return ()
        with self._look() as storage:
            return storage.sessions.list_for_browser([token_digest(secret) for secret in secrets])

    def is_live(self, account: SignedInAccount) -> bool:
        return account.is_live(self._now, *self._session_lifetimes(account.subject))

    def find_live(self, session_id: str | None) -> SignedInAccount | None:
        """The session of this id with its user, if it is live and its proofs satisfy the user's policy now."""
        session = None if session_id is None else self._storage.sessions.find(session_id)
        subject = None if session is None else self._storage.users.find_subject(session.user_id)
        if session is None or subject is None:
            return None
        account = SignedInAccount(session, subject)
        return account if self._continues(account) else None

    def find_current(self, secrets: Collection[str]) -> SignedInAccount | None:
        """The session that the service's own pages use: the live one that was selected last."""
        return next(filter(self._continues, self.list_by_secrets(secrets)), None)

    def satisfies_policy(self, account: SignedInAccount) -> bool:
        """True if the session's proofs satisfy the person's policy now."""
        counting = self._policies.filter_valid_proofs(account.subject, account.session.proofs)
        return bool(counting) and not self._policies.lacks_factor(account.subject, proof_methods(counting))

    def count_ended_by_policy(self, owner: str, policy: Policy) -> EndedSessionCount:
        """How many sessions would end if the instance or an organization set these rules; counted up to a limit."""
        with self._look() as storage:
            accounts = storage.sessions.list_open(
                None if owner == INSTANCE_OWNER_ID else owner, self._now, _MOST_LOOKED_AT
            )
        self._holders.prefetch({account.subject.user.id for account in accounts})
        going_on = [account for account in accounts if self._continues(account)]
        with self._policies.overridden_policy(owner, policy):
            ended = [account for account in going_on if not self._continues(account)]
        current_id = self._audit.actor.session_id
        return EndedSessionCount(
            sessions=len(ended),
            has_more=len(accounts) == _MOST_LOOKED_AT,
            includes_own=current_id is not None and any(account.session.id == current_id for account in ended),
        )

    def start(
        self,
        subject: Subject,
        accounts: Collection[SignedInAccount],
        *,
        proofs: tuple[Proof, ...],
        user_agent: str,
        at: datetime | None = None,
        client_id: str | None = None,
        known: bool = True,
    ) -> tuple[SignedInAccount, str]:
        """Start or continue the person's session at this browser; returns it with its new secret.

        ``accounts`` are the browser's sessions: a live one of the same person continues under its id, an expired one
        is ended. ``at`` is when authentication began, ``client_id`` the application signed in to. ``known`` means
        that they signed in at this browser before. Raises NotFound if the user is gone by now."""
        secret = new_token()
        at = at or self._now
        self._storage.users.update_last_sign_in(subject.user.id, at)
        for account in accounts:
            if account.subject.user.id != subject.user.id:
                continue
            if self.is_live(account):
                again = self._store_proofs(account, secret, proofs, at, self.new_session_end(subject), client_id)
                if again is not None:
                    self._leave_others(subject, again)
                    return SignedInAccount(again, subject), secret
            else:
                self._storage.sessions.end(account.session.id, self._now)
        session = self.new_session(subject, proofs, at, secret=secret, user_agent=user_agent)
        with translate_storage_errors("user", subject.user.id):
            self._storage.sessions.add(session)
        # No notification about a new browser at the first sign-in.
        first = isinstance(subject.user, HumanUser) and subject.user.last_sign_in_at is None
        about = {"browser": session.user_agent} | ({} if known or first else {"new_browser": True})
        self._record("session.started", SignedInAccount(session, subject), client_id, about)
        self._leave_others(subject, session)
        return SignedInAccount(session, subject), secret

    def new_session(
        self, subject: Subject, proofs: tuple[Proof, ...], at: datetime, *, secret: str = "", user_agent: str = ""
    ) -> Session:
        """A session that is not stored yet."""
        return Session(
            id=new_id(),
            digest=token_digest(secret),
            user_id=subject.user.id,
            started_at=self._now,
            authenticated_at=at,
            selected_at=self._now,
            last_seen_at=self._now,
            ends_at=self.new_session_end(subject),
            proofs=proofs,
            user_agent=user_agent[:_LONGEST_USER_AGENT],
            client_address=self._audit.actor.client_address or "",
        )

    def new_session_end(self, subject: Subject) -> datetime:
        """The absolute end of a session of the person that starts now; activity does not extend it."""
        return self._now + self._session_lifetimes(subject)[1]

    def step_up(
        self, account: SignedInAccount, proofs: tuple[Proof, ...], *, client_id: str | None = None
    ) -> tuple[SignedInAccount, str]:
        """Add proofs to the session; returns it with its new secret. Of each factor the latest proof counts. Start and
        end of the session stay. Raises NotFound if it was ended meanwhile."""
        secret, session = new_token(), account.session
        renewed = {proof.factor for proof in proofs}
        together = (*(proof for proof in session.proofs if proof.factor not in renewed), *proofs)
        again = self._store_proofs(account, secret, together, session.authenticated_at, session.ends_at, client_id)
        if again is None:
            raise NotFound("session", session.id)
        return SignedInAccount(again, account.subject), secret

    def touch(self, account: SignedInAccount) -> None:
        """Update "last seen" at most once a minute, so that most requests write nothing."""
        if self._now - account.session.last_seen_at >= _LAST_SEEN_STEP:
            self._storage.sessions.update_last_seen(account.session.id, self._now)

    def select(self, account: SignedInAccount) -> None:
        """Make this the session that the service's own pages use."""
        # Later than a session started within the same second.
        self._storage.sessions.update_selected(account.session.id, self._now + timedelta(seconds=1))

    def end(self, account: SignedInAccount, *, client_id: str | None = None) -> None:
        """Sign out; ``client_id`` is the application that requested it. Access tokens stop working at once; refresh
        tokens with offline_access stay valid. Pending sign-ins with proofs of the same person start over, at all
        browsers."""
        self._storage.authorization_requests.reset_for_user(account.subject.user.id)
        if account.session.is_impersonated:
            self._end_impersonation(account, client_id)
        elif self._storage.sessions.end(account.session.id, self._now):
            self.end_impersonations(account.subject.user.id, by_user_only=True)
            self._record("session.ended", account, client_id)

    def list_by_user(self, user_id: str) -> tuple[Session, ...]:
        """The person's live sessions at all browsers, last seen first."""
        sessions = self._storage.sessions.list_for_user(user_id, self._now)
        subject = self._storage.users.find_subject(user_id) if sessions else None
        if subject is None:
            return ()
        ages = self._session_lifetimes(subject)
        return tuple(session for session in sessions if session.is_live(self._now, *ages))

    def end_by_id(self, subject: Subject, session_id: str) -> None:
        """End one of the person's sessions. Raises NotFound if it is not theirs or has ended."""
        session = self._storage.sessions.find(session_id)
        if session is None or session.user_id != subject.user.id or session.ended_at is not None:
            raise NotFound("session", session_id)
        self.end(SignedInAccount(session, subject))

    def end_all(self, subject: Subject, *, except_session: str | None = None) -> int:
        """Sign the person out everywhere; returns the number of sessions ended. Pending sign-ins with their proofs
        start over. ``except_session`` is the id of a session or pending sign-in to keep."""
        # First, so that a sign-in that finishes concurrently has started its session by now.
        self._storage.authorization_requests.reset_for_user(subject.user.id, except_id=except_session)
        self.end_impersonations(subject.user.id)
        ended = self._storage.sessions.end_for_user(subject.user.id, self._now, except_id=except_session)
        if ended:
            self._record_about("session.ended", subject, {"sessions": ended})
        return ended

    def end_for_organization(self, scope: AccessScope) -> int:
        """Sign out the people of the scope, which is an organization, by a few statements; returns the number of
        sessions ended. Pending sign-ins with their proofs start over, and their one-time links end. There is no event
        for each person."""
        stored, spared = self._storage, scope.except_user_ids
        # In this order, as for a single user.
        stored.authorization_requests.reset_for_organization(scope.id, except_user_ids=spared)
        ended = sum(map(self._end_impersonation, stored.sessions.list_impersonations(scope)))
        ended += stored.sessions.end_for_organization(scope.id, self._now, except_user_ids=spared)
        for kind in ACCESS_RECORD_KINDS:
            stored.records.delete_for_organization(CORE_NAMESPACE, kind, scope.id, except_user_ids=spared)
        return ended

    def page_logout_clients(
        self, organization_id: str, ended_at: datetime, position: Sequence[str] = ()
    ) -> tuple[tuple[tuple[str, str, ApplicationClient], ...], Sequence[str]]:
        """The applications with an address for logouts that got tokens in sessions of the organization's people that
        ended at this moment: ids of person and session with the application, for the next people after ``position``.
        With the position after them, empty after the last."""
        cursor = PageCursor(*position) if position else None
        request = PageRequest(limit=_PEOPLE_AT_ONCE, cursor=cursor, sort=_OLDEST_FIRST)
        people = self._storage.users.page(organization_id, UserKind.HUMAN, request)
        clients = self._storage.tokens.list_logout_clients([user.id for user in people], ended_at)
        following = people.next_cursor
        return clients, () if following is None else (following.value, following.id)

    def end_impersonations(self, user_id: str, *, by_user_only: bool = False) -> None:
        """End the sessions in which the user is signed in as another, or another as the user: their rights change. With
        ``by_user_only`` the latter stay."""
        accounts = self._storage.sessions.list_impersonations(AccessScope(DeletionTarget.USER, user_id))
        for account in accounts:
            if not by_user_only or account.session.impersonator_id == user_id:
                self._end_impersonation(account)
        # Whatever could not be read ends, too.
        self._storage.sessions.end_for_impersonator(user_id, self._now)

    def _end_impersonation(self, account: SignedInAccount, client_id: str | None = None) -> bool:
        """The end is recorded once, by the request or process that ends the session."""
        is_first = self._storage.sessions.end(account.session.id, self._now)
        if is_first:
            self._record(AuditEvent.IMPERSONATION_ENDED, account, client_id)
        return is_first

    def revoke_access(
        self,
        subject: Subject,
        *,
        except_session: str | None = None,
        applications: bool = True,
        agents: bool = True,
    ) -> int:
        """End everything opened as this person: sessions and sign-ins as ``end_all`` does, one-time links, and with
        ``applications`` the tokens of applications. With ``agents`` the person's agents stop until they are confirmed.
        Returns the number of sessions ended."""
        for kind in ACCESS_RECORD_KINDS:
            self._storage.records.delete_for_owner(CORE_NAMESPACE, kind, user_id=subject.user.id)
        if applications:
            self._storage.tokens.revoke_for_user(subject.user.id, self._now)
        ended = self.end_all(subject, except_session=except_session)
        if agents:
            self._agent_rules.stop_all(subject)
        return ended

    def _session_lifetimes(self, subject: Subject) -> tuple[timedelta, timedelta]:
        """Idle timeout and maximum lifetime of a session of the person."""
        policy, settings = self._policies.subject_policy(subject), self._settings
        return (
            policy.session_idle_age or settings.session_idle_timeout,
            policy.session_max_age or settings.session_max_age,
        )

    def _continues(self, account: SignedInAccount) -> bool:
        return self.is_live(account) and (account.session.is_impersonated or self.satisfies_policy(account))

    def _is_impersonation_permitted(self, account: SignedInAccount, accounts: Collection[SignedInAccount]) -> bool:
        """True if the manager is signed in at this browser, and may be signed in as the person now."""
        impersonator = next(
            (item for item in accounts if item.subject.user.id == account.session.impersonator_id), None
        )
        return (
            impersonator is not None
            and self.is_live(account)
            and self._continues(impersonator)
            and self._impersonation.is_permitted(impersonator, account.subject)
        )

    def _leave_others(self, subject: Subject, session: Session) -> None:
        """End the other sessions of a user who may have only one."""
        if self._policies.subject_policy(subject).single_session:
            self.end_all(subject, except_session=session.id)

    def _store_proofs(
        self,
        account: SignedInAccount,
        secret: str,
        proofs: tuple[Proof, ...],
        at: datetime,
        ends_at: datetime,
        client_id: str | None,
    ) -> Session | None:
        """The session with these proofs and a new secret; None if it was ended meanwhile."""
        again = replace(
            account.session,
            digest=token_digest(secret),
            proofs=proofs,
            authenticated_at=at,
            selected_at=self._now,
            last_seen_at=self._now,
            ends_at=ends_at,
        )
        try:
            self._storage.sessions.reauthenticate(
                again.id, digest=again.digest, proofs=proofs, authenticated_at=at, seen_at=self._now, ends_at=ends_at
            )
        except RowNotFound:
            return None
        self._record("session.renewed", SignedInAccount(again, account.subject), client_id)
        return again

    def _record(
        self,
        event: str,
        account: SignedInAccount,
        client_id: str | None = None,
        about: Mapping[str, object] | None = None,
    ) -> None:
        session = account.session
        actor_id = session.impersonator_id or account.subject.user.id
        with self._audit.acting_as(actor_id, client_id=client_id, session_id=session.id):
            detail = {"session_id": session.id, "methods": list(session.amr_methods), **(about or {})}
            self._record_about(event, account.subject, detail)

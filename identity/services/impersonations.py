"""Managers signed in as a person: start and end. ``services/sessions.py`` decides which session a browser uses."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from identity.crypto.secrets import new_token
from identity.domain.applications import ApplicationClient
from identity.domain.attempts import MAIL_WINDOW, MAX_MAILS_PER_ADDRESS
from identity.domain.audit import ActorKind, AuditEvent
from identity.domain.errors import Denied
from identity.domain.expirations import earliest
from identity.domain.messages import gettext_lazy
from identity.domain.sessions import Session, SignedInAccount
from identity.domain.tokens import PresentedAccessToken
from identity.domain.users import Subject
from identity.services.access_control import AccessControl
from identity.services.audit import to_json_value
from identity.services.base import Service, translate_storage_errors
from identity.services.commands.impersonations import StartImpersonation
from identity.services.impersonation_rules import ImpersonationRules
from identity.services.sessions import SessionService

#: Sessions that are ended in one transaction.
_AT_ONCE = 100


@dataclass(eq=False, repr=False)
class ImpersonationService(Service):
    """The person always learns of it: by mail, and by the event in their activity."""

    _access: AccessControl
    _rules: ImpersonationRules
    _sessions: SessionService

    def can_start(self, user_id: str, impersonator: SignedInAccount) -> bool:
        """True if the manager may sign in as this person now. Raises NotFound."""
        return self._rules.is_permitted(impersonator, self._get_subject(user_id))

    def start(
        self, user_id: str, command: StartImpersonation, *, impersonator: SignedInAccount, user_agent: str
    ) -> tuple[SignedInAccount, str]:
        """A session of the person for the manager, with its secret. It ends after 15 minutes, or with the first of the
        manager's roles that ends before. Raises NotFound, Denied."""
        subject = self._get_subject(user_id)
        self._rules.require_permitted(impersonator, subject)
        # As many as there are mails about it: none of them may go unnoticed.
        key = f"impersonations:{user_id}"
        if self._storage.attempts.count_use(key, used_at=self._now, window=MAIL_WINDOW, limit=MAX_MAILS_PER_ADDRESS):
            raise Denied(gettext_lazy("Managers have signed in as this person too often. Try again later."))
        secret = new_token()
        session = replace(
            self._sessions.new_session(subject, (), self._now, secret=secret, user_agent=user_agent),
            ends_at=self._end(impersonator.subject),
            impersonator_id=impersonator.subject.user.id,
        )
        with translate_storage_errors("user", user_id):
            self._storage.sessions.add(session)
        detail = {
            "session_id": session.id,
            "reason": command.reason,
            "impersonator": impersonator.subject.login_name,
            "ends_at": to_json_value(session.ends_at),
        }
        self._record_about(AuditEvent.IMPERSONATION_STARTED, subject, detail)
        return SignedInAccount(session, subject), secret

    def start_with_token(
        self, user_id: str, reason: str, *, issued: PresentedAccessToken, client: ApplicationClient
    ) -> SignedInAccount:
        """Like ``start``, by an application that acts for a manager: it may manage, and ``issued`` is the manager's
        access token for the management API. The session in which it was issued is live and satisfies the manager's
        policy; no browser gets the new one. Raises NotFound, Denied, Invalid."""
        instance, manager = self._instance(), issued.subject
        if instance is None or instance.project_id not in issued.token.audience or not client.application.may_manage:
            raise Denied("The token is not for the management API.")
        impersonator = self._sessions.find_live(issued.token.session_id)
        if impersonator is None or manager is None or impersonator.subject.user.id != manager.user.id:
            raise Denied("The token is not from a live session of a manager.")
        if issued.token.actors:
            raise Denied("Someone acts for the manager.")
        self._audit.actor = self._audit.actor.authenticated_as(
            ActorKind.USER, manager.user.id, client_id=client.id, session_id=impersonator.session.id
        )
        command = StartImpersonation.decode({"reason": reason})
        return self.start(user_id, command, impersonator=impersonator, user_agent=client.application.name)[0]

    def find_impersonator(self, account: SignedInAccount) -> Subject | None:
        """The manager who is signed in as this person; None if the person is."""
        id_ = account.session.impersonator_id
        return None if id_ is None else self._storage.users.find_subject(id_)

    def list_impersonators(self, sessions: Iterable[Session]) -> dict[str, str]:
        """The login names of the managers in these sessions, by their ids."""
        ids = {session.impersonator_id for session in sessions if session.impersonator_id is not None}
        found = self._storage.users.find_subjects(sorted(ids)) if ids else {}
        return {id_: found[id_].login_name if id_ in found else id_ for id_ in ids}

    def record_expired(self) -> None:
        """End sessions whose time is over, and record each end once, by whichever process is first."""
        expired = self._storage.sessions.list_expired_impersonations(self._now, _AT_ONCE)
        names = self.list_impersonators(account.session for account in expired)
        for account in expired:
            session = account.session
            if self._storage.sessions.end(session.id, session.ends_at):
                detail = {
                    "session_id": session.id,
                    "impersonator": names[session.impersonator_id or ""],
                    "ends_at": to_json_value(session.ends_at),
                }
                self._record_about(AuditEvent.IMPERSONATION_ENDED, account.subject, detail)

    def _end(self, manager: Subject) -> datetime:
        entries = self._access.load_principal(manager).manager_entries
        latest = self._now + Session.IMPERSONATION_LIFETIME
        return earliest((latest, *(entry.until for entry in entries))) or latest

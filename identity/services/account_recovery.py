"""What people do with their account as a whole."""

from identity.domain.audit import AuditEvent
from identity.domain.errors import NotFound
from identity.domain.users import Subject
from identity.services.base import Service, TransactionState
from identity.services.passwords import PasswordService
from identity.services.sessions import SessionService


class AccountRecoveryService(Service):
    """Whoever calls has made sure that it is the person, as far as each use case asks for that."""

    def __init__(self, state: TransactionState, passwords: PasswordService, sessions: SessionService) -> None:
        super().__init__(state)
        self._passwords, self._sessions = passwords, sessions

    def get_event(self, subject: Subject, event_id: str) -> AuditEvent:
        """What the person has done, or was done to their account. Raises NotFound for whatever concerns others."""
        event = self._storage.audit.find(event_id)
        if event is None or subject.user.id not in (event.actor.id, event.object_id, event.user_id):
            raise NotFound("audit event", event_id)
        return event

    def record_export(self, subject: Subject) -> None:
        """Note that the person takes a copy of all that is kept of them."""
        user_id = subject.user.id
        self._audit.record("user.exported", kind="user", id=user_id, organization_id=subject.organization.id)

    def report_compromise(self, subject: Subject, *, event_id: str = "") -> None:
        """Put everybody out, as somebody else was at the account; ``event_id`` names what they did there.

        Sessions, sign-ins that wait, links and all that applications hold end, and the next sign-in asks for a new
        password. The present one is needed for that: whoever has nothing but a session of the person gains nothing, and
        nobody is locked out. Raises NotFound as ``get_event`` does.
        """
        if event_id:
            self.get_event(subject, event_id)
        user_id = subject.user.id
        self._sessions.revoke_access(subject)
        self._passwords.require_change(user_id)
        self._audit.record(
            "user.reported",
            kind="user",
            id=user_id,
            organization_id=subject.organization.id,
            detail={"event_id": event_id} if event_id else {},
        )

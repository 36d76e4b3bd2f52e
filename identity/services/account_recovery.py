"""What users do with their account as a whole."""

from dataclasses import dataclass

from identity.domain.audit import AuditEvent
from identity.domain.errors import NotFound
from identity.domain.users import Subject
from identity.services.base import Service
from identity.services.passwords import PasswordService
from identity.services.sessions import SessionService


@dataclass(eq=False, repr=False)
class AccountRecoveryService(Service):
    """The caller must have authenticated the user, as recently as each method requires."""

    _passwords: PasswordService
    _sessions: SessionService

    def get_event(self, subject: Subject, event_id: str) -> AuditEvent:
        """An event of the user's own account. Raises NotFound for all others."""
        event = self._storage.audit.find(event_id)
        if event is None or subject.user.id not in (event.actor.id, event.object_id, event.user_id):
            raise NotFound("audit event", event_id)
        return event

    def record_export(self, subject: Subject) -> None:
        self._record_about("user.exported", subject)

    def report_compromise(self, subject: Subject, *, event_id: str = "") -> None:
        """Sign out everywhere because the account is compromised; ``event_id`` names the suspicious event.

        Sessions, pending sign-ins, links and application tokens end, and the next sign-in asks for a new password.
        That needs the current password, so a stolen session gains nothing and the user is not locked out. Raises
        NotFound as ``get_event`` does."""
        if event_id:
            self.get_event(subject, event_id)
        self._sessions.revoke_access(subject)
        self._passwords.require_change(subject.user.id)
        self._record_about("user.reported", subject, {"event_id": event_id} if event_id else {})

"""What people agree to that applications get of them."""

from collections.abc import Iterable

from identity.domain.applications import Client
from identity.domain.consents import Consent
from identity.domain.users import Subject
from identity.services.changes import Look, UseCases, told


class Consents(UseCases):
    """Given once for a set of scopes, remembered, and taken back with all that came of it (Users.disconnect)."""

    _look: Look

    def cover(self, subject: Subject, client: Client, scope: Iterable[str]) -> bool:
        """True if the person has agreed that the application gets all of this."""
        with self._look() as storage:
            given = storage.consents.find(subject.user.id, client.id)
        return given is not None and {*scope} <= {*given.scope}

    def give(self, subject: Subject, client: Client, scope: tuple[str, ...]) -> None:
        """Remember that the person agrees, beside what they agreed to before. Raises NotFound."""
        before = self._storage.consents.find(subject.user.id, client.id)
        consent = Consent(
            user_id=subject.user.id,
            application_id=client.id,
            scope=tuple(dict.fromkeys((*(before.scope if before is not None else ()), *scope))),
            given_at=self._now,
        )
        with told("application", client.id):
            self._storage.consents.set(consent)
        self._record("consent.given", subject, client.id, scope)

    def refuse(self, subject: Subject, client: Client, scope: tuple[str, ...]) -> None:
        """Note that the person does not agree; what they agreed to before stays."""
        self._record("consent.refused", subject, client.id, scope)

    def withdraw(self, subject: Subject, client_id: str) -> bool:
        """Forget what the person agreed to, so that they are asked again; False if there was nothing."""
        before = self._storage.consents.find(subject.user.id, client_id)
        if before is None:
            return False
        with told("application", client_id):
            self._storage.consents.remove(subject.user.id, client_id)
        self._record("consent.withdrawn", subject, client_id, before.scope)
        return True

    def _record(self, event: str, subject: Subject, client_id: str, scope: tuple[str, ...]) -> None:
        with self._audit.acting(subject.user.id, client_id=client_id):
            self._audit.record(
                event,
                kind="application",
                id=client_id,
                organization_id=subject.organization.id,
                detail={"user_id": subject.user.id, "scope": list(scope)},
            )

"""Users' consents to what applications get."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from identity.crypto.secrets import token_digest
from identity.domain.applications import ApplicationClient
from identity.domain.consents import Consent
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.users import Subject
from identity.services.base import Service, translate_storage_errors
from identity.storage.errors import RowNotFound, StaleRow

CONSENT_KIND = "consent"
#: The member of a record with the terms that were agreed to.
_TERMS = "terms"


@dataclass(eq=False, repr=False)
class ConsentService(Service):
    """A consent covers a set of scopes; withdrawing it also revokes what the application got
    (UserService.disconnect). That to an application known by its URL counts for its metadata at that time, which is
    stored with it."""

    _store_url_client: Callable[[ApplicationClient], None]

    def covers_scopes(self, subject: Subject, client: ApplicationClient, scope: Iterable[str]) -> bool:
        """True if the user has consented to all of these scopes."""
        with self._look() as storage:
            record = storage.records.find(*_record_key(subject.user.id, client.id))
        return (
            record is not None
            and {*scope} <= {*_scope(record)}
            and record.value.get(_TERMS, "") == client.application.consent_terms
        )

    def list_by_user(self, user_id: str) -> tuple[Consent, ...]:
        """The user's consents, newest first."""
        return tuple(map(_consent, self._storage.records.list_for_owner(CORE_NAMESPACE, CONSENT_KIND, user_id=user_id)))

    def grant_consent(self, subject: Subject, client: ApplicationClient, scope: tuple[str, ...]) -> None:
        """Add these scopes to the user's consent. Raises NotFound."""
        plugin, kind, key = _record_key(subject.user.id, client.id)
        terms = {}
        if client.application.is_known_by_url:
            self._store_url_client(client)
            terms = {_TERMS: client.application.consent_terms}
        new = Record(
            plugin=plugin,
            kind=kind,
            key=key,
            user_id=subject.user.id,
            application_id=client.id,
            value={"scope": [*scope], **terms},
            created_at=self._now,
        )
        with translate_storage_errors("application", client.id):
            before = self._storage.records.add(new)
            while before is not None:
                both = [*dict.fromkeys((*_scope(before), *scope))]
                try:
                    self._storage.records.replace(
                        replace(new, value={"scope": both, **terms}, version=before.version + 1)
                    )
                    break
                except (StaleRow, RowNotFound):
                    # Another request added or withdrew the consent meanwhile.
                    before = self._storage.records.add(new)
        self._record("consent.given", subject, client.id, scope)

    def record_refusal(self, subject: Subject, client: ApplicationClient, scope: tuple[str, ...]) -> None:
        """Record that the user refuses; an earlier consent stays."""
        self._record("consent.refused", subject, client.id, scope)

    def withdraw_consent(self, subject: Subject, client_id: str) -> bool:
        """Delete the user's consent, so that they are asked again; False if there was none."""
        record_key = _record_key(subject.user.id, client_id)
        before = self._storage.records.find(*record_key)
        if before is None or not self._storage.records.delete(*record_key):
            return False
        self._record("consent.withdrawn", subject, client_id, _scope(before))
        return True

    def _record(self, event: str, subject: Subject, client_id: str, scope: tuple[str, ...]) -> None:
        with self._audit.acting_as(subject.user.id, client_id=client_id):
            self._audit.record(
                event,
                kind="application",
                id=client_id,
                organization_id=subject.organization.id,
                detail={"user_id": subject.user.id, "scope": list(scope)},
            )


def _record_key(user_id: str, application_id: str) -> tuple[str, str, bytes]:
    return CORE_NAMESPACE, CONSENT_KIND, token_digest(f"{user_id}\n{application_id}")


def _consent(record: Record) -> Consent:
    """The record names user and application, since it is deleted with either."""
    return Consent(
        user_id=record.user_id or "",
        application_id=record.application_id or "",
        scope=_scope(record),
        given_at=record.created_at,
    )


def _scope(record: Record) -> tuple[str, ...]:
    scope = record.value.get("scope")
    return tuple(map(str, scope)) if isinstance(scope, list) else ()

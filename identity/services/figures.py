"""Figures: how much is stored, what waits, and what is about to expire, for whoever watches the service."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from identity.domain.outbox import Backlog
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.services.changes import Look, UseCases
from identity.services.legal_holds import LegalHolds
from identity.services.outbox import Delivery
from identity.services.purge import overdue, purged_before
from identity.services.signing_keys import KeyRing
from identity.settings import Settings
from identity.storage.stores.credentials import Expiring
from identity.storage.stores.purges import Purged

#: From here on things are estimated where the storage can, and are "as many and more" where it cannot.
EXACT = 10_000
_MOST_EXPIRING = 1000
_SOON = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What stands in the storage at a moment.

    ``kept`` and ``overdue`` are by kind. Overdue is what should have been purged an interval ago; EXACT stands for as
    many and more. ``signing_key_age`` is None before there is a key; ``signing_key_due`` is the age at which the next
    one takes over. ``expiring`` counts keys and personal access tokens with less than seven days left, by kind.
    """

    kept: Mapping[str, int]
    overdue: Mapping[str, int]
    outbox: Mapping[str, Backlog]
    signing_key_age: timedelta | None
    signing_key_due: timedelta
    expiring: Mapping[str, int]


class Measuring(UseCases):
    """Counts by indexes, up to a bound: nobody waits for it, however much is stored."""

    _look: Look
    _ring: KeyRing
    _settings: Settings
    _legal_holds: LegalHolds
    _deliveries: Mapping[str, Delivery]

    def figures(self) -> Figures:
        """All of them. Raises Unavailable."""
        storage, settings = self._storage, self._settings
        held = self._legal_holds.all().keys()
        active = self._ring.schedule(self._look, self._now).active(self._now)
        return Figures(
            kept={purged.value: storage.purges.kept(purged, EXACT) for purged in Purged},
            overdue={purged.value: self._overdue(purged, held) for purged in Purged},
            outbox={kind: storage.outbox.backlog(kind, self._now) for kind in self._deliveries},
            signing_key_age=None if active is None else max(timedelta(), self._now - active.active_at),
            signing_key_due=settings.signing_key_active_age,
            expiring={
                "service user keys": self._expiring(ServiceUserKey),
                "personal access tokens": self._expiring(PersonalAccessToken),
            },
        )

    def _overdue(self, purged: Purged, held: Collection[str]) -> int:
        before = purged_before(purged, self._settings, self._now - self._settings.purge_interval)
        return 0 if before is None else overdue(self._storage, purged, before, EXACT, held)

    def _expiring(self, kind: type[Expiring]) -> int:
        return len(self._storage.credentials.expiring(kind, self._now, self._now + _SOON, _MOST_EXPIRING))

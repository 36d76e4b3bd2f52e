"""Figures: how much is stored, what waits, and what is about to expire, for whoever watches the service."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.crypto.secrets import digest
from identity.domain.outbox import Backlog
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.records import CORE
from identity.domain.service_user_keys import ServiceUserKey
from identity.services.changes import TransactionState, UseCases
from identity.services.legal_holds import LegalHolds
from identity.services.outbox import Delivery
from identity.services.purge import overdue, purged_before
from identity.services.service_users import EXPIRING_KEYS, EXPIRY_STEPS
from identity.services.signing_keys import KeyRing
from identity.settings import Settings
from identity.storage.errors import Unreadable
from identity.storage.stores.credentials import Expiring
from identity.storage.stores.purges import Purged

#: From here on things are estimated where the storage can, and are "as many and more" where it cannot.
EXACT = 10_000
_MOST_EXPIRING = 1000
_SOON = timedelta(days=7)
#: How many messages are looked at for the oldest.
_LOOKED_AT = 1000
#: For how long what is to be purged can be told to have waited.
_SPANS = tuple(timedelta(hours=hours) for hours in (1, 6, 24, 7 * 24, 30 * 24))


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

    def __init__(
        self,
        state: TransactionState,
        ring: KeyRing,
        settings: Settings,
        legal_holds: LegalHolds,
        deliveries: Mapping[str, Delivery],
    ) -> None:
        super().__init__(state)
        self._ring, self._settings, self._legal_holds = ring, settings, legal_holds
        self._deliveries = deliveries

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

    def waiting(self) -> Mapping[str, timedelta]:
        """For how long the oldest item waits for each sender and each job; zero where none does. Raises Unavailable.

        For a purge it is one of a few spans, and at least so long.
        """
        held = self._legal_holds.all().keys()
        return {
            **{f"outbox: {kind}": self._unsent(kind) for kind, one in self._deliveries.items() if one.enabled},
            "purge": max((self._unpurged(purged, held) for purged in Purged), default=timedelta()),
            "key rotation": self._unrotated(),
            "account deletions": self._undeleted(),
            EXPIRING_KEYS: self._untold(),
        }

    def _unsent(self, kind: str) -> timedelta:
        oldest = self._storage.outbox.oldest(kind, self._now, _LOOKED_AT)
        return self._age(oldest)

    def _unpurged(self, purged: Purged, held: Collection[str]) -> timedelta:
        longest = timedelta()
        for span in sorted({*_SPANS, self._settings.job_alarm_age}):
            before = purged_before(purged, self._settings, self._now - span)
            if before is None or not overdue(self._storage, purged, before, 1, held):
                break
            longest = span
        return longest

    def _unrotated(self) -> timedelta:
        schedule = self._ring.schedule(self._look, self._now)
        active = schedule.active(self._now)
        if active is None or self._ring.opens(schedule.waiting(self._now)):
            return timedelta()
        due = active.active_at + self._settings.signing_key_active_age - self._settings.announcement_age
        return max(timedelta(), self._now - due)

    def _undeleted(self) -> timedelta:
        ids = self._storage.users.to_delete(self._now, 1)
        try:
            person = self._storage.users.find(ids[0]) if ids else None
        except Unreadable:
            return timedelta()
        return self._age(getattr(person, "deletion_at", None))

    def _untold(self) -> timedelta:
        """Since a node last looked for them, or since they are there."""
        soonest = self._now + timedelta(days=EXPIRY_STEPS[0])
        storage = self._storage
        keys = storage.credentials.expiring(ServiceUserKey, self._now, soonest, 1)
        tokens = storage.credentials.expiring(PersonalAccessToken, self._now, soonest, 1)
        since = [*(one.created_at for one in keys), *(one.created_at for one in tokens)]
        if not since:
            return timedelta()
        try:
            lease = storage.records.find(CORE, "lease", digest(EXPIRING_KEYS))
        except Unreadable:
            lease = None
        return self._age(min(since) if lease is None else lease.created_at)

    def _age(self, since: datetime | None) -> timedelta:
        return timedelta() if since is None else max(timedelta(), self._now - since)

    def _overdue(self, purged: Purged, held: Collection[str]) -> int:
        before = purged_before(purged, self._settings, self._now - self._settings.purge_interval)
        return 0 if before is None else overdue(self._storage, purged, before, EXACT, held)

    def _expiring(self, kind: type[Expiring]) -> int:
        return len(self._storage.credentials.expiring(kind, self._now, self._now + _SOON, _MOST_EXPIRING))

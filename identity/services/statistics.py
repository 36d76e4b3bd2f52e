"""Statistics for monitoring: how much is stored, what is queued and what expires soon."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.crypto.secrets import token_digest
from identity.domain.outbox import OutboxBacklog
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.records import CORE_NAMESPACE
from identity.domain.service_user_keys import ServiceUserKey
from identity.services.base import Service
from identity.services.legal_holds import LegalHoldService
from identity.services.outbox import Delivery
from identity.services.purge import count_overdue, purge_cutoff
from identity.services.service_users import EXPIRING_KEYS_JOB, EXPIRY_WARNING_DAYS
from identity.services.signing_keys import SigningKeyService
from identity.storage.errors import UnreadableRow
from identity.storage.stores.credentials import ExpiringCredentialT
from identity.storage.stores.purges import PurgeKind

#: Above this, counts are estimated where the storage can, and reported as this limit where it cannot.
EXACT_COUNT_LIMIT = 10_000
_MOST_EXPIRING = 1000
_SOON = timedelta(days=7)
#: Messages examined for the oldest one.
_LOOKED_AT = 1000
#: Ages of overdue rows are reported in these steps.
_SPANS = tuple(timedelta(hours=hours) for hours in (1, 6, 24, 7 * 24, 30 * 24))


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageStatistics:
    """Contents of the storage at a moment.

    ``row_counts`` and ``overdue_counts`` are by kind. Overdue rows should have been purged an interval ago;
    EXACT_COUNT_LIMIT means that many or more. ``signing_key_age`` is None before there is a key; ``signing_key_due``
    is the age at which the next one takes over. ``expiring_counts`` counts keys and personal access tokens with less
    than seven days left, by kind."""

    row_counts: Mapping[str, int]
    overdue_counts: Mapping[str, int]
    outbox_backlogs: Mapping[str, OutboxBacklog]
    signing_key_age: timedelta | None
    signing_key_due: timedelta
    expiring_counts: Mapping[str, int]


@dataclass(eq=False, repr=False)
class StatisticsService(Service):
    """Counts by index, up to a limit, so that the cost does not grow with the data."""

    _signing_keys: SigningKeyService
    _legal_holds: LegalHoldService
    _deliveries: Mapping[str, Delivery]

    def collect(self) -> StorageStatistics:
        """Raises StorageUnavailable."""
        storage, settings = self._storage, self._settings
        legal_holds = self._legal_holds.list_holds().keys()
        schedule = self._signing_keys.schedule()
        active = [key for name in schedule.by_algorithm if (key := schedule.active_key(name, self._now)) is not None]
        return StorageStatistics(
            row_counts={purged.value: storage.purges.count_stored(purged, EXACT_COUNT_LIMIT) for purged in PurgeKind},
            overdue_counts={purged.value: self._overdue(purged, legal_holds) for purged in PurgeKind},
            outbox_backlogs={kind: storage.outbox.get_backlog(kind, self._now) for kind in self._deliveries},
            signing_key_age=max((self._age(key.active_at) for key in active), default=None),
            signing_key_due=settings.signing_key_active_age,
            expiring_counts={
                "service user keys": self._expiring(ServiceUserKey),
                "personal access tokens": self._expiring(PersonalAccessToken),
            },
        )

    def backlog_ages(self) -> Mapping[str, timedelta]:
        """Age of the oldest queued item of each sender and job; zero for an empty queue. Raises StorageUnavailable. For
        a purge it is rounded down to one of a few steps."""
        legal_holds = self._legal_holds.list_holds().keys()
        return {
            **{
                f"outbox: {kind}": self._unsent(kind)
                for kind, delivery in self._deliveries.items()
                if delivery.is_enabled
            },
            "purge": max((self._unpurged(purged, legal_holds) for purged in PurgeKind), default=timedelta()),
            "key rotation": self._unrotated(),
            "account deletions": self._undeleted(),
            EXPIRING_KEYS_JOB: self._expiry_warning_delay(),
        }

    def _unsent(self, kind: str) -> timedelta:
        oldest = self._storage.outbox.oldest_created_at(kind, self._now, _LOOKED_AT)
        return self._age(oldest)

    def _unpurged(self, purged: PurgeKind, legal_holds: Collection[str]) -> timedelta:
        longest = timedelta()
        for span in sorted({*_SPANS, self._settings.job_alarm_age}):
            before = purge_cutoff(purged, self._settings, self._now - span)
            if before is None or not count_overdue(self._storage, purged, before, 1, legal_holds):
                break
            longest = span
        return longest

    def _unrotated(self) -> timedelta:
        return self._age(self._signing_keys.rotation_due_at())

    def _undeleted(self) -> timedelta:
        ids = self._storage.users.list_due_deletions(self._now, 1)
        try:
            person = self._storage.users.find(ids[0]) if ids else None
        except UnreadableRow:
            return timedelta()
        return self._age(getattr(person, "deletion_at", None))

    def _expiry_warning_delay(self) -> timedelta:
        """Time since a node last looked for expiring credentials, or since they exist."""
        soonest = self._now + timedelta(days=EXPIRY_WARNING_DAYS[0])
        storage = self._storage
        keys = storage.credentials.list_expiring(ServiceUserKey, self._now, soonest, 1)
        tokens = storage.credentials.list_expiring(PersonalAccessToken, self._now, soonest, 1)
        since = [*(key.created_at for key in keys), *(token.created_at for token in tokens)]
        if not since:
            return timedelta()
        try:
            lease = storage.records.find(CORE_NAMESPACE, "lease", token_digest(EXPIRING_KEYS_JOB))
        except UnreadableRow:
            lease = None
        return self._age(min(since) if lease is None else lease.created_at)

    def _age(self, since: datetime | None) -> timedelta:
        return timedelta() if since is None else max(timedelta(), self._now - since)

    def _overdue(self, purged: PurgeKind, legal_holds: Collection[str]) -> int:
        before = purge_cutoff(purged, self._settings, self._now - self._settings.purge_interval)
        return 0 if before is None else count_overdue(self._storage, purged, before, EXACT_COUNT_LIMIT, legal_holds)

    def _expiring(self, kind: type[ExpiringCredentialT]) -> int:
        return len(self._storage.credentials.list_expiring(kind, self._now, self._now + _SOON, _MOST_EXPIRING))

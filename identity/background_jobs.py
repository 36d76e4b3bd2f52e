"""Periodic background jobs, each in its own transactions."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from identity import instrumentation
from identity.background_worker import BackgroundJob
from identity.clock import Clock
from identity.domain.audit import SYSTEM, Actor
from identity.domain.errors import Conflict, NotFound
from identity.services import activity_collector, last_used_tracker, leases
from identity.services.container import Services
from identity.services.process_state import ProcessState
from identity.services.purge import BATCH_SIZE, PurgeBatch, find_expired, purge_batch, purge_cutoff
from identity.services.service_users import EXPIRING_KEYS_JOB
from identity.services.user_imports import USER_IMPORTS_JOB
from identity.storage.errors import StorageUnavailable
from identity.storage.stores.purges import PurgeKind
from identity.user_importer import UserImporter

log = logging.getLogger(__name__)

_EXPIRING_KEYS_INTERVAL = timedelta(hours=6)
_DELETION_INTERVAL = timedelta(hours=1)
_ENDS_OF_ROLES_INTERVAL = timedelta(hours=1)
_UNUSED_CLIENTS_INTERVAL = timedelta(hours=6)
_IMPERSONATIONS_INTERVAL = timedelta(minutes=1)
_USER_IMPORTS_INTERVAL = timedelta(seconds=30)
_LAST_USED_INTERVAL = timedelta(minutes=1)
_PEOPLE_INTERVAL = timedelta(minutes=1)
#: Counting people takes at most this share of a processor.
_PEOPLE_LOAD = 1 / 500
ACTIVITY_JOB = "figures"
#: A process that is killed loses what it collected for at most this long.
ACTIVITY_INTERVAL = timedelta(seconds=10)
#: Minimum pause between batches; it is at least as long as the batch took, so that other writers get their turn.
_BATCH_PAUSE_SECONDS = 0.005


#: Opens services that act for the given actor.
ActorServicesFactory = Callable[[Actor], AbstractContextManager[Services]]


class BackgroundJobs:
    """The background jobs of one process.

    ``relieve`` does storage maintenance that later writers would otherwise have to do; ``stopping`` returns True
    when the process is about to end.
    """

    def __init__(
        self,
        process: ProcessState,
        *,
        transaction: ActorServicesFactory,
        reading: ActorServicesFactory,
        clock: Clock,
        relieve: Callable[[], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._process = process
        self._settings = process.settings
        self._transaction = transaction
        self._reading = reading
        self._clock = clock
        self._relieve = relieve
        self._stopping = stopping
        self._next_people_count = 0.0
        self.user_importer = UserImporter(
            transaction=transaction, reading=reading, clock=clock, stopping=stopping, cost=process.hasher.cost
        )

    @property
    def jobs(self) -> list[BackgroundJob]:
        purge_interval = self._settings.purge_interval
        return [
            BackgroundJob("purge", purge_interval, self.purge_with_lease, has_own_thread=True),
            BackgroundJob("key rotation", purge_interval, self.rotate_signing_key_if_due),
            BackgroundJob(EXPIRING_KEYS_JOB, _EXPIRING_KEYS_INTERVAL, self.record_expiring_keys),
            BackgroundJob("account deletions", _DELETION_INTERVAL, self.delete_due_accounts_with_lease),
            BackgroundJob("ends of roles", _ENDS_OF_ROLES_INTERVAL, self.tidy_ended_roles_with_lease),
            BackgroundJob("unused clients", _UNUSED_CLIENTS_INTERVAL, self.remove_unused_clients_with_lease),
            BackgroundJob("impersonations", _IMPERSONATIONS_INTERVAL, self.record_expired_impersonations),
            BackgroundJob("last uses", _LAST_USED_INTERVAL, self.flush_last_used),
            BackgroundJob(ACTIVITY_JOB, ACTIVITY_INTERVAL, self.flush_activity),
            BackgroundJob(USER_IMPORTS_JOB, _USER_IMPORTS_INTERVAL, self.user_importer.run, has_own_thread=True),
            BackgroundJob("people", _PEOPLE_INTERVAL, self.count_people_with_lease, has_own_thread=True),
        ]

    def purge(self) -> dict[str, int]:
        """Delete all expired rows in batches; returns the number of deleted rows by kind.

        Holds the lease of the background job, if it is free, so that no other process purges at the same time. If
        one kind fails, the others are still purged; then the first error is raised.
        """
        turn = self._purge_lease()
        turn.acquire()

        def goes_on() -> bool:
            turn.renew()
            return not self._stopping()

        return self._purge(goes_on)

    def _purge_lease(self) -> leases.Lease:
        span = self._settings.purge_interval / 2
        return leases.Lease("purge", span, lambda: self._transaction(SYSTEM), self._clock)

    def _purge(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        # Expired sessions are among what is purged.
        self.record_expired_impersonations()
        now = self._clock()
        deleted: Counter[str] = Counter()
        failures: list[Exception] = []
        for kind in PurgeKind:
            before = purge_cutoff(kind, self._settings, now)
            if before is not None:
                try:
                    self._purge_kind(kind, before, goes_on, deleted)
                except StorageUnavailable as problem:
                    log.warning("%s could not all be purged: %s", kind, problem)
                    failures.append(problem)
                except Exception as problem:
                    log.exception("%s could not all be purged", kind)
                    failures.append(problem)
        if goes_on():
            with self._transaction(SYSTEM) as services:
                deleted["signing keys"] = services.signing_keys.remove_unpublished()
                deleted["figures"] = services.figures.remove_old()
                deleted["sent mails"] = services.sent_mails.remove_old()
        if failures:
            raise failures[0]
        return {kind: count for kind, count in deleted.items() if count}

    def _purge_kind(
        self, kind: PurgeKind, before: datetime, goes_on: Callable[[], bool], deleted: Counter[str]
    ) -> None:
        limit, since = BATCH_SIZE, None
        while goes_on():
            with self._reading(SYSTEM) as services:
                purge_candidates = find_expired(
                    services.storage, kind, before, services.legal_holds.list_holds().keys(), since
                )
            start, so_far = 0, deleted[kind]
            while start < len(purge_candidates.keys) and goes_on():
                batch = self._purge_batch(kind, purge_candidates.keys[start : start + limit], before)
                deleted[kind] += batch.deleted_count
                start, limit = start + limit, batch.next_limit(limit)
            # Rows found again at the same position are being changed by others.
            if purge_candidates.cursor is None or (purge_candidates.cursor == since and deleted[kind] == so_far):
                return
            if not purge_candidates.keys:
                time.sleep(_BATCH_PAUSE_SECONDS)
            since = purge_candidates.cursor

    def _purge_batch(self, kind: PurgeKind, keys: Sequence[Any], before: datetime) -> PurgeBatch:
        """Delete these rows, then pause for other writers."""
        with self._transaction(SYSTEM) as services:
            # Accessing the first store waits for the write lock.
            _ = services.storage.purges
            began = time.monotonic()
            # Read for each batch: a hold takes effect from the moment it is placed.
            count = purge_batch(services.storage, kind, keys, before, services.legal_holds.list_holds().keys())
            deleted = time.monotonic()
        ended = time.monotonic()
        batch = PurgeBatch(count, deleted - began, ended - began)
        instrumentation.record_duration(instrumentation.Measurement.PURGE, kind.value, batch.total_seconds)
        self._relieve()
        time.sleep(max(_BATCH_PAUSE_SECONDS, batch.total_seconds - (time.monotonic() - ended)))
        return batch

    def purge_with_lease(self) -> None:
        """Purge while this node holds the lease."""
        turn = self._purge_lease()
        if turn.acquire():
            self._purge(lambda: not self._stopping() and turn.renew())

    def rotate_signing_key_if_due(self) -> None:
        """Announce the next signing keys when the active ones are old enough, and follow changes of the settings."""
        with self._reading(SYSTEM) as services:
            due = services.signing_keys.rotation_due()
        if due:
            with self._transaction(SYSTEM) as services:
                services.signing_keys.rotate_due()

    def record_expiring_keys(self) -> None:
        """Record audit events for keys and personal access tokens that expire soon, if this node gets the lease."""
        if self._acquire_lease(EXPIRING_KEYS_JOB, _EXPIRING_KEYS_INTERVAL / 2):
            with self._transaction(SYSTEM) as services:
                services.service_users.record_expiring()

    def tidy_ended_roles(self) -> int:
        """Record what ends soon, and remove roles and project grants that have ended; returns the number removed."""
        with self._transaction(SYSTEM) as services:
            services.ends_of_roles.record_ending()
        removed = 0
        while not self._stopping():
            with self._transaction(SYSTEM) as services:
                count = services.ends_of_roles.remove_ended()
            removed += count
            if not count:
                break
            time.sleep(_BATCH_PAUSE_SECONDS)
        return removed

    def tidy_ended_roles_with_lease(self) -> None:
        if self._acquire_lease("ends of roles", _ENDS_OF_ROLES_INTERVAL / 2):
            self.tidy_ended_roles()

    def remove_unused_clients(self) -> int:
        """Delete dynamic clients that nobody has used for too long; returns their number."""
        with self._reading(SYSTEM) as services:
            found = tuple(services.applications.list_unused_clients())
        return sum(self._remove_unused_client(client_id) for client_id in found if not self._stopping())

    def _remove_unused_client(self, client_id: str) -> bool:
        try:
            with self._transaction(SYSTEM) as services:
                return services.applications.remove_unused_client(client_id)
        except NotFound:
            return False

    def remove_unused_clients_with_lease(self) -> None:
        if self._acquire_lease("unused clients", _UNUSED_CLIENTS_INTERVAL / 2):
            self.remove_unused_clients()

    def record_expired_impersonations(self) -> None:
        """Record the ends of sessions in which a manager was signed in as another. Writes only if there are some."""
        with self._reading(SYSTEM) as services:
            expired = services.storage.sessions.list_expired_impersonations(services.now, 1)
        if expired:
            with self._transaction(SYSTEM) as services:
                services.impersonations.record_expired()

    def delete_due_accounts(self) -> int:
        """Delete accounts whose deletion was requested long enough ago; returns their number."""
        deleted = 0
        while True:
            with self._reading(SYSTEM) as services:
                due = services.account_deletions.list_due()
            count = sum(self._delete_account(user_id) for user_id in due if not self._stopping())
            deleted += count
            if not count or self._stopping():
                return deleted
            time.sleep(_BATCH_PAUSE_SECONDS)

    def _delete_account(self, user_id: str) -> bool:
        try:
            with self._transaction(SYSTEM) as services:
                return services.account_deletions.delete_account(user_id)
        except (Conflict, NotFound):
            log.info("an account is kept, or gone, that was to be deleted at this moment")
            return False

    def delete_due_accounts_with_lease(self) -> None:
        if self._acquire_lease("account deletions", _DELETION_INTERVAL / 2):
            self.delete_due_accounts()

    def flush_last_used(self) -> None:
        """Store the times at which secrets and personal access tokens were last used in this process."""
        last_uses = self._process.last_used_tracker.drain()
        if not last_uses:
            return
        try:
            with self._transaction(SYSTEM) as services:
                last_used_tracker.write_last_used(last_uses, services.storage)
        except Exception:
            self._process.last_used_tracker.restore(last_uses)
            raise

    def flush_activity(self) -> None:
        """Store what this process has counted and logged."""
        counts, requests = self._process.activity_collector.drain()
        if not counts and not requests:
            return
        try:
            with self._transaction(SYSTEM) as services:
                activity_collector.write_activity(services.storage, counts, requests)
        except Exception:
            # The log may be what cannot be written, and is worth less.
            self._process.activity_collector.restore(counts)
            raise

    def count_people(self) -> None:
        """Store how many people there are, and how many of them are active and protected."""
        with self._reading(SYSTEM) as services:
            changed = services.figures.find_changed_levels()
        if changed:
            with self._transaction(SYSTEM) as services:
                services.storage.figures.put(changed)

    def count_people_with_lease(self) -> None:
        """Count people if it is time: it reads all of them, so it pauses in proportion to how long it took."""
        began = time.monotonic()
        if began >= self._next_people_count and self._acquire_lease("people", _PEOPLE_INTERVAL * 0.9):
            self.count_people()
            self._next_people_count = time.monotonic() + (time.monotonic() - began) / _PEOPLE_LOAD

    def _acquire_lease(self, name: str, span: timedelta) -> bool:
        now = self._clock()
        with self._transaction(SYSTEM) as services:
            return leases.acquire_lease(services.storage, name, starts_at=now, expires_at=now + span)

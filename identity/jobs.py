"""Jobs: what is done in the background, now and then, each in transactions of its own."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from identity import watching
from identity.clock import Clock
from identity.domain.audit import SYSTEM, Actor
from identity.domain.errors import Conflict, NotFound
from identity.services import last_uses, leases
from identity.services.bundle import Services
from identity.services.process_state import ProcessState
from identity.services.purge import BATCH, Batch, find, purge, purged_before
from identity.services.service_users import EXPIRING_KEYS
from identity.storage.errors import Unavailable
from identity.storage.stores.purges import Purged
from identity.worker import Job

log = logging.getLogger(__name__)

_EXPIRY_INTERVAL = timedelta(hours=6)
_DELETION_INTERVAL = timedelta(hours=1)
_USES_INTERVAL = timedelta(minutes=1)
#: Between batches others that wait to write have their turn, for as long as the batch took or at least for this.
_BREATH = 0.005


#: Opens use cases for whoever acts.
Open = Callable[[Actor], AbstractContextManager[Services]]


class Jobs:
    """The background work of one process. ``relieve`` does what later writers would have to do for what was written,
    ``stopping`` tells that the process is about to end."""

    def __init__(
        self,
        process: ProcessState,
        *,
        transaction: Open,
        reading: Open,
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

    @property
    def table(self) -> list[Job]:
        """Each with its interval."""
        purge_interval = self._settings.purge_interval
        return [
            Job("purge", purge_interval, self.purge_if_free, alone=True),
            Job("key rotation", purge_interval, self.rotate_if_due),
            Job(EXPIRING_KEYS, _EXPIRY_INTERVAL, self.note_expiring_keys),
            Job("account deletions", _DELETION_INTERVAL, self.delete_accounts_if_free),
            Job("last uses", _USES_INTERVAL, self.write_last_uses),
        ]

    def purge(self) -> dict[str, int]:
        """Delete all that has expired, batch by batch; returns how many of each kind went.

        Who does it by themselves stays away meanwhile, if nobody is at it already. Where one kind cannot be purged, the
        others are; then the first failure is raised.
        """
        turn = self._purge_turn()
        turn.begin()

        def goes_on() -> bool:
            turn.goes_on()
            return not self._stopping()

        return self._purge(goes_on)

    def _purge_turn(self) -> leases.Turn:
        span = self._settings.purge_interval / 2
        return leases.Turn("purge", span, transaction=lambda: self._transaction(SYSTEM), clock=self._clock)

    def _purge(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        now = self._clock()
        deleted: Counter[str] = Counter()
        failures: list[Exception] = []
        for kind in Purged:
            before = purged_before(kind, self._settings, now)
            if before is not None:
                try:
                    self._purge_all(kind, before, goes_on, deleted)
                except Unavailable as problem:
                    log.warning("%s could not all be purged: %s", kind, problem)
                    failures.append(problem)
                except Exception as problem:
                    log.exception("%s could not all be purged", kind)
                    failures.append(problem)
        if goes_on():
            with self._transaction(SYSTEM) as services:
                deleted["signing keys"] = services.signing_keys.remove_unpublished()
        if failures:
            raise failures[0]
        return {kind: count for kind, count in deleted.items() if count}

    def _purge_all(self, kind: Purged, before: datetime, goes_on: Callable[[], bool], deleted: Counter[str]) -> None:
        limit, since = BATCH, None
        while goes_on():
            with self._reading(SYSTEM) as services:
                found = find(services.storage, kind, before, services.legal_holds.all().keys(), since)
            start, so_far = 0, deleted[kind]
            while start < len(found.keys) and goes_on():
                batch = self._purge_some(kind, found.keys[start : start + limit], before)
                deleted[kind] += batch.gone
                start, limit = start + limit, batch.next_limit(limit)
            # What is found in the same place again is what others are changing.
            if found.last is None or (found.last == since and deleted[kind] == so_far):
                return
            if not found.keys:
                time.sleep(_BREATH)
            since = found.last

    def _purge_some(self, kind: Purged, keys: Sequence[Any], before: datetime) -> Batch:
        """Delete these, and let others have their turn."""
        with self._transaction(SYSTEM) as services:
            # The turn to write may have to be waited for, and comes with the first store that is asked for.
            _ = services.storage.purges
            began = time.monotonic()
            # Asked each time: who places a hold wants what is there at that moment.
            gone = purge(services.storage, kind, keys, before, services.legal_holds.all().keys())
            deleted = time.monotonic()
        ended = time.monotonic()
        batch = Batch(gone, deleted - began, ended - began)
        watching.took(watching.PURGE, kind.value, batch.whole)
        self._relieve()
        time.sleep(max(_BREATH, batch.whole - (time.monotonic() - ended)))
        return batch

    def purge_if_free(self) -> None:
        """Purge, unless another node is at it, and for as long as none is."""
        turn = self._purge_turn()
        if turn.begin():
            self._purge(lambda: not self._stopping() and turn.goes_on())

    def rotate_if_due(self) -> None:
        """Announce the next signing key when the active one is old enough."""
        with self._reading(SYSTEM) as services:
            due = services.signing_keys.rotation_due()
        if due:
            with self._transaction(SYSTEM) as services:
                services.signing_keys.rotate()

    def note_expiring_keys(self) -> None:
        """Write audit events for keys and personal access tokens that expire soon, unless another node is at it."""
        if self._acquire(EXPIRING_KEYS, _EXPIRY_INTERVAL / 2):
            with self._transaction(SYSTEM) as services:
                services.service_users.note_expiring()

    def delete_accounts(self) -> int:
        """Delete the accounts whose people asked for it long enough ago; returns how many went."""
        deleted = 0
        while True:
            with self._reading(SYSTEM) as services:
                due = services.deletions.due()
            gone = sum(self._delete_account(user_id) for user_id in due if not self._stopping())
            deleted += gone
            if not gone or self._stopping():
                return deleted
            time.sleep(_BREATH)

    def _delete_account(self, user_id: str) -> bool:
        try:
            with self._transaction(SYSTEM) as services:
                return services.deletions.carry_out(user_id)
        except (Conflict, NotFound):
            log.info("an account is kept, or gone, that was to be deleted at this moment")
            return False

    def delete_accounts_if_free(self) -> None:
        """The same, unless another node is at it."""
        if self._acquire("account deletions", _DELETION_INTERVAL / 2):
            self.delete_accounts()

    def write_last_uses(self) -> None:
        """Write when secrets and personal access tokens were last used, as far as this process knows."""
        taken = self._process.uses.take()
        if not taken:
            return
        try:
            with self._transaction(SYSTEM) as services:
                last_uses.write(taken, services.storage)
        except Exception:
            self._process.uses.give_back(taken)
            raise

    def _acquire(self, name: str, span: timedelta) -> bool:
        now = self._clock()
        with self._transaction(SYSTEM) as services:
            return leases.acquire(services.storage, name, at=now, until=now + span)

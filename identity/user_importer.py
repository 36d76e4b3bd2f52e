"""Runs imports of people in the background: batches of lines, each in its own transaction, on one node at a time."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta

from identity.clock import Clock
from identity.crypto.argon2id import Argon2Cost
from identity.domain.audit import SYSTEM, Actor, ActorKind
from identity.domain.errors import Conflict, Denied, DomainError, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.user_imports import UserImportState
from identity.services.container import Services
from identity.services.leases import Lease
from identity.services.user_imports import USER_IMPORTS_JOB, ImportBatch, LineResult, refuse_line
from identity.storage.errors import UnreadableRow

log = logging.getLogger(__name__)

#: Must exceed the longest time that one batch takes, with the hashes of its lines.
_LEASE_SPAN = timedelta(minutes=5)
_RIGHTS_LOST = gettext_lazy("The person who started this import may not create users anymore.")


class _CheckOnly(Exception):
    """Aborts the transaction of a batch that was only checked."""


class UserImporter:
    """A crash loses nothing: the next batch is part of what a transaction commits."""

    def __init__(
        self,
        *,
        transaction: Callable[[Actor], AbstractContextManager[Services]],
        reading: Callable[[Actor], AbstractContextManager[Services]],
        clock: Clock,
        stopping: Callable[[], bool],
        cost: Argon2Cost,
    ) -> None:
        self._transaction = transaction
        self._reading = reading
        self._stopping = stopping
        self._cost = cost
        self._lease = Lease(USER_IMPORTS_JOB, _LEASE_SPAN, lambda: transaction(SYSTEM), clock)

    def run(self) -> timedelta | None:
        """Work on what is queued; returns a delay if another node is at it, which may die before it ends."""
        if not self._list_queued():
            return None
        if not self._lease.acquire():
            return _LEASE_SPAN
        failed: set[str] = set()
        try:
            while queued := [item for item in self._list_queued() if item not in failed]:
                # A batch of each in turn, so that no import waits for a long one.
                for import_id in queued:
                    if self._stopping() or not self._lease.renew():
                        return None
                    try:
                        if not self._advance(import_id):
                            with self._transaction(SYSTEM) as services:
                                services.user_imports.remove_from_queue(import_id)
                    except UnreadableRow:
                        log.exception("an import of people cannot go on: %s", import_id)
                        failed.add(import_id)
        finally:
            self._lease.release()
        return None

    def _list_queued(self) -> tuple[str, ...]:
        with self._reading(SYSTEM) as services:
            return services.user_imports.list_queued()

    def _advance(self, import_id: str) -> bool:
        """Do the next batch; False if nothing is left."""
        with self._reading(SYSTEM) as services:
            batch = services.user_imports.find_next_batch(import_id)
        if batch is None:
            return False
        try:
            if batch.user_import.state is UserImportState.CHECKING:
                results = self._check(batch)
                with self._transaction(SYSTEM) as services:
                    services.user_imports.store_results(batch.user_import, results)
            else:
                # Slow, so outside of the transaction.
                sealed = {number: foreign.seal(self._cost) for number, foreign in batch.foreign_hashes.items()}
                self._import(batch, sealed)
        except Denied:
            with self._transaction(SYSTEM) as services:
                services.user_imports.stop(import_id, _RIGHTS_LOST)
            return False
        except NotFound:
            log.info("an import of people ended: it was discarded, or its organization or starter is gone")
            with self._transaction(SYSTEM) as services:
                services.user_imports.stop(import_id, _RIGHTS_LOST)
            return False
        except Conflict as conflict:
            log.info("a batch of an import of people is repeated: %s", conflict)
        return True

    def _check(self, batch: ImportBatch) -> list[LineResult]:
        """What would become of the lines: they are imported, and the transaction is aborted."""
        try:
            with self._transaction(_actor(batch)) as services:
                results = services.user_imports.import_lines(batch.user_import, batch.lines, {})
                raise _CheckOnly
        except _CheckOnly:
            return results

    def _import(self, batch: ImportBatch, sealed: Mapping[int, str]) -> None:
        actor = _actor(batch)
        try:
            with self._transaction(actor) as services:
                results = services.user_imports.import_lines(batch.user_import, batch.lines, sealed)
                services.user_imports.store_results(batch.user_import, results)
            return
        except (Denied, NotFound):
            raise
        except DomainError as problem:
            log.info("an import of people goes on line by line: %s", problem)
        results = []
        for line in batch.lines:
            try:
                with self._transaction(actor) as services:
                    results += services.user_imports.import_lines(batch.user_import, [line], sealed)
            except (Denied, NotFound):
                raise
            except DomainError as problem:
                results.append(refuse_line(line, problem))
        with self._transaction(actor) as services:
            services.user_imports.store_results(batch.user_import, results)


def _actor(batch: ImportBatch) -> Actor:
    return Actor(kind=ActorKind.USER, id=batch.user_import.started_by)

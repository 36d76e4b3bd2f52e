"""UnitOfWork: the services of one transaction."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from identity.cached_property import cached_property
from identity.domain.audit import Actor, AuditEvent
from identity.domain.instance import Instance
from identity.services.audit import AuditRecorder
from identity.services.base import ReadSessionFactory, TransactionState
from identity.services.container import Services
from identity.services.deferred_storage import DeferredStorage
from identity.services.process_state import ProcessState
from identity.storage.backend import Storage


class UnitOfWork(Services):
    """Services over a storage that is opened on first use. ``open_storage`` opens the storage of the transaction,
    ``read_session_factory`` one to read from before the first write. Without it the transaction's storage serves for
    both."""

    storage: DeferredStorage

    def __init__(
        self,
        process: ProcessState,
        open_storage: Callable[[], Storage],
        now: datetime,
        actor: Actor | Callable[[], Actor],
        *,
        read_session_factory: ReadSessionFactory | None = None,
    ) -> None:
        storage = DeferredStorage(open_storage)
        audit = AuditRecorder(storage, now, actor, self.schedule_after_commit, self._on_event)
        state = TransactionState(
            storage, audit, now, self.read_session, self.find_instance, process.settings, process.sealer
        )
        super().__init__(process, state)
        self._look = read_session_factory
        #: Called at the first change or queued message, to schedule the work after the commit.
        self.on_after_commit_needed: Callable[[], None] | None = None
        self._has_effect = False
        #: Returns the language of the acting user.
        self.language_getter: Callable[[], str] = str
        #: Kinds of the messages queued in this transaction.
        self.queued_kinds: set[str] = set()

    @cached_property
    def language(self) -> str:
        return self.language_getter()

    def read_session(self) -> AbstractContextManager[Storage]:
        return nullcontext(self.storage) if self._look is None or self.storage.opened else self._look()

    def find_instance(self) -> Instance | None:
        # Cache committed data only: this transaction may be the bootstrap itself, and may fail.
        if self._process.instance is None:
            with nullcontext(self.storage) if self._look is None else self._look() as committed:
                self._process.instance = committed.organizations.find_instance()
        return self._process.instance or self.storage.organizations.find_instance()

    @property
    def refused_events(self) -> list[AuditEvent]:
        """Refused attempts, to be written after the transaction."""
        return self.audit.refused_events

    def close(self) -> None:
        self.__dict__.clear()

    def schedule_after_commit(self) -> None:
        if not self._has_effect and self.on_after_commit_needed is not None:
            self.on_after_commit_needed()
        self._has_effect = True

    def _note_queued(self, kind: str) -> None:
        self.schedule_after_commit()
        self.queued_kinds.add(kind)

    def _on_event(self, event: AuditEvent) -> None:
        self.outbox.queue_event(event)
        self.notifications.notify(event)

"""The backend and its transactions: readers share the committed state, a single writer creates the next one."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from identity.storage.backend import Backend, Storage
from identity.storage.errors import StorageUnavailable
from identity.storage.memory.application_requests import MemoryApplicationRequestStore
from identity.storage.memory.applications import MemoryApplicationStore
from identity.storage.memory.attempts import MemoryAttemptStore
from identity.storage.memory.attributes import MemoryAttributeMappingStore, MemoryAttributeStore
from identity.storage.memory.audit import MemoryAuditStore
from identity.storage.memory.authorization_requests import MemoryAuthorizationRequestStore
from identity.storage.memory.credentials import MemoryCredentialStore
from identity.storage.memory.deletion_impact import MemoryDeletionImpactStore
from identity.storage.memory.figures import MemoryFigureStore
from identity.storage.memory.groups import (
    MemoryGroupGrantStore,
    MemoryGroupManagerStore,
    MemoryGroupMappingStore,
    MemoryGroupMemberStore,
    MemoryGroupStore,
)
from identity.storage.memory.managers import MemoryManagerStore
from identity.storage.memory.organizations import MemoryOrganizationStore
from identity.storage.memory.outbox import MemoryOutboxStore
from identity.storage.memory.project_grants import MemoryProjectGrantStore
from identity.storage.memory.projects import MemoryProjectStore
from identity.storage.memory.purges import MemoryPurgeStore
from identity.storage.memory.records import MemoryRecordStore
from identity.storage.memory.sealed_values import MemorySealedValueStore
from identity.storage.memory.search import MemorySearchStore
from identity.storage.memory.sent_mails import MemorySentMailStore
from identity.storage.memory.sessions import MemorySessionStore
from identity.storage.memory.signing_keys import MemorySigningKeyStore
from identity.storage.memory.tables import MemoryTables
from identity.storage.memory.tokens import MemoryTokenStore
from identity.storage.memory.upstream_providers import MemoryUpstreamProviderStore
from identity.storage.memory.user_grants import MemoryUserGrantStore
from identity.storage.memory.users import MemoryUserStore
from identity.storage.memory.webhook_deliveries import MemoryWebhookDeliveryStore
from identity.storage.memory.webhooks import MemoryWebhookStore
from identity.storage.transaction_participant import TransactionParticipant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction, ITransactionManager

#: Seconds that a writer waits for the one before.
WRITE_LOCK_TIMEOUT = 10


#: The rows of each table by their keys: frozen values, which pickle can store.
MemoryState = Mapping[str, dict[Any, Any]]


class MemoryStorage(Storage):
    def __init__(self, tables: MemoryTables) -> None:
        self.organizations = MemoryOrganizationStore(tables, tables.organizations)
        self.projects = MemoryProjectStore(tables, tables.projects)
        self.project_grants = MemoryProjectGrantStore(tables, tables.project_grants)
        self.user_grants = MemoryUserGrantStore(tables, tables.user_grants)
        self.groups = MemoryGroupStore(tables, tables.groups)
        self.group_members = MemoryGroupMemberStore(tables, tables.group_members)
        self.group_grants = MemoryGroupGrantStore(tables, tables.group_grants)
        self.group_managers = MemoryGroupManagerStore(tables, tables.group_managers)
        self.group_mappings = MemoryGroupMappingStore(tables, tables.group_mappings)
        self.users = MemoryUserStore(tables, tables.users)
        self.attributes = MemoryAttributeStore(tables, tables.attribute_definitions)
        self.attribute_mappings = MemoryAttributeMappingStore(tables, tables.attribute_mappings)
        self.credentials = MemoryCredentialStore(tables)
        self.applications = MemoryApplicationStore(tables, tables.applications)
        self.webhooks = MemoryWebhookStore(tables, tables.webhooks)
        self.webhook_deliveries = MemoryWebhookDeliveryStore(tables)
        self.upstream_providers = MemoryUpstreamProviderStore(tables, tables.upstream_providers)
        self.managers = MemoryManagerStore(tables, tables.managers)
        self.sessions = MemorySessionStore(tables)
        self.authorization_requests = MemoryAuthorizationRequestStore(tables)
        self.attempts = MemoryAttemptStore(tables)
        self.tokens = MemoryTokenStore(tables)
        self.signing_keys = MemorySigningKeyStore(tables)
        self.outbox = MemoryOutboxStore(tables)
        self.audit = MemoryAuditStore(tables)
        self.records = MemoryRecordStore(tables)
        self.figures = MemoryFigureStore(tables)
        self.sent_mails = MemorySentMailStore(tables)
        self.application_requests = MemoryApplicationRequestStore(tables)
        self.deletion_impact = MemoryDeletionImpactStore(tables)
        self.purges = MemoryPurgeStore(tables)
        self.sealed_values = MemorySealedValueStore(tables)
        self.search = MemorySearchStore(tables)


class MemoryBackend(Backend):
    """Keeps one committed state, which is replaced as a whole and never changed.

    A subclass that keeps it elsewhere stores it in ``publish`` and fetches it in ``refresh``.
    """

    name: ClassVar[str] = "memory"
    is_concurrent: ClassVar[bool] = False
    is_durable: ClassVar[bool] = False
    has_write_conflicts = False

    def __init__(self) -> None:
        self._committed: MemoryState = {}
        self._write_lock = threading.Lock()

    def copy_state_from(self, memory_backend: "MemoryBackend") -> None:
        """Start from the other backend's current state; changes afterwards are independent."""
        self._committed = memory_backend._committed

    def publish(self, state: MemoryState) -> None:
        """Make this the committed state, at the end of a transaction; there is no other writer meanwhile."""
        self._committed = state

    def refresh(self) -> None:
        """Called before each transaction."""

    @contextmanager
    def read_session(self) -> Iterator[Storage]:
        self.refresh()
        yield MemoryStorage(MemoryTables.from_state(self._committed, writable=False))

    def snapshot(self) -> AbstractContextManager[Storage]:
        # The committed state is immutable.
        return self.read_session()

    def join_transaction(self, transaction_manager: "ITransactionManager") -> Storage:
        transaction = transaction_manager.get()
        try:
            participant: MemoryTransactionParticipant = transaction.data(self)
        except KeyError:
            participant = self._create_participant(transaction, transaction_manager)
        return participant.storage

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        return ()

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _create_participant(
        self, transaction: "ITransaction", transactions: "ITransactionManager"
    ) -> "MemoryTransactionParticipant":
        if not self._write_lock.acquire(timeout=WRITE_LOCK_TIMEOUT):
            raise StorageUnavailable("another transaction has been writing for too long")
        try:
            participant = MemoryTransactionParticipant(self, transactions)
        except BaseException:
            self._write_lock.release()
            raise
        try:
            transaction.join(participant)
            transaction.set_data(self, participant)
        except BaseException:
            participant.abort(transaction)
            raise
        return participant

    def begin_write(self) -> MemoryTables:
        """The committed state, writable by the holder of the lock."""
        self.refresh()
        return MemoryTables.from_state(self._committed, writable=True)

    def end_write(self, tables: MemoryTables, *, commit: bool) -> None:
        """Make the tables the committed state, or discard them, and release the lock."""
        try:
            tables.close()
            if commit:
                self.publish(tables.state())
        finally:
            self._write_lock.release()


class MemoryTransactionParticipant(TransactionParticipant):
    """Publishes the changes at the commit, or discards them."""

    def __init__(self, backend: MemoryBackend, transactions: "ITransactionManager") -> None:
        super().__init__(transactions)
        self._backend = backend
        self._tables = backend.begin_write()
        self._over = False
        self.storage = MemoryStorage(self._tables)

    def tpc_finish(self, transaction: "ITransaction") -> None:
        self._finish(commit=True)

    def abort(self, transaction: "ITransaction") -> None:
        self._finish(commit=False)

    tpc_abort = abort

    def _finish(self, *, commit: bool) -> None:
        if not self._over:
            self._over = True
            self._backend.end_write(self._tables, commit=commit)

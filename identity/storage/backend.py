"""Backend (one per process) and Storage (one per transaction)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from identity.instrumentation import PoolUsage
from identity.storage.dump import StorageDump
from identity.storage.errors import StorageUnavailable
from identity.storage.stores.application_requests import ApplicationRequestStore
from identity.storage.stores.applications import ApplicationStore
from identity.storage.stores.attempts import AttemptStore
from identity.storage.stores.attributes import AttributeMappingStore, AttributeStore
from identity.storage.stores.audit import AuditStore
from identity.storage.stores.authorization_requests import AuthorizationRequestStore
from identity.storage.stores.credentials import CredentialStore
from identity.storage.stores.deletion_impact import DeletionImpactStore
from identity.storage.stores.figures import FigureStore
from identity.storage.stores.groups import (
    GroupGrantStore,
    GroupManagerStore,
    GroupMappingStore,
    GroupMemberStore,
    GroupStore,
)
from identity.storage.stores.managers import ManagerStore
from identity.storage.stores.organizations import OrganizationStore
from identity.storage.stores.outbox import OutboxStore
from identity.storage.stores.project_grants import ProjectGrantStore
from identity.storage.stores.projects import ProjectStore
from identity.storage.stores.purges import PurgeStore
from identity.storage.stores.records import RecordStore
from identity.storage.stores.sealed_values import SealedValueStore
from identity.storage.stores.search import SearchStore
from identity.storage.stores.sent_mails import SentMailStore
from identity.storage.stores.sessions import SessionStore
from identity.storage.stores.signing_keys import SigningKeyStore
from identity.storage.stores.tokens import TokenStore
from identity.storage.stores.upstream_providers import UpstreamProviderStore
from identity.storage.stores.user_grants import UserGrantStore
from identity.storage.stores.users import UserStore
from identity.storage.stores.webhook_deliveries import WebhookDeliveryStore
from identity.storage.stores.webhooks import WebhookStore

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager


class Storage(ABC):
    """All stores, in one transaction or on one read connection. A writing Storage sees its own changes; others see all
    of them after the commit. Storages are not shared between threads."""

    organizations: OrganizationStore
    projects: ProjectStore
    project_grants: ProjectGrantStore
    user_grants: UserGrantStore
    groups: GroupStore
    group_members: GroupMemberStore
    group_grants: GroupGrantStore
    group_managers: GroupManagerStore
    group_mappings: GroupMappingStore
    users: UserStore
    attributes: AttributeStore
    attribute_mappings: AttributeMappingStore
    credentials: CredentialStore
    applications: ApplicationStore
    upstream_providers: UpstreamProviderStore
    webhooks: WebhookStore
    webhook_deliveries: WebhookDeliveryStore
    managers: ManagerStore
    sessions: SessionStore
    authorization_requests: AuthorizationRequestStore
    attempts: AttemptStore
    tokens: TokenStore
    signing_keys: SigningKeyStore
    outbox: OutboxStore
    sent_mails: SentMailStore
    audit: AuditStore
    records: RecordStore
    figures: FigureStore
    application_requests: ApplicationRequestStore
    deletion_impact: DeletionImpactStore
    purges: PurgeStore
    sealed_values: SealedValueStore
    search: SearchStore


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What an operator wants to know of the database; ``size`` in bytes, None if unknown."""

    product: str
    version: str = ""
    size: int | None = None


class Backend(ABC):
    """A storage backend; created once per process and opened lazily, after any fork."""

    #: The value of ``identity.storage`` that selects it.
    name: ClassVar[str]
    #: False if other processes cannot share it: race tests then use threads.
    is_concurrent: ClassVar[bool] = True
    #: True if further worker processes gain nothing, because only one can write at a time.
    has_single_writer: bool = False
    #: False if committed data ends with the process. The contract reopens every other backend and looks for it.
    is_durable: ClassVar[bool] = True
    #: False if a transaction never conflicts with another: requests need not be kept for a retry.
    has_write_conflicts: bool = True
    #: How many requests at a time may wait for it in greenlets (``identity.concurrency``) while the event loop runs
    #: others. 0 if it blocks the thread: its requests run in the thread pool.
    max_greenlets: int = 0

    #: True if there may be a standby to read from, which lags: see ``standby_session``.
    has_standby: bool = False

    @property
    def pool_usages(self) -> Sequence[PoolUsage]:
        """Connections in use by this process, by kind of pool; empty without pools."""
        return ()

    @abstractmethod
    def read_session(self) -> AbstractContextManager[Storage]:
        """A Storage to read from outside any transaction. Writing through it is an error. Raises StorageUnavailable if
        the backend cannot be reached."""

    def standby_session(self) -> AbstractContextManager[Storage] | None:
        """A Storage on a standby whose lag is within the operator's limit. None if there is none at the moment or none
        is allowed: use ``read_session``. Its stores may raise StorageUnavailable where those of ``read_session`` would
        not. Raises StorageUnavailable."""
        return None

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Storage]:
        """A Storage to read what is committed now; later writes stay invisible, however long it is read. Writers do not
        wait for it. Raises StorageUnavailable."""

    @abstractmethod
    def join_transaction(self, transaction_manager: "ITransactionManager") -> Storage:
        """A Storage joined to the current transaction of ``transaction_manager``.

        It never commits or aborts by itself: its changes become visible when the transaction commits, and are
        discarded when it aborts. They stay invisible to others until every other participant has voted: a backend
        that commits in its vote sorts after all others (``~…``), any other commits in ``tpc_finish``. A process
        passes the same transaction manager each time. Raises StorageUnavailable.
        """

    @contextmanager
    def separate_transaction(self, transaction_manager: "ITransactionManager") -> Iterator[Storage]:
        """A Storage alone in a new transaction, committed at the end, and rolled back on an exception. A backend need
        not use the transaction manager. Raises StorageUnavailable; then nothing was committed."""
        with transaction_manager:
            yield self.join_transaction(transaction_manager)

    def checkpoint(self) -> None:  # noqa: B027 - there may be nothing of the kind
        """Run maintenance now, while others write, that a later writer would have to do while others wait. Call it
        after many writes. Raises StorageUnavailable."""

    @abstractmethod
    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Migrate the schema to this version; one runner at a time, restartable. Returns what was (or with ``dry_run``
        would be) applied, one line each, oldest first; empty if nothing is pending. Raises StorageUnavailable if the
        stored schema is newer than this version."""

    def migration_sql(self) -> Sequence[str]:
        """The statements that ``migrate`` would run, line by line; empty if the backend has no such language."""
        return ()

    @abstractmethod
    def check(self) -> None:
        """Raise StorageUnavailable, with advice, unless the backend responds and its schema is current."""

    def connection_limit_problem(self, process_count: int) -> str | None:
        """A message for the operator if this many processes may open more connections than the server allows. None if
        the limit suffices or is unknown. Raises StorageUnavailable."""
        return None

    def read_facts(self) -> DatabaseFacts:
        """Product, version and size of the database; may take a while. Raises StorageUnavailable."""
        return DatabaseFacts(self.name)

    def dump(self) -> AbstractContextManager[StorageDump]:
        """A consistent dump of everything committed, for a backup; writers do not wait. Raises StorageUnavailable, also
        if the backend has no backups."""
        raise StorageUnavailable(f"The storage {self.name} has no backups of this kind.")

    def restore(self, dump: StorageDump) -> None:
        """Restore a dump, all or nothing, then migrate the schema to this version. Raises StorageUnavailable if the
        storage is not empty, if the dump has a newer schema, or if the backend has no backups. Exceptions raised while
        reading the dump propagate, and nothing is stored."""
        raise StorageUnavailable(f"The storage {self.name} has no backups of this kind.")

    @abstractmethod
    def close(self) -> None:
        """Close connections; the backend may be used again afterwards."""

"""Backend (one per process) and Storage (one per transaction)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from identity.instrumentation import PoolUsage
from identity.storage.dump import StorageDump
from identity.storage.errors import StorageUnavailable
from identity.storage.stores.applications import ApplicationStore
from identity.storage.stores.attempts import AttemptStore
from identity.storage.stores.audit import AuditStore
from identity.storage.stores.authorization_requests import AuthorizationRequestStore
from identity.storage.stores.credentials import CredentialStore
from identity.storage.stores.deletion_impact import DeletionImpactStore
from identity.storage.stores.managers import ManagerStore
from identity.storage.stores.organizations import OrganizationStore
from identity.storage.stores.outbox import OutboxStore
from identity.storage.stores.project_grants import ProjectGrantStore
from identity.storage.stores.projects import ProjectStore
from identity.storage.stores.purges import PurgeStore
from identity.storage.stores.records import RecordStore
from identity.storage.stores.sealed_values import SealedValueStore
from identity.storage.stores.sessions import SessionStore
from identity.storage.stores.signing_keys import SigningKeyStore
from identity.storage.stores.tokens import TokenStore
from identity.storage.stores.upstream_providers import UpstreamProviderStore
from identity.storage.stores.user_grants import UserGrantStore
from identity.storage.stores.users import UserStore

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager


class Storage(ABC):
    """All stores, seen from inside one transaction (or one read connection).

    A writing Storage sees its own changes; others see them after the commit and never in part. Storages are
    not shared between threads.
    """

    organizations: OrganizationStore
    projects: ProjectStore
    project_grants: ProjectGrantStore
    user_grants: UserGrantStore
    users: UserStore
    credentials: CredentialStore
    applications: ApplicationStore
    upstream_providers: UpstreamProviderStore
    managers: ManagerStore
    sessions: SessionStore
    authorization_requests: AuthorizationRequestStore
    attempts: AttemptStore
    tokens: TokenStore
    signing_keys: SigningKeyStore
    outbox: OutboxStore
    audit: AuditStore
    records: RecordStore
    deletion_impact: DeletionImpactStore
    purges: PurgeStore
    sealed_values: SealedValueStore


class Backend(ABC):
    """A place to keep everything; made once per process and opened lazily, after any fork."""

    #: The word by which ``identity.storage`` selects it.
    name: ClassVar[str]
    #: False if other processes cannot share it: racing tests then run over threads.
    is_concurrent: ClassVar[bool] = True
    #: True if more than one process that answers requests gains nothing, since one alone can write at a time.
    has_single_writer: bool = False
    #: False if what is committed ends with the process. The contract opens any other once more and looks for it.
    is_durable: ClassVar[bool] = True
    #: False if a transaction never loses against another: its request need not be kept for another attempt.
    has_write_conflicts: bool = True
    #: How many requests at a time may wait for it in greenlets (``identity.concurrency``), while the event loop runs
    #: others. 0 if it blocks the thread: its requests run in the thread pool.
    max_greenlets: int = 0

    #: True if there may be another storage to read from, which is behind: see ``standby_session``.
    has_standby: bool = False

    @property
    def pool_usages(self) -> Sequence[PoolUsage]:
        """How many connections of each kind this process has in use; empty where there are none."""
        return ()

    @abstractmethod
    def read_session(self) -> AbstractContextManager[Storage]:
        """A Storage to read from, outside any transaction; writing through it is an error.

        Raises StorageUnavailable if the backend cannot be reached.
        """

    def standby_session(self) -> AbstractContextManager[Storage] | None:
        """A Storage to read from where whatever was committed is there after as many seconds as the operator allows.

        None if there is none at this moment, or the operator allows none: ``read_session`` is asked then. Raises
        StorageUnavailable; its stores may, too, where those of ``read_session`` would not.
        """
        return None

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Storage]:
        """A Storage to read what is committed now: however long it is read, what others write meanwhile is not seen.

        Writers do not wait for it. Raises StorageUnavailable.
        """

    @abstractmethod
    def join_transaction(self, transaction_manager: "ITransactionManager") -> Storage:
        """A Storage joined to the current transaction of ``transaction_manager``.

        It never commits or aborts by itself: its changes become visible when the transaction commits, and vanish
        when it aborts. Until every other participant has voted nobody else sees them: a backend that commits at the
        vote sorts itself behind all others (``~…``), any other commits in ``tpc_finish``. A process passes the same
        transaction manager each time. Raises StorageUnavailable.
        """

    def checkpoint(self) -> None:  # noqa: B027 - there may be nothing of the kind
        """Do now, while others write, what one of the next writers would otherwise have to do for all before.

        Whoever writes much calls it. Raises StorageUnavailable.
        """

    @abstractmethod
    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Bring the schema up to this version; one runner at a time, restartable.

        Returns what was (or with ``dry_run`` would be) applied, one line each, oldest first; empty if nothing was
        due. Raises StorageUnavailable if the stored schema is newer than this version.
        """

    def migration_sql(self) -> Sequence[str]:
        """How ``migrate`` would do what is due, in the words of the storage, line by line; empty if it has none."""
        return ()

    @abstractmethod
    def check(self) -> None:
        """Raise StorageUnavailable, saying what to do, unless the backend answers and its schema fits."""

    def connection_limit_problem(self, process_count: int) -> str | None:
        """What an operator has to mend where so many processes may open more connections than the server gives.

        None if all is well, or it cannot be known. Raises StorageUnavailable.
        """
        return None

    def dump(self) -> AbstractContextManager[StorageDump]:
        """Everything that is committed now, for a backup; who writes meanwhile does not wait.

        Raises StorageUnavailable, also if the backend has no backups.
        """
        raise StorageUnavailable(f"The storage {self.name} has no backups of this kind.")

    def restore(self, dump: StorageDump) -> None:
        """Take over everything, all or nothing, then bring the schema up to this version.

        Raises StorageUnavailable if it holds something already, if the dump is of a newer schema, or if the backend has
        no backups. What the dump raises while it is read is let through, with nothing kept.
        """
        raise StorageUnavailable(f"The storage {self.name} has no backups of this kind.")

    @abstractmethod
    def close(self) -> None:
        """Give back connections; the backend may be used again afterwards."""

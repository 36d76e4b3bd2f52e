"""DeferredStorage: the storage of a transaction, opened on first use."""

from collections.abc import Callable
from typing import TypeVar

from identity.lazily import lazily
from identity.storage.backend import Storage

Store = TypeVar("Store")


def _store(of: Callable[[Storage], Store]) -> lazily[Store]:
    def find(deferred: "DeferredStorage") -> Store:
        return of(deferred._opened())

    return lazily(find)


class DeferredStorage(Storage):
    """A Storage that is opened when its first store is asked for: until then nobody waits for it.

    Asking for a store raises what opening raises.
    """

    def __init__(self, open_storage: Callable[[], Storage]) -> None:
        self._open = open_storage
        self._storage: Storage | None = None

    @property
    def opened(self) -> bool:
        """True once a store was asked for."""
        return self._storage is not None

    def _opened(self) -> Storage:
        if self._storage is None:
            self._storage = self._open()
        return self._storage

    organizations = _store(lambda storage: storage.organizations)
    projects = _store(lambda storage: storage.projects)
    project_grants = _store(lambda storage: storage.project_grants)
    user_grants = _store(lambda storage: storage.user_grants)
    users = _store(lambda storage: storage.users)
    credentials = _store(lambda storage: storage.credentials)
    applications = _store(lambda storage: storage.applications)
    upstream_providers = _store(lambda storage: storage.upstream_providers)
    managers = _store(lambda storage: storage.managers)
    sessions = _store(lambda storage: storage.sessions)
    authorization_requests = _store(lambda storage: storage.authorization_requests)
    attempts = _store(lambda storage: storage.attempts)
    tokens = _store(lambda storage: storage.tokens)
    signing_keys = _store(lambda storage: storage.signing_keys)
    outbox = _store(lambda storage: storage.outbox)
    audit = _store(lambda storage: storage.audit)
    records = _store(lambda storage: storage.records)
    effects = _store(lambda storage: storage.effects)
    purges = _store(lambda storage: storage.purges)
    sealed = _store(lambda storage: storage.sealed)

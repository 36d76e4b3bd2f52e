"""DeferredStorage: the storage of a transaction, opened on first use."""

from collections.abc import Callable
from typing import Generic, TypeVar

from identity.storage.backend import Storage

Store = TypeVar("Store")


class _Deferred(Generic[Store]):
    """A store; the first access to any of them opens the storage."""

    def __init__(self, select: Callable[[Storage], Store]) -> None:
        self._select = select

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, deferred: "DeferredStorage", owner: type) -> Store:
        if deferred._storage is None:
            deferred._storage = deferred._open()
        store = deferred.__dict__[self._name] = self._select(deferred._storage)
        return store


class DeferredStorage(Storage):
    """A storage that is opened on first access to one of its stores, so that nothing waits for it before. The access
    raises what opening raises."""

    def __init__(self, open_storage: Callable[[], Storage]) -> None:
        self._open = open_storage
        self._storage: Storage | None = None

    @property
    def opened(self) -> bool:
        return self._storage is not None

    def reset(self) -> None:
        """Open it again at the next access."""
        open_storage = self._open
        self.__dict__.clear()
        self._open, self._storage = open_storage, None

    organizations = _Deferred(lambda storage: storage.organizations)
    projects = _Deferred(lambda storage: storage.projects)
    project_grants = _Deferred(lambda storage: storage.project_grants)
    user_grants = _Deferred(lambda storage: storage.user_grants)
    groups = _Deferred(lambda storage: storage.groups)
    group_members = _Deferred(lambda storage: storage.group_members)
    group_grants = _Deferred(lambda storage: storage.group_grants)
    group_managers = _Deferred(lambda storage: storage.group_managers)
    group_mappings = _Deferred(lambda storage: storage.group_mappings)
    users = _Deferred(lambda storage: storage.users)
    attributes = _Deferred(lambda storage: storage.attributes)
    attribute_mappings = _Deferred(lambda storage: storage.attribute_mappings)
    credentials = _Deferred(lambda storage: storage.credentials)
    applications = _Deferred(lambda storage: storage.applications)
    upstream_providers = _Deferred(lambda storage: storage.upstream_providers)
    webhooks = _Deferred(lambda storage: storage.webhooks)
    webhook_deliveries = _Deferred(lambda storage: storage.webhook_deliveries)
    managers = _Deferred(lambda storage: storage.managers)
    sessions = _Deferred(lambda storage: storage.sessions)
    authorization_requests = _Deferred(lambda storage: storage.authorization_requests)
    attempts = _Deferred(lambda storage: storage.attempts)
    tokens = _Deferred(lambda storage: storage.tokens)
    signing_keys = _Deferred(lambda storage: storage.signing_keys)
    outbox = _Deferred(lambda storage: storage.outbox)
    sent_mails = _Deferred(lambda storage: storage.sent_mails)
    audit = _Deferred(lambda storage: storage.audit)
    records = _Deferred(lambda storage: storage.records)
    figures = _Deferred(lambda storage: storage.figures)
    application_requests = _Deferred(lambda storage: storage.application_requests)
    deletion_impact = _Deferred(lambda storage: storage.deletion_impact)
    purges = _Deferred(lambda storage: storage.purges)
    sealed_values = _Deferred(lambda storage: storage.sealed_values)
    search = _Deferred(lambda storage: storage.search)

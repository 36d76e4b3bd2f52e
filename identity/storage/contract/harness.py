"""Shared by all parts of the storage contract: the backend under test and helpers to use it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import pytest

from identity.domain.applications import Application, ClientSecret
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.outbox import OutboxMessage
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Agent, HumanUser, PasswordHash, ServiceUser
from identity.domain.webhooks import Webhook, WebhookDelivery
from identity.storage.backend import Backend, Storage
from identity.storage.contract import factories as make
from identity.storage.contract.race_runner import Attempt, RaceResult, RaceWorkers, race_in_threads
from identity.storage.contract.transaction_manager import (
    ContractTransactionManager,
    aborted_transaction,
    committed_transaction,
)
from identity.storage.errors import RowNotFound
from identity.storage.stores.purges import PurgeKind

ValueT = TypeVar("ValueT")


def require_found(found: ValueT | None) -> ValueT:
    assert found is not None, "nothing was found"
    return found


class AutocommitStorage(Storage):
    """A Storage that makes each call in a transaction, or read session, of its own."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Storage]]) -> None:
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        return AutocommitStore(self._opened, name)


class AutocommitStore:
    def __init__(self, opened: Callable[[], AbstractContextManager[Storage]], store: str) -> None:
        self._opened, self._store = opened, store

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            with self._opened() as storage:
                return getattr(getattr(storage, self._store), name)(*arguments, **named)

        return call


class StorageHarness:
    """The backend under test, and entities that are stored when a test first refers to them. Storing an entity uses a
    transaction of its own: refer to it before you open another one."""

    def __init__(self, backend: Backend, request: pytest.FixtureRequest) -> None:
        self.backend = backend
        self.transactions = ContractTransactionManager()
        self.opened = ExitStack()
        self._request = request
        #: ``on.read.users.find(id)``: what others see.
        self.read: Storage = AutocommitStorage(self.read_session)
        #: ``on.write.users.delete(id)``: in a transaction of its own, which commits.
        self.write: Storage = AutocommitStorage(self.transaction)

    def read_session(self) -> AbstractContextManager[Storage]:
        """A Storage to read from: what others see."""
        return self.backend.read_session()

    def transaction(self) -> AbstractContextManager[Storage]:
        return committed_transaction(self.backend, self.transactions)

    def aborted_transaction(self) -> AbstractContextManager[Storage]:
        return aborted_transaction(self.backend, self.transactions)

    @cached_property
    def storage(self) -> Storage:
        """A Storage to write to, in a transaction that is aborted at the end of the test."""
        return self.opened.enter_context(self.aborted_transaction())

    def store(self, *values: object) -> None:
        with self.transaction() as storage:
            for value in values:
                add(storage, value)

    def store_value(self, value: ValueT) -> ValueT:
        self.store(value)
        return value

    def store_client_secret(self) -> ClientSecret:
        secret = make.client_secret()
        self.write.applications.add_secret(self.application.id, secret)
        return secret

    def find_stored(self, value: ValueT) -> ValueT | None:
        """The stored version of the value, if any."""
        with self.aborted_transaction() as storage:
            found: ValueT | None = _STORE_ACCESS[type(value)].find(storage, value)
        return found

    def unchanged(self, *values: object) -> list[object]:
        """The values that are stored unchanged."""
        return [value for value in values if self.find_stored(value) == value]

    def purge(self, purged: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = ()) -> int:
        """Find and purge rows, searching until a search finds any; returns the number deleted."""
        purge_candidates = self.read.purges.find_candidates(purged, before, limit, legal_holds=legal_holds)
        for _ in range(100):
            if purge_candidates.keys or purge_candidates.cursor is None:
                break
            purge_candidates = self.read.purges.find_candidates(
                purged, before, limit, legal_holds=legal_holds, cursor=purge_candidates.cursor
            )
        return self.write.purges.delete(purged, purge_candidates.keys, before, legal_holds=legal_holds)

    def purge_all(self, purged: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = ()) -> int:
        """Purge what each search finds until the searches end; returns the number deleted."""
        deleted, cursor = 0, None
        for _ in range(100):
            found = self.read.purges.find_candidates(purged, before, limit, legal_holds=legal_holds, cursor=cursor)
            deleted += self.write.purges.delete(purged, found.keys, before, legal_holds=legal_holds)
            cursor = found.cursor
            if cursor is None:
                return deleted
        raise AssertionError("the searches do not end")

    def race(self, attempt: Attempt, times: int) -> RaceResult:
        """Run the attempt this many times concurrently, over processes if the backend can be shared."""
        if not self.backend.is_concurrent:
            return race_in_threads(self.backend, attempt, times)
        racers: RaceWorkers = self._request.getfixturevalue("racers")
        return racers.race(self._request.getfixturevalue("reopen"), attempt, times)

    @cached_property
    def organization(self) -> Organization:
        return self.store_value(make.organization())

    @cached_property
    def other_organization(self) -> Organization:
        """A stored organization besides ``organization``."""
        return self.store_value(make.organization(name="Bolt"))

    @cached_property
    def project(self) -> Project:
        return self.store_value(make.project(self.organization))

    @cached_property
    def application(self) -> Application:
        return self.store_value(make.application(self.project))

    @cached_property
    def human_user(self) -> HumanUser:
        return self.store_value(make.human_user(self.organization))

    @cached_property
    def service_user(self) -> ServiceUser:
        return self.store_value(make.service_user(self.organization))

    @cached_property
    def session(self) -> Session:
        return self.store_value(make.session(self.human_user))

    @cached_property
    def family(self) -> TokenFamily:
        return self.store_value(make.token_family(self.human_user, self.application))


class ContractBase:
    """Fixtures of the storage contract. A backend's tests override ``backend`` and, if needed, ``reopen``."""

    @pytest.fixture
    def backend(self) -> Backend:
        """The backend under test: empty and migrated, new for every test."""
        raise NotImplementedError("override the fixture 'backend': it returns an empty, migrated backend")

    @pytest.fixture
    def reopen(self) -> Callable[[], Backend]:
        """A callable without arguments that opens the storage of ``backend`` again. Needed if ``is_concurrent`` is
        True. It is pickled and called in other processes, so it must be an importable function or class, or a
        functools.partial of one: ``partial(RedisBackend, redis_url)``."""
        raise NotImplementedError("override the fixture 'reopen': races need a way to open the backend elsewhere")

    @pytest.fixture(scope="class")
    @classmethod
    def racers(cls) -> Iterator[RaceWorkers]:
        """Worker processes, shared by all races of the class."""
        racers = RaceWorkers()
        yield racers
        racers.close()

    @pytest.fixture
    def on(self, backend: Backend, request: pytest.FixtureRequest) -> Iterator[StorageHarness]:
        on = StorageHarness(backend, request)
        with on.opened:
            yield on


@dataclass(frozen=True)
class StoreAccess:
    """The store of a kind of value: how to add a value, and how to find it there."""

    store: str
    find: Callable[[Storage, Any], Any]
    add: str = "add"


def _access_by_id(store: str) -> StoreAccess:
    return StoreAccess(store, lambda storage, value: getattr(storage, store).find(value.id))


def _find_family(storage: Storage, family: TokenFamily) -> TokenFamily | None:
    # Families are visible only through their tokens.
    token = make.refresh_token(family)
    try:
        storage.tokens.add_refresh_token(token)
    except RowNotFound:
        return None
    return require_found(storage.tokens.find_refresh_token(token.digest)).family


def _only_match(found: Iterable[Any], value: Any) -> Any:
    return next((item for item in found if item.id == value.id), None)


_CREDENTIAL_ACCESS = StoreAccess(
    "credentials", lambda storage, value: storage.credentials.find(type(value), value.id, value.user_id)
)
_STORE_ACCESS: dict[type, StoreAccess] = {
    Instance: StoreAccess("organizations", lambda storage, _: storage.organizations.find_instance(), "add_instance"),
    Organization: _access_by_id("organizations"),
    OrganizationDomain: StoreAccess(
        "organizations",
        lambda storage, value: storage.organizations.find_domain(value.organization_id, value.name),
        "add_domain",
    ),
    Project: _access_by_id("projects"),
    ProjectRole: StoreAccess(
        "projects",
        lambda storage, value: next(
            (role for role in storage.projects.list_roles(value.project_id) if role.key == value.key), None
        ),
        "add_role",
    ),
    ProjectGrant: _access_by_id("project_grants"),
    UserGrant: _access_by_id("user_grants"),
    Group: _access_by_id("groups"),
    GroupMember: _access_by_id("group_members"),
    GroupGrant: _access_by_id("group_grants"),
    GroupManager: _access_by_id("group_managers"),
    GroupMapping: _access_by_id("group_mappings"),
    HumanUser: _access_by_id("users"),
    ServiceUser: _access_by_id("users"),
    Agent: _access_by_id("users"),
    PasswordHash: StoreAccess(
        "users", lambda storage, value: storage.users.find_password(value.user_id), "set_password"
    ),
    ServiceUserKey: _CREDENTIAL_ACCESS,
    ServiceUserSecret: _CREDENTIAL_ACCESS,
    PersonalAccessToken: _CREDENTIAL_ACCESS,
    FederatedCredential: StoreAccess(
        "credentials", lambda storage, value: storage.credentials.find(type(value), value.id, value.owner_id)
    ),
    Application: _access_by_id("applications"),
    AttributeDefinition: _access_by_id("attributes"),
    AttributeMapping: _access_by_id("attribute_mappings"),
    Webhook: _access_by_id("webhooks"),
    WebhookDelivery: _access_by_id("webhook_deliveries"),
    UpstreamProvider: _access_by_id("upstream_providers"),
    Manager: _access_by_id("managers"),
    Session: _access_by_id("sessions"),
    PendingAuthorization: _access_by_id("authorization_requests"),
    TokenFamily: StoreAccess("tokens", _find_family, "add_family"),
    AuthorizationCode: StoreAccess(
        "tokens",
        lambda storage, value: getattr(storage.tokens.find_authorization_code(value.digest), "code", None),
        "add_authorization_code",
    ),
    AccessToken: StoreAccess(
        "tokens",
        lambda storage, value: getattr(storage.tokens.find_access_token(value.digest), "token", None),
        "add_access_token",
    ),
    RefreshToken: StoreAccess(
        "tokens",
        lambda storage, value: getattr(storage.tokens.find_refresh_token(value.digest), "token", None),
        "add_refresh_token",
    ),
    SigningKey: StoreAccess("signing_keys", lambda storage, value: _only_match(storage.signing_keys.list_all(), value)),
    OutboxMessage: StoreAccess(
        "outbox",
        lambda storage, value: _only_match(storage.outbox.list_pending(value.kind, value.created_at, 1000), value),
    ),
    Record: StoreAccess("records", lambda storage, value: storage.records.find(value.plugin, value.kind, value.key)),
}


def add(storage: Storage, value: Any) -> None:
    home = _STORE_ACCESS[type(value)]
    assert getattr(getattr(storage, home.store), home.add)(value) is None, "another value has its place"


def remove(storage: Storage, value: Any) -> None:
    store = _STORE_ACCESS[type(value)].store
    known_by: tuple[Any, ...] = (value.id,)
    if store == "credentials":
        known_by = (type(value), getattr(value, "owner_id", "") or value.user_id, value.id)
    getattr(storage, store).delete(*known_by)

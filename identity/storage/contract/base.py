"""What all parts of the storage contract share: the backend under test, and what a test does with it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import pytest

from identity.domain.applications import Application, ClientSecret
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.outbox import OutgoingMessage
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.records import Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, PasswordHash, ServiceUser
from identity.storage.backend import Backend, Storage
from identity.storage.contract.factories import (
    a_client_secret,
    a_family,
    a_human_user,
    a_project,
    a_refresh_token,
    a_service_user,
    a_session,
    an_application,
    an_organization,
)
from identity.storage.contract.racing import Attempt, Outcomes, Racers, race_over_threads
from identity.storage.contract.transactions import Transactions, aborting, committing
from identity.storage.errors import Missing
from identity.storage.stores.purges import Purged

Kept = TypeVar("Kept")


def there(found: Kept | None) -> Kept:
    """What was found; fails if nothing was."""
    assert found is not None, "nothing was found"
    return found


class Each(Storage):
    """A Storage of which each call is made in a transaction, or a reading, of its own."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Storage]]) -> None:
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        return EachCall(self._opened, name)


class EachCall:
    """One store of it."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Storage]], store: str) -> None:
        self._opened, self._store = opened, store

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            with self._opened() as storage:
                return getattr(getattr(storage, self._store), name)(*arguments, **named)

        return call


class On:
    """The backend under test, and what is stored there from the moment at which a test names it.

    Whatever stores something is a transaction of its own: it is named before another one is opened.
    """

    def __init__(self, backend: Backend, request: pytest.FixtureRequest) -> None:
        self.backend = backend
        self.transactions = Transactions()
        self.opened = ExitStack()
        self._request = request
        #: ``on.read.users.find(id)``: what others see.
        self.read: Storage = Each(self.reading)
        #: ``on.write.users.remove(id)``: in a transaction of this call alone, which is committed.
        self.write: Storage = Each(self.writing)

    def reading(self) -> AbstractContextManager[Storage]:
        """A Storage to read from: what others see."""
        return self.backend.reading()

    def writing(self) -> AbstractContextManager[Storage]:
        """A Storage in a transaction that commits at the end, or aborts upon an exception."""
        return committing(self.backend, self.transactions)

    def aborted(self) -> AbstractContextManager[Storage]:
        """A Storage in a transaction that is undone at the end."""
        return aborting(self.backend, self.transactions)

    @cached_property
    def storage(self) -> Storage:
        """A Storage to write to, in a transaction that is aborted at the end of the test."""
        return self.opened.enter_context(self.aborted())

    def save(self, *values: object) -> None:
        """Store domain values in this order in one transaction."""
        with self.writing() as storage:
            for value in values:
                add(storage, value)

    def saved(self, value: Kept) -> Kept:
        """The value, which is stored."""
        self.save(value)
        return value

    def saved_client_secret(self) -> ClientSecret:
        """A new secret of the application."""
        secret = a_client_secret()
        self.write.applications.add_secret(self.application.id, secret)
        return secret

    def stored(self, value: Kept) -> Kept | None:
        """The same thing as it is stored now, if it is."""
        with self.aborted() as storage:
            found: Kept | None = _HOMES[type(value)].find(storage, value)
        return found

    def left(self, *values: object) -> list[object]:
        """Those of the values that are stored, unchanged."""
        return [value for value in values if self.stored(value) == value]

    def purged(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        """How many of these went that were found just before, by the first look that finds any."""
        found = self.read.purges.find(purged, before, limit, held=held)
        for _ in range(100):
            if found.keys or found.last is None:
                break
            found = self.read.purges.find(purged, before, limit, held=held, since=found.last)
        return self.write.purges.delete(purged, found.keys, before, held=held)

    def race(self, attempt: Attempt, times: int) -> Outcomes:
        """Make the attempt so often at once, over processes where the backend can be shared."""
        if not self.backend.concurrent:
            return race_over_threads(self.backend, attempt, times)
        racers: Racers = self._request.getfixturevalue("racers")
        return racers.race(self._request.getfixturevalue("reopen"), attempt, times)

    @cached_property
    def organization(self) -> Organization:
        """A stored organization."""
        return self.saved(an_organization())

    @cached_property
    def other_organization(self) -> Organization:
        """A stored organization besides ``organization``: the stranger."""
        return self.saved(an_organization(name="Bolt"))

    @cached_property
    def project(self) -> Project:
        """A stored project of ``organization``."""
        return self.saved(a_project(self.organization))

    @cached_property
    def application(self) -> Application:
        """A stored application of ``project``."""
        return self.saved(an_application(self.project))

    @cached_property
    def human_user(self) -> HumanUser:
        """A stored person of ``organization``."""
        return self.saved(a_human_user(self.organization))

    @cached_property
    def service_user(self) -> ServiceUser:
        """A stored service user of ``organization``."""
        return self.saved(a_service_user(self.organization))

    @cached_property
    def session(self) -> Session:
        """A stored session of ``human_user``."""
        return self.saved(a_session(self.human_user))

    @cached_property
    def family(self) -> TokenFamily:
        """A stored family of ``human_user`` and ``application``."""
        return self.saved(a_family(self.human_user, self.application))


class ContractBase:
    """Fixtures of the storage contract. A backend's tests override ``backend`` and, if need be, ``reopen``."""

    @pytest.fixture
    def backend(self) -> Backend:
        """The backend under test: empty and migrated, a new one for every test."""
        raise NotImplementedError("override the fixture 'backend': it returns an empty, migrated backend")

    @pytest.fixture
    def reopen(self) -> Callable[[], Backend]:
        """A callable without arguments that opens the storage of ``backend`` once more.

        Needed where ``concurrent`` is True. It is pickled and called in other processes, so it must be an importable
        function or class, or a functools.partial of one: ``partial(RedisBackend, redis_url)``.
        """
        raise NotImplementedError("override the fixture 'reopen': races need a way to open the backend elsewhere")

    @pytest.fixture(scope="class")
    @classmethod
    def racers(cls) -> Iterator[Racers]:
        """Worker processes, shared by all races of the class."""
        racers = Racers()
        yield racers
        racers.close()

    @pytest.fixture
    def on(self, backend: Backend, request: pytest.FixtureRequest) -> Iterator[On]:
        """The backend under test, and what is stored there."""
        on = On(backend, request)
        with on.opened:
            yield on


@dataclass(frozen=True)
class Home:
    """The store that keeps a kind of value: how it takes a new one, and how the same thing is found there."""

    store: str
    find: Callable[[Storage, Any], Any]
    add: str = "add"


def _by_id(store: str) -> Home:
    return Home(store, lambda storage, value: getattr(storage, store).find(value.id))


def _family(storage: Storage, family: TokenFamily) -> TokenFamily | None:
    # It is seen with each of its tokens alone.
    token = a_refresh_token(family)
    try:
        storage.tokens.add_refresh(token)
    except Missing:
        return None
    return there(storage.tokens.find_presented(token.digest)).family


def _one(found: Iterable[Any], value: Any) -> Any:
    return next((one for one in found if one.id == value.id), None)


_CREDENTIAL = Home("credentials", lambda storage, value: storage.credentials.find(type(value), value.id, value.user_id))
_HOMES: dict[type, Home] = {
    Instance: Home("organizations", lambda storage, _: storage.organizations.find_instance(), "add_instance"),
    Organization: _by_id("organizations"),
    OrganizationDomain: Home(
        "organizations",
        lambda storage, value: storage.organizations.find_domain(value.organization_id, value.name),
        "add_domain",
    ),
    Project: _by_id("projects"),
    ProjectRole: Home(
        "projects",
        lambda storage, value: next(
            (one for one in storage.projects.roles(value.project_id) if one.key == value.key), None
        ),
        "add_role",
    ),
    ProjectGrant: _by_id("project_grants"),
    UserGrant: _by_id("user_grants"),
    HumanUser: _by_id("users"),
    ServiceUser: _by_id("users"),
    PasswordHash: Home("users", lambda storage, value: storage.users.find_password(value.user_id), "set_password"),
    ServiceUserKey: _CREDENTIAL,
    ServiceUserSecret: _CREDENTIAL,
    PersonalAccessToken: _CREDENTIAL,
    Application: _by_id("applications"),
    UpstreamProvider: _by_id("upstream_providers"),
    Manager: _by_id("managers"),
    Session: _by_id("sessions"),
    PendingAuthorization: _by_id("authorization_requests"),
    TokenFamily: Home("tokens", _family, "start_family"),
    AuthorizationCode: Home(
        "tokens", lambda storage, value: getattr(storage.tokens.find_code(value.digest), "code", None), "add_code"
    ),
    AccessToken: Home(
        "tokens", lambda storage, value: getattr(storage.tokens.find_issued(value.digest), "token", None), "add_access"
    ),
    RefreshToken: Home(
        "tokens",
        lambda storage, value: getattr(storage.tokens.find_presented(value.digest), "token", None),
        "add_refresh",
    ),
    SigningKey: Home("signing_keys", lambda storage, value: _one(storage.signing_keys.all(), value)),
    OutgoingMessage: Home(
        "outbox", lambda storage, value: _one(storage.outbox.waiting(value.kind, value.created_at, 1000), value)
    ),
    Record: Home("records", lambda storage, value: storage.records.find(value.plugin, value.kind, value.key)),
}


def add(storage: Storage, value: Any) -> None:
    """Store a new domain value in the store that keeps its kind."""
    home = _HOMES[type(value)]
    assert getattr(getattr(storage, home.store), home.add)(value) is None, "another value has its place"


def remove(storage: Storage, value: Any) -> None:
    """Remove a value that is removed by its id."""
    store = _HOMES[type(value)].store
    known_by = (type(value), value.user_id, value.id) if store == "credentials" else (value.id,)
    getattr(storage, store).remove(*known_by)

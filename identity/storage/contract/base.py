"""What all parts of the storage contract share: the backend under test, and what a test does with it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from typing import Any, TypeVar

import pytest

from identity.domain.applications import Application
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
from identity.domain.users import HumanUser, PasswordHash, ServiceUser
from identity.storage.backend import Backend, Storage
from identity.storage.contract.factories import (
    a_family,
    a_human_user,
    a_project,
    a_service_user,
    a_session,
    an_application,
    an_organization,
)
from identity.storage.contract.racing import Attempt, Outcomes, Racers, race_over_threads
from identity.storage.contract.transactions import Transactions, aborting, committing

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


#: The store that keeps each kind of value, and how it takes a new one.
_ADD: dict[type, tuple[str, str]] = {
    Instance: ("organizations", "add_instance"),
    Organization: ("organizations", "add"),
    OrganizationDomain: ("organizations", "add_domain"),
    Project: ("projects", "add"),
    ProjectRole: ("projects", "add_role"),
    ProjectGrant: ("project_grants", "add"),
    UserGrant: ("user_grants", "add"),
    HumanUser: ("users", "add"),
    ServiceUser: ("users", "add"),
    PasswordHash: ("users", "set_password"),
    ServiceUserKey: ("credentials", "add"),
    ServiceUserSecret: ("credentials", "add"),
    PersonalAccessToken: ("credentials", "add"),
    Application: ("applications", "add"),
    Manager: ("managers", "add"),
    Session: ("sessions", "add"),
    PendingAuthorization: ("authorization_requests", "add"),
    TokenFamily: ("tokens", "start_family"),
    AuthorizationCode: ("tokens", "add_code"),
    AccessToken: ("tokens", "add_access"),
    RefreshToken: ("tokens", "add_refresh"),
    SigningKey: ("signing_keys", "add"),
    OutgoingMessage: ("outbox", "add"),
    Record: ("records", "add"),
}


def add(storage: Storage, value: Any) -> None:
    """Store a new domain value in the store that keeps its kind."""
    store, method = _ADD[type(value)]
    assert getattr(getattr(storage, store), method)(value) is None, "another value has its place"

"""The fixtures that all parts of the storage contract share."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from identity.domain.applications import Application
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.consents import Consent
from identity.domain.domains import OrganizationDomain
from identity.domain.idempotency import IdempotencyRecord
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.one_time_codes import OneTimeCode
from identity.domain.organizations import Organization
from identity.domain.outbox import OutgoingMessage
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.sessions import PendingAuthorization, Session
from identity.domain.signing_keys import SigningKey
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.domain.users import HumanUser, PasswordHash, ServiceUser
from identity.storage.backend import Backend, Storage
from identity.storage.contract.factories import (
    NOW,
    a_family,
    a_human_user,
    a_project,
    a_service_user,
    a_session,
    an_application,
    an_organization,
)
from identity.storage.contract.racing import Race, Racers, race_over_threads
from identity.storage.contract.transactions import Transactions, aborting, committing

InTransaction = Callable[[], AbstractContextManager[Storage]]
Reading = Callable[[], AbstractContextManager[Storage]]
Save = Callable[..., None]


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

    @pytest.fixture
    def transactions(self) -> Transactions:
        """The transaction manager of this process."""
        return Transactions()

    @pytest.fixture
    def in_transaction(self, backend: Backend, transactions: Transactions) -> InTransaction:
        """Opens a Storage in a transaction that commits at the end, or aborts upon an exception."""
        return partial(committing, backend, transactions)

    @pytest.fixture
    def in_aborted(self, backend: Backend, transactions: Transactions) -> InTransaction:
        """Opens a Storage in a transaction that is undone at the end."""
        return partial(aborting, backend, transactions)

    @pytest.fixture
    def storage(self, in_aborted: InTransaction) -> Iterator[Storage]:
        """A Storage to write to, in a transaction that is aborted at the end of the test."""
        with in_aborted() as storage:
            yield storage

    @pytest.fixture
    def reading(self, backend: Backend) -> Reading:
        """Opens a Storage to read from: what others see."""
        return backend.reading

    @pytest.fixture
    def now(self) -> datetime:
        """A fixed moment: aware, in UTC, in whole seconds; the one at which the factories make everything."""
        return NOW

    @pytest.fixture
    def save(self, in_transaction: InTransaction) -> Save:
        """``save(organization, project, …)`` stores domain values in this order in one transaction."""

        def save(*values: object) -> None:
            with in_transaction() as storage:
                for value in values:
                    add(storage, value)

        return save

    @pytest.fixture(scope="class")
    @classmethod
    def racers(cls) -> Iterator[Racers]:
        """Worker processes, shared by all races of the class."""
        racers = Racers()
        yield racers
        racers.close()

    @pytest.fixture
    def race(self, backend: Backend, request: pytest.FixtureRequest) -> Race:
        """``race(attempt, times)`` makes the attempt so often, over processes where the backend can be shared."""
        if not backend.concurrent:
            return partial(race_over_threads, backend)
        racers: Racers = request.getfixturevalue("racers")
        return partial(racers.race, request.getfixturevalue("reopen"))

    @pytest.fixture
    def organization(self, save: Save) -> Organization:
        """A stored organization."""
        organization = an_organization()
        save(organization)
        return organization

    @pytest.fixture
    def other_organization(self, save: Save) -> Organization:
        """A stored organization besides ``organization``: the stranger."""
        organization = an_organization(name="Bolt")
        save(organization)
        return organization

    @pytest.fixture
    def project(self, save: Save, organization: Organization) -> Project:
        """A stored project of ``organization``."""
        project = a_project(organization)
        save(project)
        return project

    @pytest.fixture
    def application(self, save: Save, project: Project) -> Application:
        """A stored application of ``project``."""
        application = an_application(project)
        save(application)
        return application

    @pytest.fixture
    def human_user(self, save: Save, organization: Organization) -> HumanUser:
        """A stored person of ``organization``."""
        user = a_human_user(organization)
        save(user)
        return user

    @pytest.fixture
    def service_user(self, save: Save, organization: Organization) -> ServiceUser:
        """A stored service user of ``organization``."""
        user = a_service_user(organization)
        save(user)
        return user

    @pytest.fixture
    def session(self, save: Save, human_user: HumanUser) -> Session:
        """A stored session of ``human_user``."""
        session = a_session(human_user)
        save(session)
        return session

    @pytest.fixture
    def family(self, save: Save, human_user: HumanUser, application: Application) -> TokenFamily:
        """A stored family of ``human_user`` and ``application``."""
        family = a_family(human_user, application)
        save(family)
        return family


def add(storage: Storage, value: Any) -> None:
    """Store a new domain value in the store that keeps its kind."""
    match value:
        case Instance():
            storage.instance.add(value)
        case Organization():
            storage.organizations.add(value)
        case OrganizationDomain():
            storage.domains.add(value)
        case Project():
            storage.projects.add(value)
        case ProjectRole():
            storage.projects.add_role(value)
        case ProjectGrant():
            storage.project_grants.add(value)
        case UserGrant():
            storage.user_grants.add(value)
        case HumanUser() | ServiceUser():
            storage.users.add(value)
        case PasswordHash():
            storage.passwords.set(value)
        case ServiceUserKey():
            storage.service_user_keys.add(value)
        case ServiceUserSecret():
            storage.service_user_secrets.add(value)
        case PersonalAccessToken():
            storage.personal_access_tokens.add(value)
        case Application():
            storage.applications.add(value)
        case Consent():
            storage.consents.set(value)
        case Manager():
            storage.managers.add(value)
        case Session():
            storage.sessions.add(value)
        case PendingAuthorization():
            storage.authorization_requests.add(value)
        case OneTimeCode():
            storage.one_time_codes.add(value)
        case TokenFamily():
            storage.tokens.start_family(value)
        case AuthorizationCode():
            storage.authorization_codes.add(value)
        case AccessToken():
            storage.tokens.add_access(value)
        case RefreshToken():
            storage.tokens.add_refresh(value)
        case SigningKey():
            storage.signing_keys.add(value)
        case IdempotencyRecord():
            storage.idempotency.claim(value)
        case OutgoingMessage():
            storage.outbox.add(value)
        case _:
            raise TypeError(f"no store is known for {type(value).__name__}")

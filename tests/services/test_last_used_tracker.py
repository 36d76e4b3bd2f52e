"""Last uses are kept in memory, and written by the background worker and at the end of the process."""

from datetime import datetime, timedelta

import pytest

from identity.application import IdentityApplication
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.projects import CreateProject
from identity.storage.errors import StorageUnavailable
from identity.storage.memory import MemoryBackend
from identity.testing.clock import FakeClock
from tests.services.factories import make_organization, make_service_user


class ServiceUserProgramCase:
    """A service user and an application, each with a secret."""

    def __init__(self, identity: IdentityApplication) -> None:
        self.identity = identity
        with identity.transaction() as services:
            organization = make_organization(services)
            project = services.projects.create(organization.id, CreateProject(name="P"), principal=Principal.OPERATOR)
            command = RegisterApplication(name="API", type="api")
            application, secret = services.applications.register_with_secret(
                project.id, command, principal=Principal.OPERATOR
            )
            robot = make_service_user(services, organization)
            self.application_id, self.secret = application.id, secret or ""
            self.robot_id, self.robot_secret = (
                robot.id,
                services.service_users.add_secret(robot.id, principal=Principal.OPERATOR)[1],
            )

    def use(self) -> None:
        with self.identity.read_session() as services:
            assert services.applications.authenticate(self.application_id, self.secret)
            assert services.service_users.authenticate(self.robot_id, self.robot_secret)

    def fail(self) -> None:
        with self.identity.read_session() as services:
            assert not services.applications.authenticate(self.application_id, "wrong")
            assert not services.service_users.authenticate(self.robot_id, "wrong")

    def last_used(self) -> set[datetime | None]:
        with self.identity.read_session() as services:
            [client_secret] = services.applications.list_secrets(self.application_id)
            [service_user_secret] = services.service_users.list_secrets(self.robot_id)
            return {client_secret.last_used_at, service_user_secret.last_used_at}


@pytest.fixture
def program(identity: IdentityApplication) -> ServiceUserProgramCase:
    return ServiceUserProgramCase(identity)


def test_authentication_itself_writes_nothing(
    identity: IdentityApplication, program: ServiceUserProgramCase, clock: FakeClock
) -> None:
    program.use()
    assert program.last_used() == {None}
    identity.background_jobs.flush_last_used()
    assert program.last_used() == {clock()}


def test_wrong_secret_does_not_count_as_use(identity: IdentityApplication, program: ServiceUserProgramCase) -> None:
    program.fail()
    identity.background_jobs.flush_last_used()
    assert program.last_used() == {None}


def test_latest_use_is_stored(identity: IdentityApplication, program: ServiceUserProgramCase, clock: FakeClock) -> None:
    program.use()
    clock.advance(minutes=5)
    program.use()
    identity.background_jobs.flush_last_used()
    assert program.last_used() == {clock()}
    clock.advance(minutes=5)
    identity.background_jobs.flush_last_used()
    assert program.last_used() == {clock() - timedelta(minutes=5)}


def test_failed_write_is_retried(
    identity: IdentityApplication, program: ServiceUserProgramCase, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: object, transactions: object) -> None:
        raise StorageUnavailable("away")

    program.use()
    monkeypatch.setattr(MemoryBackend, "join_transaction", away)
    with pytest.raises(StorageUnavailable):
        identity.background_jobs.flush_last_used()
    monkeypatch.undo()
    identity.background_jobs.flush_last_used()
    assert program.last_used() == {clock()}


def test_shutdown_writes_pending_uses(
    identity: IdentityApplication, program: ServiceUserProgramCase, clock: FakeClock
) -> None:
    program.use()
    identity.close()
    assert program.last_used() == {clock()}


def test_removed_secrets_are_ignored(identity: IdentityApplication, program: ServiceUserProgramCase) -> None:
    program.use()
    with identity.transaction() as services:
        services.applications.remove(program.application_id, principal=Principal.OPERATOR)
        services.service_users.remove(program.robot_id, principal=Principal.OPERATOR)
    identity.background_jobs.flush_last_used()

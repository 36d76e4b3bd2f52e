"""Last uses are noted in memory, and written by the worker and at the end of the process."""

from datetime import datetime, timedelta

import pytest

from identity.process import Identity
from identity.services.access import THE_OPERATOR
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.projects import CreateProject
from identity.storage.errors import Unavailable
from identity.storage.memory import MemoryBackend
from identity.testing.clock import MovableClock
from tests.services.people import a_program, an_organization


class Program:
    """A service user and an application, each with a secret."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        with identity.transaction() as services:
            organization = an_organization(services)
            project = services.projects.create(organization.id, CreateProject(name="P"), by=THE_OPERATOR)
            command = RegisterApplication(name="API", type="api")
            application, secret = services.applications.register(project.id, command, by=THE_OPERATOR)
            robot = a_program(services, organization)
            self.application_id, self.secret = application.id, secret or ""
            self.robot_id, self.robot_secret = robot.id, services.service_users.add_secret(robot.id, by=THE_OPERATOR)[1]

    def use(self) -> None:
        with self.identity.reading() as services:
            assert services.applications.authenticate(self.application_id, self.secret)
            assert services.service_users.authenticate(self.robot_id, self.robot_secret)

    def fail(self) -> None:
        with self.identity.reading() as services:
            assert not services.applications.authenticate(self.application_id, "wrong")
            assert not services.service_users.authenticate(self.robot_id, "wrong")

    def last_used(self) -> set[datetime | None]:
        with self.identity.reading() as services:
            [one] = services.applications.secrets(self.application_id)
            [other] = services.service_users.secrets(self.robot_id)
            return {one.last_used_at, other.last_used_at}


@pytest.fixture
def program(identity: Identity) -> Program:
    return Program(identity)


def test_authentication_itself_writes_nothing(identity: Identity, program: Program, clock: MovableClock) -> None:
    program.use()
    assert program.last_used() == {None}
    identity.jobs.write_last_uses()
    assert program.last_used() == {clock()}


def test_a_wrong_secret_is_no_use(identity: Identity, program: Program) -> None:
    program.fail()
    identity.jobs.write_last_uses()
    assert program.last_used() == {None}


def test_the_latest_use_counts(identity: Identity, program: Program, clock: MovableClock) -> None:
    program.use()
    clock.advance(minutes=5)
    program.use()
    identity.jobs.write_last_uses()
    assert program.last_used() == {clock()}
    clock.advance(minutes=5)
    identity.jobs.write_last_uses()
    assert program.last_used() == {clock() - timedelta(minutes=5)}


def test_what_could_not_be_written_is_tried_again(
    identity: Identity, program: Program, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: object, transactions: object) -> None:
        raise Unavailable("away")

    program.use()
    monkeypatch.setattr(MemoryBackend, "writing", away)
    with pytest.raises(Unavailable):
        identity.jobs.write_last_uses()
    monkeypatch.undo()
    identity.jobs.write_last_uses()
    assert program.last_used() == {clock()}


def test_the_end_of_the_process_loses_nothing(identity: Identity, program: Program, clock: MovableClock) -> None:
    program.use()
    identity.close()
    assert program.last_used() == {clock()}


def test_secrets_that_are_gone_are_no_trouble(identity: Identity, program: Program) -> None:
    program.use()
    with identity.transaction() as services:
        services.applications.remove(program.application_id, by=THE_OPERATOR)
        services.service_users.remove(program.robot_id, by=THE_OPERATOR)
    identity.jobs.write_last_uses()

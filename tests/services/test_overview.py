"""What needs attention: what expires, what was refused, what is still to be done."""

from datetime import timedelta

from identity.domain.effects import Removed
from identity.domain.permissions import organization_resource
from identity.process import Identity
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.managers import AddManager
from identity.services.commands.projects import CreateProject
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.services.overview import FirstSteps
from identity.testing.clock import MovableClock
from identity.testing.factories import a_key
from tests.services.people import a_program, an_organization


def add_key(services: Services, user_id: str, days: int) -> str:
    expires_at = services.now + timedelta(days=days)
    key = a_key(user_id=user_id, created_at=services.now, expires_at=expires_at)
    services.storage.credentials.add(key)
    return key.id


def test_what_expires_is_told_soonest_first(services: Services) -> None:
    acme, other = (an_organization(services, name) for name in ("Acme", "Other"))
    mine, theirs = a_program(services, acme).id, a_program(services, other).id
    late, soon, foreign = add_key(services, mine, 29), add_key(services, mine, 1), add_key(services, theirs, 2)
    add_key(services, mine, 31)
    command = AddPersonalAccessToken(name="CI", expires_at=services.now + timedelta(days=7))
    token, _ = services.service_users.add_token(mine, command, by=THE_OPERATOR)
    found = services.overview.expiring(acme.id, by=THE_OPERATOR)
    assert [(one.kind, one.object.id) for one in found] == [
        ("service_user_key", soon),
        ("personal_access_token", token.id),
        ("service_user_key", late),
    ]
    assert all(one.owner is not None and one.owner.user.id == mine for one in found)
    assert found[0].expires_at == services.now + timedelta(days=1)
    assert [one.object.id for one in services.overview.expiring(None, by=THE_OPERATOR)] == [
        soon,
        foreign,
        token.id,
        late,
    ]


def test_a_signing_key_that_is_about_to_retire_is_the_instance_s_concern(identity: Identity) -> None:
    with identity.transaction() as services:
        organization = an_organization(services)
        first = services.signing_keys.add_first()
        assert services.overview.expiring(None, by=THE_OPERATOR) == ()
        following = services.signing_keys.rotate()
        [found] = services.overview.expiring(None, by=THE_OPERATOR)
        assert (found.kind, found.object, found.owner) == ("signing_key", first, None)
        assert found.expires_at == following.active_at
        assert services.overview.expiring(organization.id, by=THE_OPERATOR) == ()


def refuse(identity: Identity, reason: str, organization_id: str | None = None) -> None:
    with identity.reading() as services:
        services.audit.refuse(
            "authentication.refused", kind="user", id="anna", reason=reason, organization_id=organization_id
        )
        identity.write_refusals(services.refused)


def test_refusals_of_a_day_are_taken_together(identity: Identity, clock: MovableClock) -> None:
    refuse(identity, "old", "acme")
    clock.advance(hours=25)
    for reason, organization_id in (("wrong password", "acme"), ("expired", "acme"), ("wrong password", "other")):
        refuse(identity, reason, organization_id)
        clock.advance(minutes=1)
    refuse(identity, "wrong password", "acme")
    with identity.reading() as services:
        found = services.overview.refused("acme", by=THE_OPERATOR)
        everywhere = services.overview.refused(None, by=THE_OPERATOR)
    assert [(one.reason, one.count, one.at) for one in found] == [
        ("wrong password", 2, clock()),
        ("expired", 1, clock() - timedelta(minutes=2)),
    ]
    assert (found[0].event, found[0].object_id) == ("authentication.refused", "anna")
    assert sum(one.count for one in everywhere) == 4


def test_twenty_refusals_are_told_at_most(identity: Identity) -> None:
    for number in range(25):
        refuse(identity, f"reason {number}")
    with identity.reading() as services:
        assert len(services.overview.refused(None, by=THE_OPERATOR)) == 20


def test_first_steps_are_ticked_off_one_by_one(services: Services) -> None:
    organization = an_organization(services)

    def steps() -> FirstSteps:
        return services.overview.first_steps(organization.id)

    nothing = FirstSteps(project=False, application=False, service_user=False, key=False, manager=False)
    assert steps() == nothing
    project = services.projects.create(organization.id, CreateProject(name="Project"), by=THE_OPERATOR)
    assert (steps().project, steps().application) == (True, False)
    services.applications.register(project.id, RegisterApplication(name="API", type="api"), by=THE_OPERATOR)
    assert (steps().application, steps().service_user) == (True, False)
    user_id = a_program(services, organization).id
    assert (steps().service_user, steps().key) == (True, False)
    add_key(services, user_id, 40)
    assert (steps().key, steps().manager) == (True, False)
    command = AddManager(user_id=user_id, roles=frozenset({"ORG_OWNER"}))
    services.managers.add(organization_resource(organization.id), command, by=THE_OPERATOR)
    assert steps() == FirstSteps(project=True, application=True, service_user=True, key=True, manager=True)


def test_what_falls_with_an_organization_is_counted(services: Services) -> None:
    organization = an_organization(services)
    services.projects.create(organization.id, CreateProject(name="Project"), by=THE_OPERATOR)
    add_key(services, a_program(services, organization).id, 40)
    found = services.effects(Removed.ORGANIZATION, organization.id)
    assert (found.projects, found.service_users, found.keys, found.users) == (1, 1, 1, 0)

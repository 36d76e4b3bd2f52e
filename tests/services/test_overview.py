"""What needs attention: expiring credentials, refusals, and pending tasks."""

from datetime import timedelta

from identity.application import IdentityApplication
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.managers import AddManager
from identity.services.commands.projects import CreateProject
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.services.container import Services
from identity.services.overview import GettingStarted
from identity.storage.contract import factories as make
from identity.testing.clock import FakeClock
from tests.services.factories import make_organization, make_service_user


def add_key(services: Services, user_id: str, days: int) -> str:
    expires_at = services.now + timedelta(days=days)
    key = make.service_user_key(user_id=user_id, created_at=services.now, expires_at=expires_at)
    services.storage.credentials.add(key)
    return key.id


def test_expiring_credentials_are_sorted_soonest_first(services: Services) -> None:
    acme, organization = (make_organization(services, name) for name in ("Acme", "Other"))
    own_id, other_id = make_service_user(services, acme).id, make_service_user(services, organization).id
    late, soon, foreign = add_key(services, own_id, 29), add_key(services, own_id, 1), add_key(services, other_id, 2)
    add_key(services, own_id, 31)
    command = AddPersonalAccessToken(name="CI", expires_at=services.now + timedelta(days=7))
    token, _ = services.service_users.add_personal_access_token(own_id, command, principal=Principal.OPERATOR)
    expiring_credentials = services.overview.list_expiring(acme.id, principal=Principal.OPERATOR)
    assert [
        (expiring_credential.kind, expiring_credential.credential.id) for expiring_credential in expiring_credentials
    ] == [
        ("service_user_key", soon),
        ("personal_access_token", token.id),
        ("service_user_key", late),
    ]
    assert all(
        expiring_credential.owner is not None and expiring_credential.owner.user.id == own_id
        for expiring_credential in expiring_credentials
    )
    assert expiring_credentials[0].expires_at == services.now + timedelta(days=1)
    assert [
        expiring_credential.credential.id
        for expiring_credential in services.overview.list_expiring(None, principal=Principal.OPERATOR)
    ] == [
        soon,
        foreign,
        token.id,
        late,
    ]


def test_expiring_signing_key_is_listed_for_the_instance(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        organization = make_organization(services)
        first = services.signing_keys.add_first()
        assert services.overview.list_expiring(None, principal=Principal.OPERATOR) == ()
        following = services.signing_keys.rotate()
        [expiring_credential] = services.overview.list_expiring(None, principal=Principal.OPERATOR)
        assert (expiring_credential.kind, expiring_credential.credential, expiring_credential.owner) == (
            "signing_key",
            first,
            None,
        )
        assert expiring_credential.expires_at == following.active_at
        assert services.overview.list_expiring(organization.id, principal=Principal.OPERATOR) == ()


def refuse(identity: IdentityApplication, reason: str, organization_id: str | None = None) -> None:
    with identity.read_session() as services:
        services.audit.record_refusal(
            "authentication.refused", kind="user", id="anna", reason=reason, organization_id=organization_id
        )
        identity.record_refusals(services.audit.refused_events)


def test_recent_refusals_are_grouped(identity: IdentityApplication, clock: FakeClock) -> None:
    refuse(identity, "old", "acme")
    clock.advance(hours=25)
    for reason, organization_id in (("wrong password", "acme"), ("expired", "acme"), ("wrong password", "other")):
        refuse(identity, reason, organization_id)
        clock.advance(minutes=1)
    refuse(identity, "wrong password", "acme")
    with identity.read_session() as services:
        refusal_summaries = services.overview.list_refused("acme", principal=Principal.OPERATOR)
        everywhere = services.overview.list_refused(None, principal=Principal.OPERATOR)
    assert [
        (refusal_summary.reason, refusal_summary.count, refusal_summary.last_at)
        for refusal_summary in refusal_summaries
    ] == [
        ("wrong password", 2, clock()),
        ("expired", 1, clock() - timedelta(minutes=2)),
    ]
    assert (refusal_summaries[0].event, refusal_summaries[0].object_id) == ("authentication.refused", "anna")
    assert sum(refusal_summary.count for refusal_summary in everywhere) == 4


def test_refusals_are_limited_to_twenty(identity: IdentityApplication) -> None:
    for number in range(25):
        refuse(identity, f"reason {number}")
    with identity.read_session() as services:
        assert len(services.overview.list_refused(None, principal=Principal.OPERATOR)) == 20


def test_completed_steps_are_marked(services: Services) -> None:
    organization = make_organization(services)

    def steps() -> GettingStarted:
        return services.overview.getting_started(organization.id)

    nothing = GettingStarted(project=False, application=False, service_user=False, key=False, manager=False)
    assert steps() == nothing
    project = services.projects.create(organization.id, CreateProject(name="Project"), principal=Principal.OPERATOR)
    assert (steps().project, steps().application) == (True, False)
    services.applications.register_with_secret(
        project.id, RegisterApplication(name="API", type="api"), principal=Principal.OPERATOR
    )
    assert (steps().application, steps().service_user) == (True, False)
    user_id = make_service_user(services, organization).id
    assert (steps().service_user, steps().key) == (True, False)
    add_key(services, user_id, 40)
    assert (steps().key, steps().manager) == (True, False)
    command = AddManager(user_id=user_id, roles=frozenset({"ORG_OWNER"}))
    services.managers.add(Resource.of_organization(organization.id), command, principal=Principal.OPERATOR)
    assert steps() == GettingStarted(project=True, application=True, service_user=True, key=True, manager=True)


def test_organization_deletion_impact_is_counted(services: Services) -> None:
    organization = make_organization(services)
    services.projects.create(organization.id, CreateProject(name="Project"), principal=Principal.OPERATOR)
    add_key(services, make_service_user(services, organization).id, 40)
    deletion_impact = services.deletion_impact(DeletionTarget.ORGANIZATION, organization.id)
    assert (deletion_impact.projects, deletion_impact.service_users, deletion_impact.keys, deletion_impact.users) == (
        1,
        1,
        1,
        0,
    )

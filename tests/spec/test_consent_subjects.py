"""Decisions, consent: who must consent, by rule, by project grants, and before an application manages for a user."""

import pytest

from identity.domain.applications import ConsentRule
from identity.domain.permissions import Resource
from identity.services.commands.projects import AddProjectRole, ChangeProject
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_inactive_token, check_oauth_error
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.consent_scenario import ConsentScenario

MANAGES = "can do everything on your behalf that you may do as a manager"


@pytest.fixture
def scene(world: World) -> ConsentScenario:
    return ConsentScenario(world)


def test_project_grant_to_user_organization_needs_no_consent(scene: ConsentScenario) -> None:
    grant = scene.world.make_project_grant(scene.project, scene.home)
    tokens = scene.silently("openid offline_access")
    scene.world.operator_services.project_grants.deactivate(grant.id)
    # The application now belongs to another organization.
    check_oauth_error(scene.party.refresh(tokens.refresh_token), "invalid_grant")
    scene.agreed("openid offline_access")
    again = scene.party.refresh(tokens.refresh_token)
    assert again.status_int == 200


#: The manager roles in the user's organization, besides full rights in the project, of the manager who creates or uses
#: the project grant → whether that organization accepts the grant.
TAKING_PART: dict[tuple[str, ...], bool] = {
    (): False,
    ("ORG_OWNER_VIEWER",): False,
    ("ORG_PROJECT_CREATOR",): False,
    ("ORG_USER_MANAGER",): True,
    ("ORG_OWNER",): True,
}


@pytest.mark.parametrize("roles", TAKING_PART)
def test_grant_by_application_organization_keeps_consent(world: World, roles: tuple[str, ...]) -> None:
    """An organization does not agree to a project grant in advance, and any organization can create one."""
    scene = ConsentScenario(world)
    api = _with_the_project(scene, roles)
    members = {"organization_id": scene.home.id, "roles": []}
    grant = api.ask("POST", f"/projects/{scene.project.id}/grants", members).json
    assert grant["accepted"] == TAKING_PART[roles]
    if grant["accepted"]:
        scene.silently(prompt="none")
    else:
        scene.refused("consent_required", prompt="none")
        scene.agreed()


@pytest.mark.parametrize("roles", [roles for roles in TAKING_PART if roles not in ((), ("ORG_PROJECT_CREATOR",))])
def test_project_grant_used_by_grantee_needs_no_consent(world: World, roles: tuple[str, ...]) -> None:
    scene = ConsentScenario(world)
    world.operator_services.projects.add_role(scene.project.id, AddProjectRole(key="reader", display_name="Reader"))
    by_owner = _with_the_project(scene, ())
    members = {"organization_id": scene.home.id, "roles": ["reader"]}
    grant = by_owner.ask("POST", f"/projects/{scene.project.id}/grants", members).json
    colleague = world.make_human_user(scene.home)
    user_grant = {"user_id": colleague.id, "roles": ["reader"]}
    api = _with_the_project(scene, roles)
    assert api.ask("POST", f"/project-grants/{grant['id']}/user-grants", user_grant).status_int == 201
    assert by_owner.ask("GET", f"/project-grants/{grant['id']}").json["accepted"] == TAKING_PART[roles]
    events = world.audit_events(event="project_grant.accepted", object_id=grant["id"])
    # The audit trails of both organizations contain it.
    sides = {scene.home.id, scene.project.organization_id} if TAKING_PART[roles] else set()
    assert sorted(str(event.organization_id) for event in events) == sorted(sides)
    scene.ask()
    assert scene.asks != TAKING_PART[roles]


def _with_the_project(scene: ConsentScenario, roles: tuple[str, ...]) -> ApiClient:
    """The API of an owner of the application's organization with these roles in the user's organization."""
    robot = scene.world.make_service_user_program(scene.owner)
    scene.world.assign_manager_role(robot, "ORG_OWNER")
    for role in roles:
        scene.world.assign_manager_role(robot, role, resource=Resource.of_organization(scene.home.id))
    return ApiClient.for_user(robot)


@pytest.mark.parametrize("rule", ConsentRule)
@pytest.mark.parametrize("at_home", [True, False])
def test_application_consent_rule_applies(world: World, rule: ConsentRule, at_home: bool) -> None:
    scene = ConsentScenario(world)
    owner = scene.home if at_home else scene.owner
    scene.party = RelyingParty.register(world, project_id=world.make_project(owner).id, consent=rule)
    asks = rule is ConsentRule.ALWAYS or (rule is ConsentRule.WHEN_FOREIGN and not at_home)
    if asks:
        scene.agreed()
    for _ in range(2):
        scene.silently()
    assert len(scene.events()) == asks


def test_refused_user_sees_no_consent_page(scene: ConsentScenario) -> None:
    """Refused by the project's role check, or for a scope that cannot be granted."""
    scene.refused("invalid_scope", f"openid {scene.world.audience_scope(scene.world.make_project().id)}")
    scene.world.operator_services.projects.change(scene.project.id, ChangeProject(check_roles=True))
    scene.refused("access_denied")
    assert scene.events() == []


def test_prompt_consent_shows_page_despite_consent(world: World) -> None:
    """Even in the application's organization, and with the consent rule "never"."""
    for members in ({}, {"consent": ConsentRule.NEVER}):
        scene = ConsentScenario(world, **members)
        for _ in range(2):
            scene.agreed(prompt="consent")
        scene.silently()
        assert [event.event for event in scene.events()] == ["consent.given"] * 2


@pytest.mark.parametrize("rule", ConsentRule)
@pytest.mark.parametrize("at_home", [True, False])
def test_management_access_always_needs_consent(world: World, rule: ConsentRule, at_home: bool) -> None:
    scene = ConsentScenario(world)
    owner = scene.home if at_home else scene.owner
    scene.party = RelyingParty.register(world, project_id=world.make_project(owner).id, consent=rule, may_manage=True)
    world.assign_manager_role(scene.person, "ORG_OWNER")
    scope = f"openid {world.audience_scope()}"
    scene.refused("consent_required", scope, prompt="none")
    scene.ask(scope)
    assert scene.asks
    assert MANAGES in scene.browser.page.html.main.get_text()
    tokens = scene.agreed(scope)
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 200
    assert world.client.introspect(tokens.access_token, world.introspector).json["active"] is True
    scene.silently(scope, prompt="none")
    assert MANAGES in scene.browser.open("/account/applications").text
    # Without the scope there is neither management access to consent to nor an audience.
    if at_home and rule is not ConsentRule.ALWAYS:
        scene.disconnect()
        tokens = scene.silently("openid")
        assert world.client.call_management_api("/me", tokens.access_token).status_int == 401


def test_management_consent_revocation_is_immediate(world: World) -> None:
    """Security 7.4: revoked with the application's mark or with the consent."""
    scene = ConsentScenario(world, may_manage=True)
    world.assign_manager_role(scene.person, "ORG_OWNER")
    scope = f"openid offline_access {world.audience_scope()}"
    tokens = scene.agreed(scope)
    scene.change(may_manage=False)
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 401
    check_inactive_token(world.client.introspect(tokens.access_token, world.introspector))
    check_oauth_error(scene.party.refresh(tokens.refresh_token), "invalid_scope")
    scene.refused("invalid_scope", scope)
    scene.change(may_manage=True)
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 200
    scene.disconnect()
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 401


def test_instance_application_manages_with_audience_scope_only(world: World) -> None:
    """The instance's project is not in the audience by default, because the user has not consented to it."""
    organization = world.operator_services.organizations.get(world.instance.organization_id)
    scene = ConsentScenario(world, organization=organization)
    scene.party = RelyingParty.register(
        world, project_id=world.instance.project_id, consent=ConsentRule.WHEN_FOREIGN, may_manage=True
    )
    world.assign_manager_role(scene.person, "ORG_OWNER")
    tokens = scene.agreed("openid")
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 401
    tokens = scene.agreed("openid urn:service:iam:org:project:id:service:aud")
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 200


@pytest.mark.storages("memory")  # the plugins matter, not the storage
@pytest.mark.parametrize("parameters", [{}, {"prompt": "consent"}])
def test_missing_consent_page_refuses_request(make_world: WorldFactory, parameters: dict[str, str]) -> None:
    """As with a missing sign-in page: without a plugin that asks, the request is refused."""
    plugins = " ".join(item for item in DEFAULT_PLUGINS.split() if item not in ("login", "account", "console"))
    scene = ConsentScenario(make_world(**{"identity.plugins": f"memory {plugins}"}))
    scene.refused("consent_required", **parameters)

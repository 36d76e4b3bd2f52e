"""Decisions, namespaces: the scopes for project roles, and the responses that contain role claims."""

from typing import Any

import pytest

from identity.domain.projects import Project
from identity.domain.users import HumanUser, TokenFormat
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.storage.memory.user_grants import MemoryUserGrantStore
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import World

ALL = "urn:service:iam:org:projects:roles"
ROLES_CLAIM = "urn:service:iam:org:project:roles"


def role_scope(role: str) -> str:
    """The scope that asks for a single role."""
    return f"urn:service:iam:org:project:role:{role}"


def project_claim(project: Project) -> str:
    """The claim of a project's roles."""
    return f"urn:service:iam:org:project:{project.id}:roles"


def roles_in(claims: dict[str, Any]) -> dict[str, set[str]]:
    """The role claims, by name: the keys of the roles."""
    return {name: set(value) for name, value in claims.items() if ":org:project" in name}


class RoleScopeScenario:
    """A user with roles in two projects, an application of the first, and the second in the audience."""

    def __init__(self, world: World, **members: Any) -> None:
        self.world = world
        self.organization = world.make_organization()
        self.person: HumanUser = world.make_human_user(self.organization)
        self.session = world.make_browser_session(self.person)
        self.project = world.make_project(self.organization, roles=["reader", "writer", "owner"])
        self.other = world.make_project(self.organization, roles=["reader", "auditor"])
        self.client: Credentials = world.make_web_application(self.project.id, **members)
        self.grant = world.make_user_grant(self.person, self.project, "reader", "writer")
        world.make_user_grant(self.person, self.other, "reader", "auditor")

    def tokens(self, *scopes: str) -> dict[str, Any]:
        """Tokens with the other project in their audience."""
        scope = ("openid", "offline_access", self.world.audience_scope(self.other.id), *scopes)
        return self.world.obtain_tokens(self.client, self.session, scope=" ".join(scope))

    def roles_in_userinfo(self, *scopes: str) -> dict[str, set[str]]:
        """Role claims of userinfo; introspection must return the same."""
        return self.roles_of_token(self.tokens(*scopes)["access_token"])

    def roles_of_token(self, token: str) -> dict[str, set[str]]:
        """Role claims of userinfo and introspection for this token."""
        claims = self.world.client.fetch_userinfo(token).json
        introspected = self.world.client.introspect(token, self.client).json
        assert {name: claims[name] for name in roles_in(claims)} == {
            name: introspected[name] for name in roles_in(introspected)
        }
        return roles_in(claims)

    def change(self, project: Project, **members: bool) -> None:
        """Change a project's settings."""
        self.world.operator_services.projects.change(project.id, ChangeProject(**members))


@pytest.fixture
def scene(world: World) -> RoleScopeScenario:
    return RoleScopeScenario(world)


def test_roles_need_a_scope(scene: RoleScopeScenario) -> None:
    assert scene.roles_in_userinfo() == {}


def test_roles_scope_returns_roles_of_every_audience_project(scene: RoleScopeScenario) -> None:
    """The roles of the application's own project are repeated under a fixed claim name."""
    assert scene.roles_in_userinfo(ALL) == {
        ROLES_CLAIM: {"reader", "writer"},
        project_claim(scene.project): {"reader", "writer"},
        project_claim(scene.other): {"reader", "auditor"},
    }


def test_role_claim_names_granting_organizations(world: World, scene: RoleScopeScenario) -> None:
    """Decisions: role → {organization id: primary domain}."""
    owner = world.make_organization()
    project = world.make_project(owner, roles=["reader", "writer"])
    grant = world.make_project_grant(project, scene.organization, roles=["reader"])
    world.make_user_grant(scene.person, project, "reader", "writer", grant=grant)
    world.make_user_grant(scene.person, project, "reader")
    client = world.make_web_application(project.id)
    token = world.obtain_tokens(client, scene.session, scope=f"openid {ALL}")["access_token"]
    expected = {
        "reader": {
            owner.id: owner.primary_domain,
            scene.organization.id: scene.organization.primary_domain,
        }
    }
    assert world.client.fetch_userinfo(token).json[ROLES_CLAIM] == expected
    assert world.client.fetch_userinfo(token).json[project_claim(project)] == expected


def test_single_role_scope_returns_that_role(scene: RoleScopeScenario) -> None:
    assert scene.roles_in_userinfo(role_scope("writer")) == {
        ROLES_CLAIM: {"writer"},
        project_claim(scene.project): {"writer"},
    }
    assert scene.roles_in_userinfo(role_scope("writer"), role_scope("auditor")) == {
        ROLES_CLAIM: {"writer"},
        project_claim(scene.project): {"writer"},
        project_claim(scene.other): {"auditor"},
    }
    assert scene.roles_in_userinfo(role_scope("writer"), ALL) == scene.roles_in_userinfo(ALL)


def test_role_scope_grants_no_role(scene: RoleScopeScenario) -> None:
    """A role scope that the user does not have is granted, but returns no role."""
    members = scene.tokens(role_scope("owner"))
    assert role_scope("owner") in members["scope"]
    assert scene.roles_of_token(members["access_token"]) == {}


def test_asserting_project_returns_roles_without_scope(scene: RoleScopeScenario) -> None:
    """Applies to the application's project and any other in the audience, and to existing tokens."""
    token = scene.tokens()["access_token"]
    scene.change(scene.project, assert_roles=True)
    assert scene.roles_of_token(token) == {
        ROLES_CLAIM: {"reader", "writer"},
        project_claim(scene.project): {"reader", "writer"},
    }
    scene.change(scene.project, assert_roles=False)
    scene.change(scene.other, assert_roles=True)
    assert scene.roles_of_token(token) == {project_claim(scene.other): {"reader", "auditor"}}
    without = scene.world.obtain_tokens(scene.client, scene.session, scope="openid")["access_token"]
    assert scene.roles_of_token(without) == {}


def test_asserting_project_returns_roles_beside_requested_ones(scene: RoleScopeScenario) -> None:
    scene.change(scene.other, assert_roles=True)
    assert scene.roles_in_userinfo(role_scope("reader")) == {
        ROLES_CLAIM: {"reader"},
        project_claim(scene.project): {"reader"},
        project_claim(scene.other): {"reader", "auditor"},
    }


def test_removed_role_disappears_from_claims(world: World, scene: RoleScopeScenario) -> None:
    """Security 7.4 and 14.5: at the next request."""
    owner = world.make_organization()
    project = world.make_project(owner, roles=["reader"])
    grant = world.make_project_grant(project, scene.organization, roles=["reader"])
    world.make_user_grant(scene.person, project, "reader", grant=grant)
    token = world.obtain_tokens(scene.client, scene.session, scope=f"openid {ALL} {world.audience_scope(project.id)}")
    roles = scene.roles_of_token(token["access_token"])
    assert roles[project_claim(project)] == {"reader"}
    with world.transaction_services() as services:
        services.project_grants.deactivate(grant.id, principal=Principal.OPERATOR)
        services.storage.user_grants.delete(scene.grant.id)
    assert scene.roles_of_token(token["access_token"]) == {}


def test_deactivated_project_returns_no_roles(scene: RoleScopeScenario) -> None:
    token = scene.tokens(ALL)["access_token"]
    scene.world.operator_services.projects.deactivate(scene.other.id)
    assert scene.roles_of_token(token) == {
        ROLES_CLAIM: {"reader", "writer"},
        project_claim(scene.project): {"reader", "writer"},
    }


def test_token_roles_follow_application_setting(world: World, scene: RoleScopeScenario) -> None:
    """In JWT access tokens, ID tokens or neither; a refresh returns the current roles."""
    plain = scene.tokens(ALL)
    assert roles_in(decode_jwt_unverified(plain["id_token"])[1]) == {}
    saying = RoleScopeScenario(world, assert_roles_in_id_token=True)
    assert roles_in(decode_jwt_unverified(saying.tokens()["id_token"])[1]).keys() == {
        ROLES_CLAIM,
        project_claim(saying.project),
        project_claim(saying.other),
    }

    jwt = RoleScopeScenario(world, access_token_type=TokenFormat.JWT)
    assert roles_in(decode_jwt_unverified(jwt.tokens(ALL)["access_token"])[1]) == {}
    scene = RoleScopeScenario(world, access_token_type=TokenFormat.JWT, assert_roles_in_access_token=True)
    expected = {
        ROLES_CLAIM: {"reader", "writer"},
        project_claim(scene.project): {"reader", "writer"},
        project_claim(scene.other): {"reader", "auditor"},
    }
    members = scene.tokens()
    assert roles_in(decode_jwt_unverified(members["access_token"])[1]) == expected
    assert roles_in(decode_jwt_unverified(members["id_token"])[1]) == {}
    world.operator_services.storage.user_grants.delete(scene.grant.id)
    again = check_token_response(world.refresh(members["refresh_token"], scene.client))
    assert roles_in(decode_jwt_unverified(again["access_token"])[1]) == {
        project_claim(scene.other): {"reader", "auditor"}
    }


def test_service_user_roles_cover_all_projects(world: World, scene: RoleScopeScenario) -> None:
    """No application is involved, so the fixed claim covers all projects."""
    robot = world.make_service_user_program(scene.organization)
    world.make_user_grant(robot.user, scene.project, "reader")
    world.make_user_grant(robot.user, scene.other, "auditor")
    audience = " ".join(world.audience_scope(project.id) for project in (scene.project, scene.other))
    token = robot.access_token(f"openid {audience} {ALL}")
    assert roles_in(world.client.fetch_userinfo(token).json) == {
        ROLES_CLAIM: {"reader", "auditor"},
        project_claim(scene.project): {"reader"},
        project_claim(scene.other): {"auditor"},
    }
    token = robot.access_token(f"openid {audience}")
    assert roles_in(world.client.fetch_userinfo(token).json) == {}
    scene.change(scene.other, assert_roles=True)
    assert roles_in(world.client.fetch_userinfo(token).json) == {
        ROLES_CLAIM: {"auditor"},
        project_claim(scene.other): {"auditor"},
    }


@pytest.mark.storages("memory")  # counts queries, independent of the storage
def test_token_without_role_claims_runs_no_query(
    world: World, scene: RoleScopeScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same holds for management API tokens."""

    def refuse(*_: object) -> None:
        raise AssertionError("roles are looked up")

    person = world.obtain_tokens(scene.client, scene.session, scope="openid profile")["access_token"]
    robot = world.make_service_user_program().management_token()
    introspector = world.introspector
    monkeypatch.setattr(MemoryUserGrantStore, "list_effective", refuse)
    assert world.client.fetch_userinfo(person).status_int == 200
    assert world.client.introspect(person, scene.client).json["active"] is True
    assert world.client.fetch_userinfo(robot).status_int == 200
    assert world.client.introspect(robot, introspector).json["active"] is True


@pytest.mark.storages("memory")  # a setting
def test_claims_use_namespace_of_request(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.urn_namespaces": "urn:service:iam urn:zitadel:iam"})
    scene = RoleScopeScenario(world)
    token = world.obtain_tokens(scene.client, scene.session, scope="openid urn:zitadel:iam:org:projects:roles")[
        "access_token"
    ]
    assert set(roles_in(world.client.fetch_userinfo(token).json)) == {
        "urn:zitadel:iam:org:project:roles",
        f"urn:zitadel:iam:org:project:{scene.project.id}:roles",
    }


@pytest.mark.parametrize(
    "scope",
    [
        "urn:zitadel:iam:org:projects:roles",
        "urn:zitadel:iam:org:project:role:reader",
        "urn:service:iam:org:projects:roles:x",
        "x:org:projects:roles",
        ":org:project:role:reader",
    ],
)
def test_scopes_of_other_shapes_and_namespaces_are_dropped(world: World, scope: str) -> None:
    assert check_token_response(world.make_service_user_program().request_token(f"openid {scope}"))["scope"] == "openid"


def test_role_scope_without_role_is_refused(world: World) -> None:
    """A scope in the service's namespace that cannot be granted is named in the error."""
    answer = world.make_service_user_program().request_token(f"openid {role_scope('')}")
    check_oauth_error(answer, "invalid_scope", description=f"{role_scope('')} names no role")

"""Security 14.1: permissions of every role at every path of the management API, on own and foreign resources.

The expected tables are written here and not derived from the service.
"""

import json
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import pytest

from identity.domain.managers import ManagerRole
from identity.domain.permissions import Resource, project_grant_resource
from identity.services.access_control import Principal
from identity.testing.response_checks import check_api_error, format_response
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient, ApiFixtureData, level_of, make_fixture_data

pytestmark = pytest.mark.storages("memory")

#: Any manager role is sufficient.
ANY = "any manager"
#: Any token for this service is sufficient, even without a role.
EVERYBODY = "signed in"

#: Permission → operations; the path determines the level at which it is checked.
ROUTES = {
    EVERYBODY: "GET /me",
    ANY: "GET /instance; GET /organizations; GET /roles; GET /search",
    "instance.read": "GET /instance/policy; GET /instance/figures; GET /instance/webhooks; GET /instance/plugins;"
    " GET /instance/system-report; GET /instance/sent-mails",
    "instance_manager.read": "GET /instance/managers",
    "instance_manager.write": "POST /instance/managers",
    "signing_key.read": "GET /instance/signing-keys",
    "signing_key.write": "POST /instance/signing-keys/rotate; DELETE /instance/signing-keys/{signing_key}",
    "legal_hold.read": "GET /instance/legal-holds; GET /instance/legal-holds/{legal_hold}",
    "legal_hold.write": "POST /instance/legal-holds; DELETE /instance/legal-holds/{legal_hold}",
    "audit_event.read": "GET /audit-events; GET /audit-events/{audit_event};"
    " GET /organizations/{organization}/audit-events; GET /organizations/{organization}/overview;"
    " GET /instance/overview",
    "organization.create": "POST /organizations; POST /organizations/import",
    "organization.read": "GET /organizations/{organization}; GET /organizations/{organization}/domains;"
    " GET /organizations/{organization}/domains/{domain}; GET /organizations/{organization}/policy;"
    " GET /organizations/{organization}/branding; GET /organizations/{organization}/figures;"
    " GET /organizations/{organization}/mail-texts; GET /organizations/{organization}/first-steps;"
    " POST /organizations/{organization}/first-steps/hide; POST /organizations/{organization}/first-steps/restore",
    "organization.write": "PATCH /organizations/{organization}; PATCH /organizations/{organization}/branding;"
    " PATCH /organizations/{organization}/mail-texts",
    "organization_domain.write": "POST /organizations/{organization}/domains;"
    " POST /organizations/{organization}/domains/{domain}/verify;"
    " DELETE /organizations/{organization}/domains/{domain}",
    "organization_policy.write": "PATCH /organizations/{organization}/policy;"
    " POST /organizations/{organization}/policy/effect",
    "instance.write": "POST /organizations/{organization}/domains/{domain}/assert; PATCH /instance/policy;"
    " POST /organizations/{organization}/directories/{directory}/test;"
    " POST /organizations/{organization}/directories/{directory}/attribute-mappings;"
    " POST /organizations/{organization}/directories/{directory}/group-mappings;"
    " POST /instance/policy/effect; POST /instance/webhooks; GET /instance/mail-server; PATCH /instance/mail-server;"
    " POST /instance/mail-server/test; GET /instance/mails; POST /instance/mails/{mail}/retry;"
    " DELETE /instance/mails/{mail}; GET /instance/mail-texts; PATCH /instance/mail-texts",
    "organization.delete": "DELETE /organizations/{organization}; POST /organizations/{organization}/deactivate;"
    " POST /organizations/{organization}/revoke-access;"
    " POST /organizations/{organization}/reactivate",
    "organization_manager.read": "GET /organizations/{organization}/managers;"
    " POST /organizations/{organization}/export",
    "organization_manager.write": "POST /organizations/{organization}/managers",
    "user.read": "GET /organizations/{organization}/users; GET /users/{user};"
    " GET /organizations/{organization}/token-preview; GET /users/{user}/factors; GET /users/{user}/access;"
    " GET /users/{user}/mails",
    "user.write": "POST /organizations/{organization}/users; PATCH /users/{user}; POST /users/{user}/deactivate;"
    " POST /users/{user}/reactivate; POST /users/{user}/password-link; POST /users/{user}/one-time-password;"
    " POST /users/{user}/unlock; POST /users/{user}/keep; POST /users/{user}/revoke-access;"
    " POST /users/{user}/stop-agents;"
    " DELETE /users/{user}/factors;"
    " GET /organizations/{organization}/user-imports; POST /organizations/{organization}/user-imports;"
    " GET /organizations/{organization}/user-imports/{user_import};"
    " DELETE /organizations/{organization}/user-imports/{user_import};"
    " GET /organizations/{organization}/user-imports/{user_import}/report;"
    " POST /organizations/{organization}/user-imports/{user_import}/run;"
    " POST /organizations/{organization}/user-imports/{user_import}/cancel",
    "user.delete": "DELETE /users/{user}",
    "session.read": "GET /users/{user}/sessions; GET /users/{user}/connections",
    "session.delete": "DELETE /users/{user}/sessions; DELETE /users/{user}/sessions/{session};"
    " DELETE /users/{user}/connections/{application}",
    "service_user.read": "GET /organizations/{organization}/service-users; GET /service-users/{service_user};"
    " GET /service-users/{service_user}/access; GET /users/{user}/agents;"
    " GET /service-users/{service_user}/keys; GET /service-users/{service_user}/keys/{key};"
    " GET /service-users/{service_user}/secrets; GET /service-users/{service_user}/secrets/{secret};"
    " GET /service-users/{service_user}/federated-credentials;"
    " GET /service-users/{service_user}/federated-credentials/{credential};"
    " GET /service-users/{service_user}/personal-access-tokens;"
    " GET /service-users/{service_user}/personal-access-tokens/{token}",
    "service_user.write": "POST /organizations/{organization}/service-users; PATCH /service-users/{service_user};"
    " POST /service-users/{service_user}/deactivate;"
    " POST /service-users/{service_user}/revoke-access; POST /service-users/{service_user}/reactivate;"
    " POST /service-users/{service_user}/keys; DELETE /service-users/{service_user}/keys/{key};"
    " POST /service-users/{service_user}/secrets; DELETE /service-users/{service_user}/secrets/{secret};"
    " POST /service-users/{service_user}/federated-credentials;"
    " DELETE /service-users/{service_user}/federated-credentials/{credential};"
    " POST /service-users/{service_user}/personal-access-tokens;"
    " DELETE /service-users/{service_user}/personal-access-tokens/{token}",
    "service_user.delete": "DELETE /service-users/{service_user}",
    "project.read": "GET /organizations/{organization}/projects; GET /projects/{project}",
    "project.create": "POST /organizations/{organization}/projects",
    "project.write": "PATCH /projects/{project}; POST /projects/{project}/deactivate;"
    " POST /projects/{project}/reactivate",
    "project.delete": "DELETE /projects/{project}",
    "project_role.read": "GET /projects/{project}/roles; GET /projects/{project}/roles/{role}",
    "project_role.write": "POST /projects/{project}/roles; PATCH /projects/{project}/roles/{role};"
    " DELETE /projects/{project}/roles/{role}",
    "project_manager.read": "GET /projects/{project}/managers",
    "project_manager.write": "POST /projects/{project}/managers",
    "application.read": "GET /projects/{project}/applications; GET /applications/{application};"
    " GET /applications/{application}/secrets; GET /applications/{application}/secrets/{client_secret};"
    " GET /applications/{application}/federated-credentials;"
    " GET /applications/{application}/federated-credentials/{application_credential};"
    " GET /applications/{application}/branding; GET /applications/{application}/log",
    "application.write": "POST /projects/{project}/applications; PATCH /applications/{application};"
    " POST /applications/{application}/deactivate;"
    " POST /applications/{application}/revoke-access; POST /applications/{application}/reactivate;"
    " POST /applications/{application}/secrets; DELETE /applications/{application}/secrets/{client_secret};"
    " POST /applications/{application}/federated-credentials;"
    " DELETE /applications/{application}/federated-credentials/{application_credential};"
    " PATCH /applications/{application}/branding",
    "application.delete": "DELETE /applications/{application}",
    "project_grant.read": "GET /projects/{project}/grants; GET /organizations/{organization}/granted-projects;"
    " GET /project-grants/{project_grant}",
    "project_grant.write": "POST /projects/{project}/grants; PATCH /project-grants/{project_grant};"
    " POST /project-grants/{project_grant}/deactivate; POST /project-grants/{project_grant}/reactivate",
    "project_grant.delete": "DELETE /project-grants/{project_grant}",
    "attribute.read": "GET /organizations/{organization}/attributes; GET /attributes/{attribute}",
    "attribute.write": "POST /organizations/{organization}/attributes; PATCH /attributes/{attribute}",
    "attribute.delete": "DELETE /attributes/{attribute}",
    "group.read": "GET /organizations/{organization}/groups; GET /users/{user}/groups;"
    " GET /service-users/{service_user}/groups; GET /groups/{group}; GET /groups/{group}/members;"
    " GET /groups/{group}/grants; GET /groups/{group}/managers; GET /group-members/{group_member};"
    " GET /group-grants/{group_grant}; GET /group-managers/{group_manager}; GET /groups/{group}/mappings",
    "group.write": "POST /organizations/{organization}/groups; PATCH /groups/{group}; DELETE /groups/{group};"
    " POST /groups/{group}/deactivate; POST /groups/{group}/reactivate; POST /groups/{group}/members;"
    " POST /groups/{group}/grants; POST /groups/{group}/managers; PATCH /group-members/{group_member};"
    " DELETE /group-members/{group_member}; PATCH /group-grants/{group_grant}; DELETE /group-grants/{group_grant};"
    " PATCH /group-managers/{group_manager}; DELETE /group-managers/{group_manager}",
    "upstream_provider.read": "GET /organizations/{organization}/upstream-providers;"
    " GET /organizations/{organization}/directories; GET /organizations/{organization}/directories/{directory};"
    " GET /organizations/{organization}/directories/{directory}/attribute-mappings;"
    " GET /organizations/{organization}/directories/{directory}/group-mappings;"
    " GET /upstream-providers/{upstream_provider}; GET /upstream-providers/{upstream_provider}/group-mappings;"
    " GET /group-mappings/{group_mapping}; GET /upstream-providers/{upstream_provider}/attribute-mappings;"
    " GET /attribute-mappings/{attribute_mapping}",
    "upstream_provider.write": "POST /organizations/{organization}/upstream-providers;"
    " PATCH /upstream-providers/{upstream_provider}; POST /upstream-providers/{upstream_provider}/deactivate;"
    " POST /upstream-providers/{upstream_provider}/reactivate;"
    " POST /upstream-providers/{upstream_provider}/group-mappings; PATCH /group-mappings/{group_mapping};"
    " DELETE /group-mappings/{group_mapping}; POST /upstream-providers/{upstream_provider}/attribute-mappings;"
    " PATCH /attribute-mappings/{attribute_mapping}; DELETE /attribute-mappings/{attribute_mapping}",
    "upstream_provider.delete": "DELETE /upstream-providers/{upstream_provider}",
    "webhook.read": "GET /organizations/{organization}/webhooks; GET /webhooks/{webhook};"
    " GET /webhooks/{webhook}/deliveries; GET /webhooks/{webhook}/deliveries/{delivery}",
    "webhook.write": "POST /organizations/{organization}/webhooks; PATCH /webhooks/{webhook};"
    " POST /webhooks/{webhook}/deactivate; POST /webhooks/{webhook}/reactivate; POST /webhooks/{webhook}/test;"
    " POST /webhooks/{webhook}/rotate-secret; POST /webhooks/{webhook}/retire-previous-secret;"
    " POST /webhooks/{webhook}/deliveries/{delivery}/resend",
    "webhook.delete": "DELETE /webhooks/{webhook}",
    "project_grant_manager.read": "GET /project-grants/{project_grant}/managers;"
    " GET /project-grants/{project_grant}/other-managers",
    "project_grant_manager.write": "POST /project-grants/{project_grant}/managers",
    "user_grant.read": "GET /users/{user}/grants; GET /service-users/{service_user}/grants;"
    " GET /projects/{project}/user-grants; GET /project-grants/{project_grant}/user-grants;"
    " GET /user-grants/{user_grant}",
    "user_grant.write": "POST /users/{user}/grants; POST /service-users/{service_user}/grants;"
    " POST /projects/{project}/user-grants; POST /project-grants/{project_grant}/user-grants;"
    " PATCH /user-grants/{user_grant}; POST /user-grants/{user_grant}/deactivate;"
    " POST /user-grants/{user_grant}/reactivate; DELETE /user-grants/{user_grant}",
    "{level}_manager.read": "GET /managers/{manager}",
    "{level}_manager.write": "PATCH /managers/{manager}; DELETE /managers/{manager}",
}

_GRANTS = "project_grant_manager.* user_grant.* project_grant.read"
_PROJECTS = f"project_role.* application.* project_grant.* project_manager.* {_GRANTS}"
_PROJECTS += " project.read project.write project.delete"
_PEOPLE = "user.read user.write user.delete service_user.* session.* group.*"
_ORGANIZATION_OWNER = f"{_PEOPLE} project.* organization_manager.* upstream_provider.* attribute.* {_PROJECTS}"
_ORGANIZATION_OWNER += " webhook.* user.impersonate"
_ORGANIZATION_OWNER += " organization.read organization.write organization.delete audit_event.read"
_ORGANIZATION_OWNER += " organization_domain.* organization_policy.*"
_FEW = "organization.read project.read project_role.read"

#: Role → permissions.
ROLES = {
    "IAM_OWNER": "*",
    "IAM_OWNER_VIEWER": "*.read",
    "IAM_ORG_MANAGER": f"{_ORGANIZATION_OWNER} organization.create",
    "IAM_USER_MANAGER": f"{_PEOPLE} attribute.read user_grant.* {_FEW}",
    "ORG_OWNER": _ORGANIZATION_OWNER,
    "ORG_OWNER_VIEWER": "organization.read user.read service_user.read session.read project.read project_role.read"
    " application.read project_grant.read user_grant.read organization_manager.read project_manager.read"
    " project_grant_manager.read audit_event.read upstream_provider.read attribute.read webhook.read"
    " group.read",
    "ORG_USER_MANAGER": f"{_PEOPLE} attribute.read user_grant.* {_FEW}",
    "ORG_USER_PERMISSION_EDITOR": f"user_grant.* user.read service_user.read group.read {_FEW}",
    "ORG_PROJECT_PERMISSION_EDITOR": f"user_grant.* project_grant.* user.read service_user.read group.read {_FEW}",
    "ORG_PROJECT_CREATOR": "organization.read project.create",
    "ORG_SETTINGS_MANAGER": "organization.read organization.write",
    "ORG_USER_PROVISIONER": "organization.read user.read user.write user.delete group.read group.write",
    "PROJECT_OWNER": _PROJECTS,
    "PROJECT_OWNER_VIEWER": "project.read project_role.read application.read project_grant.read project_manager.read"
    " project_grant_manager.read user_grant.read",
    "PROJECT_GRANT_OWNER": _GRANTS,
    "PROJECT_GRANT_OWNER_VIEWER": "project_grant_manager.read user_grant.read project_grant.read",
}

#: The grantee's permissions on a project grant, if the role has them.
HOLDER = "project_grant.read project_grant_manager.* user_grant.*"

#: Lists that may be filtered, with the permission on an entity inside the organization.
OF_PARTS = {"/organizations/{organization}/projects", "/organizations/{organization}/granted-projects"}

#: Paths at the level of a project.
AT_PROJECT = ("/projects/{project}", "/applications/{application}", "/user-grants/{user_grant}")
AT_PROJECT_GRANT = ("/project-grants/{project_grant}",)
AT_INSTANCE = ("/instance", "/audit-events", "/organizations", "/organizations/import", "/roles", "/me")

LEVELS = ("instance", "organization", "project", "project_grant")


@dataclass(frozen=True)
class Cell:
    """An operation, the level at which it is authorized, and its permission."""

    method: str
    path: str
    level: str
    permission: str
    manager: str = ""


def cells() -> list[Cell]:
    """Every operation; manager operations once for each level."""
    found = []
    for permission, operations in ROUTES.items():
        for item in operations.split(";"):
            method, path = item.split()
            if "{level}" in permission:
                found += [Cell(method, path, level, permission.format(level=level), level) for level in LEVELS]
            else:
                found.append(Cell(method, path, level_of_path(path), permission))
    return found


def level_of_path(path: str) -> str:
    if path in AT_INSTANCE or path.startswith("/instance/"):
        return "instance"
    if path.startswith(AT_PROJECT_GRANT):
        return "project_grant"
    return "project" if path.startswith(AT_PROJECT) else "organization"


CELLS = cells()


def holds(patterns: str, permission: str) -> bool:
    return any(fnmatchcase(permission, pattern) for pattern in patterns.split())


def role_level(role: str) -> str:
    starts = {"IAM": "instance", "ORG": "organization", "PROJECT_GRANT": "project_grant", "PROJECT": "project"}
    return next(level for start, level in starts.items() if role.startswith(start))


def expected(role: str, cell: Cell, *, is_own: bool) -> int:
    """The expected status; 200 for every permitted request."""
    if cell.permission in (ANY, EVERYBODY):
        return 200
    held_at = role_level(role)
    if not is_own and held_at != "instance" and cell.level != "instance":
        return 404
    if cell.manager == "instance" and held_at != "instance":
        return 404
    allowed = holds(ROLES[role], cell.permission)
    above = cell.path in OF_PARTS or LEVELS.index(held_at) <= LEVELS.index(cell.level)
    return 200 if allowed and above else 403


_PROBED = {"probe": "This is not known here."}
#: The error for a token preview without a subject.
_ASKED_NOTHING = {"user_id": "Choose a user, an application or both."}


def response_status(api: ApiClient | None, world: World, estate: ApiFixtureData, cell: Cell) -> int:
    """The status. Permitted changes fail on an unknown parameter, so that nothing changes."""
    path_values = dict(estate.path_values)
    if cell.manager:
        path_values["manager"] = estate.managers[cell.manager]
    path = cell.path.format_map(path_values)
    probe = "" if cell.method == "GET" else "?probe=1"
    if api is None:
        answer = world.client.call_management_api(path + probe, None, cell.method)
    else:
        answer = api.ask(cell.method, path + probe)
    if answer.status_int == 422:
        assert answer.json["fields"] == (_PROBED if probe else _ASKED_NOTHING), format_response(answer)
        return 200
    if answer.status_int != 200:
        codes = {401: "unauthenticated", 403: "forbidden", 404: "not_found"}
        check_api_error(answer, answer.status_int, codes.get(answer.status_int, ""))
    return int(answer.status_int)


@pytest.fixture(autouse=True)
def nothing_outside(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Domain checks send no requests."""
    monkeypatch.setattr(world.identity.domain_verifier, "find_proof", lambda domain: None)


@pytest.fixture(scope="module")
def estates() -> dict[int, tuple[ApiFixtureData, ApiFixtureData]]:
    return {}


@pytest.fixture
def own_estate(world: World, estates: dict[int, tuple[ApiFixtureData, ApiFixtureData]]) -> ApiFixtureData:
    return estates.setdefault(id(world), (make_fixture_data(world), make_fixture_data(world)))[0]


@pytest.fixture
def foreign(
    world: World, own_estate: ApiFixtureData, estates: dict[int, tuple[ApiFixtureData, ApiFixtureData]]
) -> ApiFixtureData:
    return estates[id(world)][1]


def differences(
    api: ApiClient | None, world: World, estate: ApiFixtureData, expected_statuses: dict[Cell, int]
) -> dict[str, tuple[int, int]]:
    """Deviations: operation → expected, actual."""
    found = {cell: response_status(api, world, estate, cell) for cell in expected_statuses}
    return {
        f"{cell.method} {cell.path} {cell.manager}": (expected_statuses[cell], found[cell])
        for cell in expected_statuses
        if expected_statuses[cell] != found[cell]
    }


def without_a_role() -> dict[Cell, int]:
    """The statuses for a token of a user without a manager role."""
    return {cell: 200 if cell.permission == EVERYBODY else 403 for cell in CELLS}


def test_permission_tables_name_every_operation(world: World) -> None:
    document = world.client.get(f"{world.client.management_url}/openapi.json").json
    served = {
        (method.upper(), path): entry["x-permission"]
        for path, item in document["paths"].items()
        for method, entry in item.items()
    }
    # Some permissions always come together in roles, so statuses alone do not show which one was checked.
    written = {(cell.method, cell.path): cell.permission for cell in CELLS if not cell.manager}
    written |= {
        (cell.method, cell.path): f"manager.{cell.permission.partition('.')[2]}" for cell in CELLS if cell.manager
    }
    assert written == served
    assert set(ROLES) == set(world.identity.process_state.manager_roles)
    for role, patterns in ROLES.items():
        named = {permission for permission in ManagerRole.PERMISSIONS if holds(patterns, permission)}
        assert named == world.identity.process_state.manager_roles[role].permissions, role


@pytest.mark.shows("1.6", "2.6.1", "2.6.2", "2.6.3", "5.2.3")
@pytest.mark.parametrize("role", ROLES)
def test_role_permits_exactly_its_operations(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData, role: str
) -> None:
    robot = world.make_service_user_program(own_estate.organization)
    world.assign_manager_role(robot, role, resource=level_of(world, own_estate, role))
    api = ApiClient.for_user(robot)
    assert differences(api, world, own_estate, {cell: expected(role, cell, is_own=True) for cell in CELLS}) == {}
    assert differences(api, world, foreign, {cell: expected(role, cell, is_own=False) for cell in CELLS}) == {}


@pytest.mark.shows("2.6.4")
@pytest.mark.parametrize("role", [role for role in ROLES if role.startswith(("ORG", "PROJECT_GRANT"))])
def test_grantee_manager_reaches_only_the_project_grant(world: World, own_estate: ApiFixtureData, role: str) -> None:
    """Security 14.5 and 20.5. The owner's other entities, and its managers of the grant, look unknown."""
    robot = world.make_service_user_program(own_estate.holder)
    at_grant = role.startswith("PROJECT_GRANT")
    world.assign_manager_role(robot, role, resource=level_of(world, own_estate, role) if at_grant else None)
    expected_statuses = held_by_other(role)
    api = ApiClient.for_user(robot)
    assert differences(api, world, own_estate, expected_statuses) == {}
    of_holder = own_estate.with_manager(world, own_estate.holder)
    on_managers = {cell: status for cell, status in expected_statuses.items() if cell.manager == "project_grant"}
    for cell in on_managers:
        on_managers[cell] = 200 if holds(ROLES[role], cell.permission) and holds(HOLDER, cell.permission) else 403
    assert differences(api, world, of_holder, on_managers) == {}


def held_by_other(role: str) -> dict[Cell, int]:
    """The statuses for the grantee's organization."""
    expected_statuses = {}
    for cell in CELLS:
        # What any manager may call shows each of them only what they may read.
        if cell.level == "instance" or cell.permission == ANY:
            continue
        if cell.level == "project_grant" and not cell.manager:
            allowed = holds(ROLES[role], cell.permission) and holds(HOLDER, cell.permission)
            expected_statuses[cell] = 200 if allowed else 403
        else:
            expected_statuses[cell] = 404
    return expected_statuses


@pytest.mark.parametrize("role", [role for role in ROLES if not role.startswith("IAM")])
def test_project_grant_opens_nothing_of_the_grantee(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData, role: str
) -> None:
    """The same for managers of the granting organization, of the project and of the grant."""
    project = world.make_project(own_estate.organization, roles=["reader"])
    api_fixture_data = replace(
        own_estate, project=project, grant=world.make_project_grant(project, foreign.organization, roles=["reader"])
    )
    robot = world.make_service_user_program(own_estate.organization)
    world.assign_manager_role(robot, role, resource=level_of(world, api_fixture_data, role))
    api = ApiClient.for_user(robot)
    assert differences(api, world, foreign, {cell: expected(role, cell, is_own=False) for cell in CELLS}) == {}
    of_holder = api_fixture_data.with_manager(world, foreign.organization)
    at_grant = {cell: 404 for cell in CELLS if cell.manager == "project_grant"}
    assert differences(api, world, of_holder, at_grant) == {}


def test_anonymous_requests_are_refused_everywhere(world: World, own_estate: ApiFixtureData) -> None:
    assert differences(None, world, own_estate, dict.fromkeys(CELLS, 401)) == {}


def test_role_without_audience_scope_is_refused(world: World, own_estate: ApiFixtureData) -> None:
    """Security 14.3."""
    robot = world.make_service_user_program(own_estate.organization)
    world.assign_manager_role(robot, "IAM_OWNER", resource=Resource.INSTANCE)
    api = ApiClient(world, robot.access_token("openid profile"))
    assert differences(api, world, own_estate, dict.fromkeys(CELLS, 401)) == {}


def test_audience_scope_without_role_is_refused(world: World, own_estate: ApiFixtureData) -> None:
    """Security 14.3: without a role, users can read only their own identity."""
    api = ApiClient.for_user(world.make_service_user_program(own_estate.organization))
    assert differences(api, world, own_estate, without_a_role()) == {}
    check_api_error(api.ask("GET", "/projects/nothing"), 403, "forbidden")


@pytest.mark.parametrize("role", ["IAM_OWNER", "ORG_OWNER", "PROJECT_OWNER"])
def test_removed_manager_is_refused_at_once(world: World, own_estate: ApiFixtureData, role: str) -> None:
    robot = world.make_service_user_program(own_estate.organization)
    manager = world.assign_manager_role(robot, role, resource=level_of(world, own_estate, role))
    api = ApiClient.for_user(robot)
    assert api.get("/me")["roles"] != []
    world.operator_services.managers.remove(manager.id)
    assert differences(api, world, own_estate, without_a_role()) == {}


@pytest.mark.parametrize("deactivated", ["user", "organization"])
def test_deactivated_manager_is_refused_at_once(world: World, own_estate: ApiFixtureData, deactivated: str) -> None:
    robot = world.make_manager_program("ORG_OWNER")
    world.assign_manager_role(robot, "ORG_OWNER", resource=Resource.of_organization(own_estate.organization.id))
    api = ApiClient.for_user(robot)
    with world.transaction_services() as services:
        if deactivated == "user":
            services.service_users.deactivate(robot.id, principal=Principal.OPERATOR)
        else:
            services.organizations.deactivate(robot.organization.id, principal=Principal.OPERATOR)
    assert differences(api, world, own_estate, dict.fromkeys(CELLS, 401)) == {}


@pytest.mark.parametrize("path", sorted({cell.path for cell in CELLS if "{" in cell.path and cell.method == "GET"}))
def test_foreign_entities_look_unknown(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData, path: str
) -> None:
    """The responses differ only in the requested id and the request id. Instance paths are refused."""
    owner = world.make_service_user_program(own_estate.organization)
    world.assign_manager_role(owner, "ORG_OWNER", resource=Resource.of_organization(own_estate.organization.id))
    api = ApiClient.for_user(owner)
    nothing = dict.fromkeys(foreign.path_values, "01980000-0000-7000-8000-000000000000")
    answers = []
    expected_statuses = (403, "forbidden") if level_of_path(path) == "instance" else (404, "not_found")
    for path_values in (foreign.path_values, nothing):
        answer = check_api_error(api.ask("GET", path.format_map(path_values)), *expected_statuses)
        first = path.split("{")[1].split("}")[0]
        answers.append(answer["message"].replace(path_values[first], "…"))
    assert answers[0] == answers[1]


def test_unrequested_project_grant_opens_nothing(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData
) -> None:
    """A grant that the organization did not request discloses neither its entities nor its users."""
    robot = world.make_service_user_program(own_estate.organization)
    world.assign_manager_role(robot, "ORG_OWNER")
    api = ApiClient.for_user(robot)
    command = {"organization_id": foreign.organization.id, "roles": ["reader"]}
    grant = api.post(f"/projects/{own_estate.project.id}/grants", command)
    api.post(f"/project-grants/{grant['id']}/managers", {"user_id": robot.id, "roles": ["PROJECT_GRANT_OWNER"]})
    expected_statuses = {cell: expected("ORG_OWNER", cell, is_own=False) for cell in CELLS}
    assert differences(api, world, foreign, expected_statuses) == {}
    assert [item["id"] for item in api.list("/organizations")] == [own_estate.organization.id]
    for path, user_id in (
        (f"/project-grants/{grant['id']}/managers", foreign.path_values["user"]),
        (f"/project-grants/{grant['id']}/user-grants", foreign.path_values["user"]),
        (f"/projects/{own_estate.project.id}/user-grants", foreign.path_values["service_user"]),
    ):
        role = "PROJECT_GRANT_OWNER" if "managers" in path else "reader"
        for item in (user_id, "01980000-0000-7000-8000-000000000000"):
            error = check_api_error(api.ask("POST", path, {"user_id": item, "roles": [role]}), 422, "invalid")
            assert error["fields"] == {"user_id": "There is no such user."}, path


def test_export_omits_invisible_users(world: World, own_estate: ApiFixtureData) -> None:
    """The grantee adds managers of its own; the export of the project's owner omits them."""
    stranger = world.make_service_user_program(own_estate.holder)
    world.assign_manager_role(
        stranger, "PROJECT_GRANT_OWNER", resource=project_grant_resource(own_estate.grant, own_estate.project)
    )
    robot = world.make_service_user_program(own_estate.organization)
    world.assign_manager_role(robot, "ORG_OWNER")
    exported = json.dumps(
        ApiClient.for_user(robot).post(f"/organizations/{own_estate.organization.id}/export", status=200)
    )
    assert own_estate.project.name in exported
    assert stranger.user.user_name not in exported

"""Security 14.1: who may open which console pages, in their own and in other organizations.

The table of pages is written here and not derived from the console. With the roles in
tests/spec/test_management_authorization.py it gives the expected statuses.
"""

import re
from dataclasses import replace

import pytest
from pyramid.interfaces import IRoutesMapper

from identity.domain.managers import Manager
from identity.domain.permissions import Resource, project_grant_resource
from identity.domain.projects import Project, ProjectGrant
from identity.services.access_control import Principal
from identity.services.commands.users import CreateHumanUser
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ROLE, ApiFixtureData, level_of, make_fixture_data
from tests.spec.test_management_authorization import (
    ANY,
    HOLDER,
    LEVELS,
    ROLES,
    Cell,
    expected,
    holds,
    level_of_path,
)

pytestmark = pytest.mark.storages("memory")

APPLICATION, ORGANIZATION, PROJECT = (
    "/applications/{application}",
    "/organizations/{organization}",
    "/projects/{project}",
)
GRANT, ROBOT, USER = "/project-grants/{project_grant}", "/service-users/{service_user}", "/users/{user}"
UPSTREAM, WEBHOOK = "/upstream-providers/{upstream_provider}", "/webhooks/{webhook}"
GROUP, GROUP_MEMBER = "/groups/{group}", "/group-members/{group_member}"
GROUP_GRANT, GROUP_MANAGER = "/group-grants/{group_grant}", "/group-managers/{group_manager}"
USER_GRANT, MANAGED = "/user-grants/{user_grant}", "/managers/{manager}"


def below(path: str, pages: str) -> tuple[str, ...]:
    """The paths of these pages below a prefix; a dash is the prefix itself."""
    return tuple(path if item == "-" else f"{path}/{item}" for item in pages.split())


#: Permission → paths below /console.
PAGES = {
    # An operation runs with the permissions of the manager, as in the API.
    ANY: ("", "/api", "/api/{operation}", "/instance", "/organizations", "/search"),
    "application.delete": below(APPLICATION, "delete"),
    "application.read": (
        *below(APPLICATION, "- branding connect federated-credentials log secrets try-it"),
        *below(PROJECT, "applications"),
    ),
    "application.write": (
        *below(
            APPLICATION,
            "branding/edit branding/logo branding/logo-dark connect/addresses deactivate edit reactivate revoke-access",
        ),
        *below(f"{APPLICATION}/secrets", "new {secret}/delete"),
        *below(f"{APPLICATION}/federated-credentials", "new {application_credential}/delete"),
        *below(PROJECT, "applications/new"),
    ),
    "attribute.delete": ("/attributes/{attribute}/delete",),
    "attribute.read": below(ORGANIZATION, "attributes"),
    "attribute.write": (*below(ORGANIZATION, "attributes/new"), "/attributes/{attribute}/edit"),
    "audit_event.read": (
        *below("/audit-events", "- {audit_event}"),
        *below(ORGANIZATION, "audit-events"),
        *below(ROBOT, "activity"),
        *below(USER, "activity"),
        *below(GROUP, "activity"),
    ),
    "group.read": (*below(ORGANIZATION, "groups"), *below(GROUP, "- grants managers mappings members roles")),
    "group.write": (
        *below(ORGANIZATION, "groups/new"),
        *below(f"{ORGANIZATION}/users/selected", "add-to-group remove-from-group"),
        *below(GROUP, "deactivate delete edit grants/new managers/new members/new reactivate"),
        *below(GROUP_MEMBER, "delete edit"),
        *below(GROUP_GRANT, "delete edit"),
        *below(GROUP_MANAGER, "delete edit"),
    ),
    "instance.read": below("/instance", "plugins plugins/{plugin} policy sent-mails webhooks"),
    "instance.write": (
        *below(ROBOT, "allow-management forbid-management"),
        *below(ORGANIZATION, "domains/{domain}/assert"),
        *below(f"{ORGANIZATION}/directories/{{directory}}", "attribute-mappings/new group-mappings/new test"),
        *below("/instance", "mail-server mail-server/edit mail-texts mail-texts/{kind}/{language} policy/edit"),
        *below("/instance", "webhooks/new"),
    ),
    "legal_hold.read": ("/instance/legal-holds",),
    "legal_hold.write": (
        *below("/instance/legal-holds", "everything {legal_hold}/lift"),
        *below(ORGANIZATION, "legal-hold"),
        *below(USER, "legal-hold"),
    ),
    "manager.read": tuple(f"{path_prefix}/managers" for path_prefix in ("/instance", ORGANIZATION, GRANT, PROJECT)),
    "manager.write": (
        *below(MANAGED, "delete edit"),
        *(f"{path_prefix}/managers/new" for path_prefix in ("/instance", ORGANIZATION, GRANT, PROJECT)),
    ),
    "organization.create": below("/organizations", "import new"),
    "organization.delete": below(ORGANIZATION, "deactivate delete reactivate revoke-access"),
    "organization.read": (
        *below(ORGANIZATION, "- branding domains/{domain} overview policy"),
        *below(f"{ORGANIZATION}/overview", "hide-steps show-steps"),
    ),
    "organization.write": below(
        ORGANIZATION, "branding/edit branding/logo branding/logo-dark edit mail-texts mail-texts/{kind}/{language}"
    ),
    "organization_domain.write": (
        *below(ORGANIZATION, "domains/new"),
        *below(f"{ORGANIZATION}/domains/{{domain}}", "delete primary verify"),
    ),
    "organization_manager.read": below(ORGANIZATION, "export scim"),
    "organization_policy.write": below(ORGANIZATION, "policy/edit"),
    "project.create": below(ORGANIZATION, "projects/new"),
    "project.delete": below(PROJECT, "delete"),
    "project.read": (*below(ORGANIZATION, "projects"), PROJECT),
    "project.write": below(PROJECT, "deactivate edit reactivate"),
    "project_grant.delete": below(GRANT, "delete"),
    "project_grant.read": (*below(ORGANIZATION, "granted-projects"), GRANT, *below(PROJECT, "grants")),
    "project_grant.write": (*below(GRANT, "deactivate edit reactivate"), *below(PROJECT, "grants/new")),
    "project_role.read": below(PROJECT, "roles"),
    "project_role.write": below(f"{PROJECT}/roles", "new {key:.+}/delete {key:.+}/edit"),
    "service_user.delete": (*below(ROBOT, "delete"), *below(f"{ORGANIZATION}/service-users/selected", "delete")),
    "service_user.read": (
        *below(ORGANIZATION, "service-users"),
        *below(ROBOT, "- access connect federated-credentials keys personal-access-tokens"),
    ),
    "service_user.write": (
        *below(ORGANIZATION, "service-users/new"),
        *below(f"{ORGANIZATION}/service-users/selected", "deactivate reactivate"),
        # They take group.write and service_user.read; a role with both has this one, too.
        *below(f"{ORGANIZATION}/service-users/selected", "add-to-group remove-from-group"),
        *below(ROBOT, "revoke-access"),
        *below(ROBOT, "deactivate edit reactivate keys/new keys/{key}/delete secrets/new secrets/{secret}/delete"),
        *below(f"{ROBOT}/personal-access-tokens", "new {token}/delete"),
        *below(f"{ROBOT}/federated-credentials", "new {credential}/delete"),
    ),
    "session.delete": below(USER, "connections/{application}/delete sessions/delete sessions/{session}/delete"),
    "session.read": below(USER, "sessions"),
    "signing_key.read": ("/instance/signing-keys",),
    "signing_key.write": ("/instance/signing-keys/rotate", "/instance/signing-keys/{signing_key}/delete"),
    "upstream_provider.delete": below(UPSTREAM, "delete"),
    "upstream_provider.read": (
        *below(ORGANIZATION, "directories directories/{directory} upstream-providers"),
        *below(f"{ORGANIZATION}/directories/{{directory}}", "attribute-mappings group-mappings"),
        *below(UPSTREAM, "- attribute-mappings group-mappings"),
    ),
    "upstream_provider.write": (
        *below(ORGANIZATION, "upstream-providers/new"),
        *below(UPSTREAM, "attribute-mappings/new deactivate edit group-mappings/new reactivate test"),
        *below("/attribute-mappings/{attribute_mapping}", "delete edit"),
        *below("/group-mappings/{group_mapping}", "delete edit"),
    ),
    "webhook.delete": below(WEBHOOK, "delete"),
    "webhook.read": (
        *below(ORGANIZATION, "webhooks"),
        *below(WEBHOOK, "- deliveries deliveries/{delivery}"),
    ),
    "webhook.write": (
        *below(ORGANIZATION, "webhooks/new"),
        *below(WEBHOOK, "deactivate deliveries/{delivery}/resend edit reactivate retire-previous-secret"),
        *below(WEBHOOK, "rotate-secret test"),
    ),
    "user.delete": (*below(USER, "delete"), *below(f"{ORGANIZATION}/users/selected", "delete")),
    "user.impersonate": below(USER, "impersonate"),
    "user.read": (*below(ORGANIZATION, "policy/preview token-preview users"), *below(USER, "- access mails security")),
    "user.write": (
        *below(f"{ORGANIZATION}/users/selected", "deactivate export invite reactivate"),
        *below(
            ORGANIZATION,
            "users/new users/import users/import/{user_import} users/import/{user_import}/report",
        ),
        *below(USER, "deactivate edit keep link-to-hand-over reactivate factors/reset one-time-password"),
        *below(USER, "password-link revoke-access stop-agents unlock"),
    ),
    "user_grant.read": (
        *(f"{path_prefix}/user-grants" for path_prefix in (GRANT, PROJECT)),
        *(f"{path_prefix}/grants" for path_prefix in (ROBOT, USER)),
    ),
    "user_grant.write": (
        *(f"{path_prefix}/user-grants/new" for path_prefix in (GRANT, PROJECT)),
        *(f"{path_prefix}/grants/new" for path_prefix in (ROBOT, USER)),
        *below(f"{ORGANIZATION}/users/selected", "give-roles take-roles"),
        *below(f"{ORGANIZATION}/service-users/selected", "give-roles take-roles"),
        *below(f"{GRANT}/user-grants/selected", "deactivate delete reactivate"),
        *below(f"{PROJECT}/user-grants/selected", "deactivate delete reactivate"),
        *below(USER_GRANT, "delete edit"),
    ),
}

_MANAGER = "manager."
_AT_INSTANCE = ("", "/api", "/api/{operation}", "/organizations/import", "/organizations/new", "/search")
#: Statuses of permitted requests; 409 if the action does not apply.
_LET_IN = frozenset({200, 303, 409})


def cells() -> list[Cell]:
    """Every page; manager pages once for each level."""
    found = []
    for permission, paths in PAGES.items():
        for path in paths:
            if not permission.startswith(_MANAGER):
                found.append(
                    Cell("GET", path, level_of_path(path) if path not in _AT_INSTANCE else "instance", permission)
                )
            elif path.startswith("/managers/"):
                found += [Cell("GET", path, level, f"{level}_{permission}", level) for level in LEVELS]
            else:
                level = "organization" if path.startswith("/organizations/") else level_of_path(path)
                found.append(Cell("GET", path, level, f"{level}_{permission}"))
    return found


CELLS = cells()


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


def make_browser(world: World, estate: ApiFixtureData, role: str | None, resource: Resource | None = None) -> Browser:
    """A browser of a new user of the estate's organization, with this role."""
    person = world.make_human_user(estate.organization)
    if role is not None:
        world.assign_manager_role(person, role, resource=resource or level_of(world, estate, role))
    browser = Browser(world)
    browser.start_session(person)
    return browser


def address(estate: ApiFixtureData, cell: Cell) -> str:
    """The page's path with its variables replaced."""
    path_values = {**estate.path_values, "operation": "show_organization", "kind": "invitation", "language": "en"}
    if cell.manager:
        path_values["manager"] = estate.managers[cell.manager]
    if cell.path.startswith("/applications/"):
        path_values["secret"] = path_values["client_secret"]
    return "/console" + cell.path.replace("{key:.+}", ROLE).format_map(path_values)


def response_status(browser: Browser, estate: ApiFixtureData, cell: Cell) -> int:
    """The status; 200 for every permitted request."""
    answer = browser.open(address(estate, cell))
    assert answer.status_int < 500, cell
    return 200 if answer.status_int in _LET_IN else int(answer.status_int)


def differences(
    browser: Browser, estate: ApiFixtureData, expected_statuses: dict[Cell, int]
) -> dict[str, tuple[int, int]]:
    """Deviations: page → expected, actual."""
    found = {cell: response_status(browser, estate, cell) for cell in expected_statuses}
    return {
        f"{cell.path} {cell.manager}": (expected_statuses[cell], found[cell])
        for cell in expected_statuses
        if expected_statuses[cell] != found[cell]
    }


def test_permission_table_names_every_page(world: World) -> None:
    routes = world.app.registry.getUtility(IRoutesMapper).get_routes()
    served = {route.pattern.removeprefix("/console") for route in routes if route.name.startswith("console")}
    assert served == {path for paths in PAGES.values() for path in paths}


@pytest.mark.parametrize("role", ROLES)
def test_role_opens_exactly_its_pages(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData, role: str
) -> None:
    browser = make_browser(world, own_estate, role)
    pages = [cell for cell in CELLS if cell.path]
    assert differences(browser, own_estate, {cell: expected(role, cell, is_own=True) for cell in pages}) == {}
    assert differences(browser, foreign, {cell: expected(role, cell, is_own=False) for cell in pages}) == {}


@pytest.mark.parametrize("role", ["ORG_OWNER", "PROJECT_GRANT_OWNER", "PROJECT_GRANT_OWNER_VIEWER"])
def test_grantee_manager_reaches_only_the_project_grant(world: World, own_estate: ApiFixtureData, role: str) -> None:
    """Security 14.5 and 20.5."""
    person = world.make_human_user(own_estate.holder)
    world.assign_manager_role(person, role, resource=level_of(world, own_estate, role) if role != "ORG_OWNER" else None)
    browser = Browser(world)
    browser.start_session(person)
    expected_statuses = {}
    for cell in CELLS:
        if cell.level == "project_grant" and not cell.manager:
            allowed = holds(ROLES[role], cell.permission) and holds(HOLDER, cell.permission)
            expected_statuses[cell] = 200 if allowed else 403
        elif cell.level != "instance" and cell.permission != ANY:
            expected_statuses[cell] = 404
    assert differences(browser, own_estate, expected_statuses) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("role", ["ORG_OWNER", "PROJECT_OWNER", "PROJECT_GRANT_OWNER"])
def test_project_grant_opens_nothing_of_the_grantee(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData, role: str
) -> None:
    project = world.make_project(own_estate.organization, roles=[ROLE])
    api_fixture_data = replace(
        own_estate, project=project, grant=world.make_project_grant(project, foreign.organization, roles=[ROLE])
    )
    browser = make_browser(world, api_fixture_data, role)
    pages = [cell for cell in CELLS if cell.path]
    assert differences(browser, foreign, {cell: expected(role, cell, is_own=False) for cell in pages}) == {}
    of_holder = api_fixture_data.with_manager(world, foreign.organization)
    assert differences(browser, of_holder, {cell: 404 for cell in CELLS if cell.manager == "project_grant"}) == {}


def test_user_without_role_is_refused_everywhere(world: World, own_estate: ApiFixtureData) -> None:
    browser = make_browser(world, own_estate, None)
    assert differences(browser, own_estate, dict.fromkeys(CELLS, 403)) == {}
    assert browser.open("/console/projects/nothing").status_int == 403


def test_unknown_and_foreign_ids_are_not_found(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData
) -> None:
    """Unknown ids, and ids of entities of another owner or kind."""
    browser = make_browser(world, own_estate, "IAM_OWNER", Resource.INSTANCE)
    for cell in CELLS:
        names = re.findall(r"\{(\w+)", cell.path)
        if not names or cell.manager or cell.path.endswith("/export"):
            continue
        other_ids = ["nothing"]
        # Domains and roles of both estates have the same names.
        if (
            len(names) > 1
            and names[-1] not in ("directory", "domain", "key:.+", "language")
            and "roles" not in cell.path
        ):
            other_ids.append(address(foreign, replace(cell, path=f"/{{{names[-1]}}}")).rpartition("/")[2])
            if names[-1] == "secret":
                other_ids[-1] = foreign.path_values["client_secret" if "/applications/" in cell.path else "secret"]
        if names == ["user"]:
            other_ids.append(own_estate.path_values["service_user"])
        if names == ["service_user"]:
            other_ids.append(own_estate.path_values["user"])
        for other in other_ids:
            path = re.sub(r"\{key:\.\+\}", "{key}", cell.path)
            path_values = {
                **own_estate.path_values,
                "secret": own_estate.path_values["client_secret"],
                names[-1]: other,
            }
            if "/service-users/" in path and names[-1] != "secret":
                path_values["secret"] = own_estate.path_values["secret"]
            answer = browser.open("/console" + path.format_map(path_values))
            assert answer.status_int == 404, (cell.path, other)


def test_anonymous_browser_is_redirected_to_sign_in(world: World, own_estate: ApiFixtureData) -> None:
    for cell in CELLS:
        browser = Browser(world)
        browser.open(address(own_estate, cell))
        assert browser.path.startswith("/login/"), cell


def test_removed_role_takes_effect_at_once(world: World, own_estate: ApiFixtureData) -> None:
    person = world.make_human_user(own_estate.organization)
    manager = world.assign_manager_role(person, "ORG_OWNER")
    browser = Browser(world)
    browser.start_session(person)
    page = f"/console/organizations/{own_estate.organization.id}/service-users"
    assert browser.open(page).status_int == 200
    boss = make_browser(world, own_estate, "IAM_OWNER", Resource.INSTANCE)
    boss.open(f"/console/managers/{manager.id}/delete")
    boss.submit(form="page-form")
    assert browser.open(page).status_int == 403


LESSER_ROLES = ("IAM_OWNER_VIEWER", "ORG_OWNER", "ORG_OWNER_VIEWER", "PROJECT_OWNER_VIEWER", "PROJECT_GRANT_OWNER")


@pytest.mark.parametrize(
    "role", ["IAM_OWNER", *(pytest.param(lesser_role, marks=pytest.mark.thorough) for lesser_role in LESSER_ROLES)]
)
def test_every_page_has_valid_structure(world: World, own_estate: ApiFixtureData, role: str) -> None:
    """One h1, a unique title, at most one primary button and one autofocus, and working links."""
    browser = make_browser(world, own_estate, role)
    titles: dict[str, str] = {}
    followed: set[str] = set()
    for cell in CELLS:
        answer = browser.open(address(own_estate, cell))
        if answer.status_int != 200 or not cell.path or cell.manager not in ("", "organization"):
            continue
        where = address(own_estate, cell)
        # A tab that this entity does not have leads to its first one. A report is a file.
        if browser.path != where or answer.content_type != "text/html":
            continue
        html = answer.html
        assert len(html.find_all("h1")) == 1, where
        title = html.title.get_text()
        assert html.h1.get_text().strip() in title, where
        assert titles.setdefault(title, where) == where, f"{where} has the title of {titles[title]}"
        assert len(html.select(".button--primary, .button--danger")) <= 1, where
        assert len(html.select("[autofocus]")) <= 1, where
        assert not html.select("[style], script:not([src])"), where
        # Exports and operations of the management API that read are forms, too; everyone arranges their own overview
        # and chooses columns.
        reads = "/export" in where or "/overview/" in where or where.startswith("/console/api/")
        assert reads or not (role.endswith("_VIEWER") and html.select("main form[method=post]:not(.menu form)")), where
        targets = {link["href"].partition("#")[0] for link in html.select("main a[href], nav a[href]")}
        for target in sorted(targets - followed):
            # Every visible link can be opened.
            if target.startswith("/"):
                found = browser.open(target).status_int
                assert found in _LET_IN, f"{where} leads to {target}, which answers {found}"
        followed |= targets


def test_unrequested_project_grant_opens_nothing(
    world: World, own_estate: ApiFixtureData, foreign: ApiFixtureData
) -> None:
    """A grant that the organization did not request discloses neither its pages nor its users."""
    person = world.make_human_user(own_estate.organization)
    world.assign_manager_role(person, "ORG_OWNER")
    browser = Browser(world)
    browser.start_session(person)
    browser.open(f"/console/projects/{own_estate.project.id}/grants/new?organization_id={foreign.organization.id}")
    browser.submit(form="page-form")
    grant = browser.path.removeprefix("/console/project-grants/")
    browser.open(f"/console/project-grants/{grant}/managers/new?user_id={person.id}")
    browser.submit({"role": ["PROJECT_GRANT_OWNER"]}, form="page-form")
    named = CreateHumanUser(user_name="ghopper", given_name="Grace", family_name="Hopper")
    with world.transaction_services() as services:
        colleague = services.users.create(foreign.organization.id, named)
        project_grant = services.project_grants.get(grant)
    world.assign_manager_role(
        colleague, "PROJECT_GRANT_OWNER", resource=project_grant_resource(project_grant, own_estate.project)
    )
    world.make_user_grant(colleague, own_estate.project, ROLE, grant=project_grant)
    [manager] = [
        manager for manager in managers_of(world, project_grant, own_estate.project) if manager.user_id == colleague.id
    ]
    expected_statuses = {cell: expected("ORG_OWNER", cell, is_own=False) for cell in CELLS if cell.path}
    assert differences(browser, foreign, expected_statuses) == {}
    domain = foreign.organization.primary_domain
    own_pages = {
        address(replace(own_estate, path_values={**own_estate.path_values, "project_grant": grant}), cell)
        for cell in CELLS
    }
    own_pages |= {f"/console/managers/{manager.id}/{page}" for page in ("edit", "delete")}
    own_pages |= {
        f"/console/{path}/{section}/new?q={status}"
        for path in (f"projects/{own_estate.project.id}", f"project-grants/{grant}")
        for section in ("managers", "user-grants")
        for status in (colleague.user_name, f"{colleague.user_name}@{domain}", colleague.id)
    }
    for page in sorted(own_pages):
        content = browser.open(page).text.partition("<main")[2]
        assert colleague.display_name not in content, page
        assert f"user_id={colleague.id}" not in content, page
        assert "?q=" in page or colleague.user_name not in content, page
    assert foreign.organization.name not in browser.open("/console/organizations").text


def managers_of(world: World, grant: ProjectGrant, project: Project) -> tuple[Manager, ...]:
    with world.read_only_services() as services:
        return services.managers.page(project_grant_resource(grant, project), principal=Principal.OPERATOR).items

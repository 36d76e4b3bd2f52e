"""The console in a browser: a new customer's path to the API, and daily work of managers."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests
from selenium.webdriver.common.keys import Keys

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.users import CreateHumanUser
from identity.storage.paging import PageRequest
from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import CompanyUser, ExampleCompany
from tests.browser.tab import Tab

DOCS = Path(__file__).parents[2] / "docs"

#: The changes to the documented client: the scope, and the use of the token.
SCOPE = '"openid profile"'
THEIR_END = """
call = {"headers": {"Authorization": f"Bearer {token['access_token']}"}, "timeout": 10}
me = requests.get(f"{issuer}/management/v1/me", **call).json()
organization = requests.get(f"{issuer}/management/v1/organizations/{me['organization']['id']}", **call).json()
print(json.dumps({"me": me, "organization": organization}))
"""

#: More focusable elements than any page has before the target.
MANY = 60


@pytest.fixture
def organization(site: ExampleCompany) -> Organization:
    """A new organization for each test."""
    return site.world.make_organization()


@pytest.fixture
def manager(site: ExampleCompany, profile: ChromiumProfile) -> CompanyUser:
    """The IAM_OWNER who is signed in."""
    person = site.make_manager()
    site.start_session(profile, person)
    return person


def of_organization(site: ExampleCompany, organization: Organization, path: str = "") -> str:
    return f"{site.url}/console/organizations/{organization.id}{path}"


# --- newcomer ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [pytest.param(True, id="with-script"), pytest.param(False, id="without-script", marks=pytest.mark.thorough)],
)
def test_newcomer_reaches_the_api(
    site: ExampleCompany, make_profile: MakeProfile, script: bool, tmp_path: Path
) -> None:
    """Service description §5.1 and §5.2, with the console and the documented client alone."""
    profile = make_profile(script=script)
    profile.download_to(tmp_path)
    tab = profile.tab()
    name = f"Rose Garden {tmp_path.name}"

    tab.open(f"{site.url}/console")
    site.sign_in(tab, site.make_manager())
    assert tab.heading == "Overview"

    tab.follow("Organizations", inside=".rail")
    tab.follow("New organization")
    tab.send(name=name)
    assert tab.heading == name
    home = tab.url.partition("?")[0]

    tab.follow("Projects", inside=".rail")
    tab.follow("New project")
    tab.send(name="Shop")
    register_web_application(site, tab)
    user_name = f"ci-runner-{profile.script}".lower()
    user_id = make_service_user(tab, user_name)
    key_file = add_key(tab, user_name, tmp_path)
    assert key_file["userId"] == user_id

    tab.follow("Organization", inside=".rail")
    assert tab.url == home
    add_manager(tab, user_name, name)
    tab.follow("CI runner")
    tab.follow("Access")
    (scope,) = set(re.findall(r"openid urn:\S+:aud", tab.text))

    output = run_documented_client(site, tmp_path, scope)
    assert output["me"]["id"] == user_id
    assert output["me"]["roles"][0]["roles"] == ["ORG_OWNER"]
    assert (output["organization"]["name"], output["organization"]["id"]) == (name, home.rpartition("/")[2])


def register_web_application(site: ExampleCompany, tab: Tab) -> None:
    """Starting at the project's page; client id and secret are shown once and work at the token endpoint."""
    tab.follow("New application")
    tab.follow("Web", inside=".choices")
    tab.send(name="Web shop", redirect_uris="https://shop.example/callback")
    assert len(tab.all("[data-copy-from]")) == 1
    client_id, secret = tab.text_of(".identifier code"), tab.text_of("#secret-value")
    assert tab.find("[data-copy-from]").is_displayed() is tab.script
    tab.follow("I have saved it")
    assert tab.heading == "Web shop"
    assert client_id in tab.text
    assert secret not in tab.driver.page_source
    form = {"grant_type": "authorization_code", "code": "x", "redirect_uri": "https://shop.example/callback"}
    answer = requests.post(f"{site.url}/oauth/v2/token", data=form, auth=(client_id, secret), timeout=10)
    assert answer.json()["error"] == "invalid_grant"


def make_service_user(tab: Tab, user_name: str) -> str:
    """Create a service user; returns its id."""
    tab.follow("Service users", inside=".rail")
    tab.follow("New service user")
    tab.send(user_name=user_name, display_name="CI runner", description="Deploys the shop.")
    assert "Service user created. Add a key so that a program can sign in." in tab.text
    return tab.all(".identifier code")[0].text


def add_key(tab: Tab, user_name: str, folder: Path) -> dict[str, str]:
    """KEYS → New → expiration date → Add; returns the content of the downloaded file."""
    tab.follow("New key")
    assert tab.focused == "field-expiration_date"
    tab.send()
    assert (tab.heading, tab.status, tab.focused) == ("Key added", 200, "key-file")
    key_json = str(tab.find("#key-file-text").get_property("textContent"))
    tab.type(Keys.ENTER)
    tab.wait(lambda: list(folder.glob("*.json")))
    (path,) = folder.iterdir()
    assert path.read_text() == key_json
    content: dict[str, str] = json.loads(key_json)
    assert path.name == f"{user_name}-{content['keyId'][:8]}.json"
    # Resubmitting the form creates no second key.
    tab.reload()
    assert tab.status == 409
    assert "This was already added; its secret was shown then." in tab.text
    tab.follow("CI runner")
    assert content["keyId"] in tab.text
    assert "PRIVATE KEY" not in tab.driver.page_source
    return content


def add_manager(tab: Tab, user_name: str, name: str) -> None:
    """Managers: add → select user → choose role."""
    tab.follow("Managers")
    tab.follow("Add manager")
    tab.fill(q=user_name)
    tab.press("Search")
    tab.follow("CI runner")
    boxes = tab.all("input[name=role]")
    assert boxes[0].get_attribute("value") == "ORG_OWNER"
    boxes[0].click()
    tab.send()
    assert f"CI runner is now ORG_OWNER of {name}." in tab.text


def run_documented_client(site: ExampleCompany, folder: Path, scope: str) -> dict[str, Any]:
    """Run the documented client with the console's scope and calls of the management API; returns its output."""
    documented = (DOCS / "how-to" / "application-developers" / "examples" / "first_token.py").read_text()
    assert documented.count(SCOPE) == 1
    script = folder / "read_organization.py"
    script.write_text(documented.partition("# 3. Use the token.")[0].replace(SCOPE, repr(scope)) + THEIR_END)
    (key_file,) = folder.glob("*.json")
    run = subprocess.run(
        [sys.executable, script, site.world.issuer, key_file], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    output: dict[str, Any] = json.loads(run.stdout)
    return output


# --- convenience ------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_ids_and_secrets_can_be_copied(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, manager: CompanyUser
) -> None:
    robot = site.world.make_service_user_program(site.organization)
    profile.let_copy()
    tab.open(f"{site.url}/console/service-users/{robot.id}")
    tab.press(f"Copy {robot.id}")
    assert clipboard_text(tab) == robot.id
    tab.open(f"{site.url}/console/service-users/{robot.id}/secrets/new")
    tab.send()
    tab.press("Copy")
    assert clipboard_text(tab) == tab.text_of("#secret-value")


def clipboard_text(tab: Tab) -> str:
    """The clipboard after the page has confirmed copying."""
    tab.wait(lambda: tab.run("return document.querySelector('body > [role=status]').textContent") == "Copied")
    found: str = tab.run_slowly("navigator.clipboard.readText().then(arguments[0])")
    return found


@pytest.mark.thorough
def test_redirect_uris_are_checked_while_typing(
    site: ExampleCompany, tab: Tab, manager: CompanyUser, organization: Organization
) -> None:
    project = site.world.make_project(organization)
    tab.open(f"{site.url}/console/projects/{project.id}/applications/new?type=web")
    tab.fill(redirect_uris="https://shop.example/callback#part")
    tab.type(Keys.TAB)
    tab.wait(lambda: tab.all("#error-redirect_uris"))
    assert tab.field("redirect_uris").get_attribute("aria-invalid") == "true"
    tab.fill(redirect_uris="https://shop.example/callback")
    tab.type(Keys.TAB)
    tab.wait(lambda: not tab.all("#error-redirect_uris"))
    with site.world.read_only_services() as services:
        assert services.storage.projects.count_children([project.id])[project.id][0] == 0


@pytest.mark.thorough
def test_navigation_is_a_menu_on_narrow_screens(
    site: ExampleCompany, tab: Tab, manager: CompanyUser, organization: Organization
) -> None:
    tab.size(390, 844)
    tab.open(of_organization(site, organization, "/service-users"))
    assert not tab.find(".rail").is_displayed()
    tab.press("Menu")
    assert tab.find(".rail").is_displayed()
    tab.type(Keys.TAB, Keys.ESCAPE)
    assert not tab.find(".rail").is_displayed()
    assert tab.run("return document.activeElement.matches('.top__menu')")
    tab.type(Keys.ENTER)
    tab.follow("Projects", inside=".rail")
    assert tab.heading == "Projects"
    # Switching the organization stays on the project list.
    tab.press("Menu")
    tab.press(f"Organization: {organization.name}")
    tab.follow(site.organization.name)
    assert (tab.heading, tab.url) == ("Projects", of_organization(site, site.organization, "/projects"))


# --- concurrent tabs and managers -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_tabs_of_two_organizations_are_independent(
    site: ExampleCompany, profile: ChromiumProfile, manager: CompanyUser, organization: Organization
) -> None:
    first, other = profile.tab(), profile.tab()
    first.open(of_organization(site, organization, "/projects/new"))
    other.open(of_organization(site, site.organization, "/projects/new"))
    first.send(name="Rockets")
    # The success message appears in the tab of the action.
    assert first.text_of(".notice--success").startswith("Project created.")
    other.reload()
    assert not other.all(".notice")
    other.send(name=f"Planes of {organization.name}")
    for tab, tab_organization in ((first, organization), (other, site.organization)):
        tab.follow("Projects", inside=".rail")
        assert tab.url == of_organization(site, tab_organization, "/projects")
    assert [row.text for row in first.all("tbody .table__name")] == ["Rockets"]


@pytest.mark.thorough
def test_form_resubmitted_after_back_creates_once(
    site: ExampleCompany, tab: Tab, manager: CompanyUser, organization: Organization
) -> None:
    tab.open(of_organization(site, organization, "/projects/new"))
    tab.send(name="Rockets")
    tab.back()
    tab.send(name="Rockets again")
    assert (tab.status, tab.value("name")) == (409, "Rockets again")
    assert "This was already sent." in tab.text
    tab.follow("Projects", inside=".rail")
    assert [row.text for row in tab.all("tbody .table__name")] == ["Rockets"]


def test_concurrent_edit_of_two_managers_shows_conflict(
    site: ExampleCompany, profile: ChromiumProfile, make_profile: MakeProfile, organization: Organization
) -> None:
    project = site.world.make_project(organization)
    tabs = []
    for person, browser in ((site.make_manager(), profile), (site.make_manager(given_name="Bert"), make_profile())):
        site.start_session(browser, person)
        tabs.append(browser.tab())
        tabs[-1].open(f"{site.url}/console/projects/{project.id}/edit")
    first, second = tabs
    first.send(name="Rockets")
    second.field("check_roles").click()
    second.send(name="Planes")
    assert (second.status, second.focused) == (409, "errors")
    assert "Currently saved: Rockets" in second.text
    assert (second.value("name"), second.field("check_roles").is_selected()) == ("Planes", True)
    second.send()
    assert second.heading == "Planes"
    first.reload()
    assert first.heading == "Planes"


@pytest.mark.thorough
def test_removed_role_refuses_open_form(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, organization: Organization
) -> None:
    person = site.make_user()
    manager_role = site.world.assign_manager_role(
        person.user, "ORG_OWNER", resource=Resource.of_organization(organization.id)
    )
    site.start_session(profile, person)
    tab.open(of_organization(site, organization, "/projects/new"))
    with site.world.transaction_services() as services:
        services.managers.remove(manager_role.id, principal=Principal.OPERATOR)
    tab.send(name="Rockets")
    assert tab.status in (403, 404)
    with site.world.read_only_services() as services:
        assert not services.storage.projects.page(organization.id, PageRequest()).items


# --- keyboard ---------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_manager_is_added_by_keyboard(
    site: ExampleCompany, tab: Tab, manager: CompanyUser, organization: Organization
) -> None:
    robot = site.world.make_service_user_program(organization)
    tab.open(of_organization(site, organization, "/managers"))
    reach(tab, "Add manager")
    enter(tab)
    assert tab.focused == "field-q"
    tab.type(robot.user.user_name)
    enter(tab)
    reach(tab, robot.user.display_name)
    enter(tab)
    reach_field(tab, "role-ORG_OWNER")
    tab.type(Keys.SPACE)
    reach(tab, "Add")
    enter(tab)
    assert f"{robot.user.display_name} is now ORG_OWNER of {organization.name}." in tab.text
    # Of a form with several fields, the error summary has the focus; its link leads to the field.
    tab.open(of_organization(site, organization, f"/managers/new?user_id={robot.id}"))
    reach(tab, "Add")
    enter(tab)
    assert (tab.status, tab.focused) == (422, "errors")
    reach(tab, "Choose at least one role.")
    tab.type(Keys.ENTER)
    assert tab.focused == "field-role"


@pytest.mark.thorough
def test_search_overlay_is_used_by_keyboard(
    site: ExampleCompany, tab: Tab, manager: CompanyUser, organization: Organization
) -> None:
    name = site.make_user(family_name="Quillfeather", organization=organization).user.display_name
    tab.open(of_organization(site, organization, "/projects"))
    # Tab passes the search field.
    reach_where(tab, "return document.activeElement.name === arguments[0]", "q")
    assert not tab.all("dialog[open]")
    tab.type(Keys.TAB)
    assert not tab.run("return document.activeElement.name === 'q'")
    tab.find("body").send_keys(Keys.CONTROL, "k")
    assert tab.run(_TYPES_QUERY)
    tab.type(Keys.ESCAPE)
    assert not tab.all("dialog[open]")
    tab.type("/", "quillf")
    tab.wait(lambda: name in tab.text_of(".palette__results"))
    tab.type(Keys.ARROW_DOWN)
    assert tab.run("return document.activeElement.textContent.includes(arguments[0])", name)
    tab.type(Keys.ARROW_UP)
    assert tab.run(_TYPES_QUERY)
    tab.type(Keys.ARROW_DOWN)
    enter(tab)
    assert (tab.heading, tab.status) == (name, 200)
    # Enter in the field opens the page with all hits.
    tab.type("/", "quillf")
    enter(tab)
    assert "/console/search?" in tab.url
    assert tab.field("q").get_attribute("value") == "quillf"


_TYPES_QUERY = "return document.activeElement.matches('dialog[open] input[name=q]')"


def enter(tab: Tab) -> None:
    """Press Enter and wait for the new page."""
    with tab.leaving():
        tab.type(Keys.ENTER)


def reach(tab: Tab, text: str) -> None:
    """Press Tab until the focused element starts with this text."""
    reach_where(tab, "return document.activeElement.textContent.trim().startsWith(arguments[0])", text)


def reach_field(tab: Tab, name: str) -> None:
    """Press Tab until this field has the focus."""
    reach_where(tab, "return document.activeElement.id === arguments[0]", f"field-{name}")


def reach_where(tab: Tab, condition: str, argument: str) -> None:
    for _ in range(MANY):
        tab.type(Keys.TAB)
        # After the last element the body has the focus.
        if tab.focused != "body" and tab.run(condition, argument):
            return
    raise AssertionError(f"the Tab key does not reach {argument}")


@pytest.mark.thorough
def test_addresses_break_between_words(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    """At a common screen width, next to long names, URLs wrap only between words."""
    organization = site.world.make_organization()
    with site.world.transaction_services() as services:
        for name in ("maximiliane.alexandra.schwarzenberger", "michal.walesa-kowalski"):
            command = CreateHumanUser.build(
                user_name=name,
                given_name="Maximiliane Alexandra",
                family_name="Freifrau von Schwarzenberger-Lichtenstein",
                email=f"{name}@engineering.department.holding-company.example",
            )
            services.users.create(organization.id, command)
    site.start_session(profile, site.make_manager(organization=organization))
    tab.size(1280, 860)
    tab.open(f"{site.url}/console/organizations/{organization.id}/users")
    lines = tab.run(
        """
        return Array.from(document.querySelectorAll('tbody .address')).map(address => {
          const lines = new Map();
          const walker = document.createTreeWalker(address, NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const node = walker.currentNode;
            for (let at = 0; at < node.length; at++) {
              const range = document.createRange();
              range.setStart(node, at); range.setEnd(node, at + 1);
              const top = Math.round(range.getBoundingClientRect().top);
              lines.set(top, (lines.get(top) || '') + node.data[at]);
            }
          }
          return Array.from(lines.values());
        });
        """
    )
    assert len(lines) >= 4
    assert any(len(line) > 1 for line in lines)
    for line in lines:
        for ended, begun in pairwise(line):
            assert ended[-1] in "._+-@" or begun[0] == "@", line
    assert tab.run("return document.documentElement.scrollWidth <= window.innerWidth")

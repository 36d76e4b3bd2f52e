"""Everyday tasks in the console, from its start page, within a number of clicks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from identity.domain.authentication import Proof
from identity.domain.organizations import Organization
from identity.domain.policies import SecondFactorRule
from identity.domain.sessions import SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.services.users import UserState
from identity.testing.world import BrowserSession
from tests.browser.chromium import ChromiumProfile
from tests.browser.clicks import Clicks
from tests.browser.example_company import CompanyUser, ExampleCompany
from tests.browser.tab import Tab
from tests.browser.test_console import clipboard_text

pytestmark = pytest.mark.thorough


@pytest.fixture
def organization(site: ExampleCompany) -> Organization:
    return site.world.make_organization()


@pytest.fixture
def manager(site: ExampleCompany, profile: ChromiumProfile, organization: Organization) -> CompanyUser:
    """An owner of the organization, who is signed in."""
    person = site.make_user("Olga", "Nielsen", organization=organization)
    site.world.assign_manager_role(person.user, "ORG_OWNER")
    site.start_session(profile, person)
    return person


@pytest.fixture
def clicks(site: ExampleCompany, tab: Tab, manager: CompanyUser) -> Iterator[Clicks]:
    tab.open(f"{site.url}/console")
    assert tab.heading == "Overview"
    return Clicks(tab)


def make_grant(site: ExampleCompany, organization: Organization, person: CompanyUser) -> str:
    project = site.world.make_project(organization, roles=("buyer", "seller"))
    with site.world.transaction_services() as services:
        services.projects.change(project.id, ChangeProject(name="Webshop"), principal=Principal.OPERATOR)
    return site.world.make_user_grant(person.user, project, "buyer", "seller").id


def test_find_a_surname(site: ExampleCompany, clicks: Clicks, organization: Organization) -> None:
    person = site.make_user("Ada", "Quillfeather", organization=organization)
    clicks.find("quillf", person.user.display_name)
    assert clicks.tab.heading == person.user.display_name
    assert clicks.count <= 1


def test_how_many_sign_ins_this_week(site: ExampleCompany, tab: Tab, organization: Organization) -> None:
    person = site.make_user("Olga", "Nielsen", organization=organization)
    site.world.assign_manager_role(person.user, "ORG_OWNER")
    tab.open(f"{site.url}/console")
    site.sign_in(tab, person)
    site.world.identity.background_jobs.flush_activity()
    tab.reload()
    assert "Sign-ins, 7 days\n1\n" in tab.text


def test_who_removed_a_role(site: ExampleCompany, clicks: Clicks, organization: Organization) -> None:
    person = site.make_user("Berta", "Umbridge", organization=organization)
    path = f"/user-grants/{make_grant(site, organization, person)}"
    program = site.world.make_service_user_program(organization, display_name="Nightly job")
    site.world.assign_manager_role(program, "ORG_OWNER")
    answer = site.world.client.call_management_api(path, program.management_token(), "PATCH", {"roles": ["seller"]})
    assert answer.status_int == 200
    clicks.find("umbridge", person.user.display_name)
    clicks.follow("Activity")
    clicks.follow("Roles")
    changed = clicks.tab.text_of(".timeline > li")
    assert "by Nightly job" in changed
    assert clicks.tab.text_of(".timeline del").split() == ["Before:", "buyer"]
    assert clicks.count <= 3


def test_what_can_a_person_do(site: ExampleCompany, clicks: Clicks, organization: Organization) -> None:
    person = site.make_user("Carla", "Vandersee", organization=organization)
    make_grant(site, organization, person)
    clicks.find("vandersee", person.user.display_name)
    clicks.follow("Access")
    assert {"Webshop", "buyer", "seller"} <= set(clicks.tab.text.replace(",", " ").split())
    assert clicks.count <= 2


def test_rotate_a_secret(
    site: ExampleCompany, profile: ChromiumProfile, clicks: Clicks, organization: Organization
) -> None:
    client = site.world.make_web_application(site.world.make_project(organization).id, name="Turnstile")
    profile.let_copy()
    clicks.find("turnst", "Turnstile")
    clicks.follow("Secrets")
    clicks.follow("New client secret")
    clicks.press("Create secret")
    clicks.press("Copy")
    assert clipboard_text(clicks.tab) not in ("", client.secret)
    assert clicks.count <= 5


def test_why_a_sign_in_fails(site: ExampleCompany, clicks: Clicks, organization: Organization) -> None:
    client = site.world.make_web_application(site.world.make_project(organization).id, name="Turnstile")
    answer = site.world.make_browser_session().authorize(client, redirect_uri="https://elsewhere.example/")
    assert answer.status_int == 400
    site.world.identity.background_jobs.flush_activity()
    clicks.find("turnst", "Turnstile")
    clicks.follow("Log")
    assert "redirect_uri" in clicks.tab.text_of("main table tbody tr")
    assert clicks.count <= 2


def test_second_factor_for_managers_only(
    site: ExampleCompany, profile: ChromiumProfile, clicks: Clicks, organization: Organization, manager: CompanyUser
) -> None:
    """Without a second factor of their own, the manager would first confirm that their session ends."""
    with site.world.transaction_services() as services:
        [session] = services.sessions.list_by_user(manager.user.id)
        account = SignedInAccount(session, Subject(manager.user, organization))
        _, secret = services.sessions.step_up(account, (Proof("totp", ("otp",), services.now),))
    site.keep_session(profile, BrowserSession(site.world, manager.user, session.id, secret))
    clicks.follow("Sign-in policy", inside=".rail")
    clicks.follow("Change")
    clicks.choose("second_factor", "required_for_managers")
    clicks.send()
    with site.world.read_only_services() as services:
        rule = services.policies.get_stored_policy(organization.id).policy.second_factor
    assert rule is SecondFactorRule.REQUIRED_FOR_MANAGERS
    assert clicks.count <= 4


def test_grant_a_project_to_a_partner(site: ExampleCompany, clicks: Clicks, organization: Organization) -> None:
    project = site.world.make_project(organization, roles=("buyer",))
    partner = site.world.make_organization()
    clicks.find(project.name, project.name)
    clicks.follow("Project grants")
    clicks.follow("New project grant")
    clicks.tab.fill(q=partner.primary_domain)
    with clicks.tab.leaving():
        clicks.tab.type(Keys.ENTER)
    clicks.follow(partner.name)
    clicks.check("role", "buyer")
    clicks.send()
    with site.world.read_only_services() as services:
        grant = services.storage.project_grants.find_for_organization(project.id, partner.id)
    assert grant is not None
    assert grant.roles == {"buyer"}
    assert clicks.count <= 6


def test_company_sign_in_with_own_looks(site: ExampleCompany, clicks: Clicks, organization: Organization) -> None:
    clicks.follow("Identity providers", inside=".rail")
    clicks.follow("New identity provider")
    clicks.follow("Any other")
    clicks.send(
        name="Northwind", issuer="https://login.northwind.example", client_id="us", client_secret="a secret text"
    )
    clicks.follow("Organization", inside=".rail")
    clicks.follow("Branding")
    clicks.follow("Change", inside="#looks")
    clicks.send(accent="#006b5e")
    with site.world.read_only_services() as services:
        providers = services.storage.upstream_providers.page(organization.id)
        branding = services.branding.own_branding(services.organizations.get(organization.id))
    assert [provider.name for provider in providers] == ["Northwind"]
    assert branding.accent == "#006b5e"
    assert clicks.count <= 9


class TestWithMailServer:
    @pytest.fixture
    def site(self, mailing_site: ExampleCompany) -> ExampleCompany:
        return mailing_site

    def test_invite_50_people(
        self, site: ExampleCompany, clicks: Clicks, organization: Organization, tmp_path: Path
    ) -> None:
        lines = [f"person{n},Pat,Person{n},person{n}@example.org,yes" for n in range(50)]
        file = tmp_path / "people.csv"
        file.write_text("\n".join(["user_name,given_name,family_name,email,invite", *lines]))
        clicks.follow("Users", inside=".rail")
        clicks.follow("Import", inside="main")
        clicks.choose_file("file", file)
        clicks.send()
        site.world.identity.background_jobs.user_importer.run()
        clicks.follow("Refresh")
        clicks.press("Import 50 people")
        site.world.identity.background_jobs.user_importer.run()
        with site.world.read_only_services() as services:
            names = [f"person{n}" for n in range(50)]
            people = [services.storage.users.find_by_name(organization.id, name) for name in names]
            states = services.users.user_states([person for person in people if isinstance(person, HumanUser)])
        assert list(states.values()) == [UserState.INVITED] * 50
        assert len(site.take_all_mail()) == 50
        assert clicks.count <= 6

"""Import of people from a CSV file in the console: check, run, report."""

import csv
import hashlib
import io
from base64 import b64encode

import pytest
from webtest import Upload

from identity.domain.audit import ActorKind
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project
from identity.domain.users import HumanUser, User
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup, AddGroupGrant
from identity.services.commands.projects import AddProjectRole
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn

PASSWORD = "correct horse battery staple"


def _upload(browser: Browser, organization: Organization, text: str) -> str:
    """Upload the file; returns the URL of the import's page."""
    browser.open(f"/console/organizations/{organization.id}/users")
    browser.click("Import")
    page = browser.submit({"file": Upload("people.csv", text.encode())})
    assert page.status_int == 200, page
    return browser.url


def _work(world: World) -> None:
    world.identity.background_jobs.user_importer.run()


def _run(world: World, browser: Browser, organization: Organization, text: str) -> None:
    url = _upload(browser, organization, text)
    _work(world)
    browser.open(url)
    browser.submit(button=("action", "run"))
    _work(world)
    browser.reload()


def _find(world: World, organization: Organization, name: str) -> User | None:
    with world.read_only_services() as services:
        return services.storage.users.find_by_name(organization.id, name)


def _report(browser: Browser) -> list[list[str]]:
    answer = browser.click("Report as CSV")
    assert answer.content_type == "text/csv"
    return list(csv.reader(io.StringIO(answer.text)))


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    project = world.make_project(organization)
    with world.transaction_services() as services:
        services.projects.add_role(project.id, AddProjectRole(key="buyer", display_name="Buyer"))
    return project


def test_checking_creates_nobody_and_running_does(world: World, owner: Browser, organization: Organization) -> None:
    text = "user_name;given_name;family_name;email\nanna;Anna;Ahlers;anna@example.org\n;No;Name;\n"
    url = _upload(owner, organization, text)
    assert "0 of 2 lines" in owner.page.text
    _work(world)
    page = owner.open(url)
    assert "Checked" in page.text
    assert "Import 1 person" in page.text
    assert "user_name: " in page.html.find(id="problems").text
    assert _find(world, organization, "anna") is None
    owner.submit(button=("action", "run"))
    _work(world)
    owner.reload()
    assert "Finished" in owner.page.text
    anna = _find(world, organization, "anna")
    assert isinstance(anna, HumanUser)
    assert (anna.profile.given_name, anna.profile.email, anna.profile.email_verified) == (
        "Anna",
        "anna@example.org",
        False,
    )
    [created] = world.audit_events(event="user.created", object_id=anna.id)
    assert created.actor.kind is ActorKind.USER
    assert [row[2] for row in _report(owner)] == ["result", "created", "refused"]


def test_importing_a_file_again_changes_nobody(world: World, owner: Browser, organization: Organization) -> None:
    _run(world, owner, organization, "user_name,given_name,family_name\nanna,Anna,Ahlers\n")
    before = _find(world, organization, "anna")
    url = _upload(owner, organization, "family_name,user_name,given_name\nChanged,ANNA,Other\n")
    _work(world)
    page = owner.open(url)
    assert "Exists already" in page.html.find(id="lines").text
    assert not page.html.find("button", attrs={"value": "run"}), "there is no one to import"
    assert _find(world, organization, "anna") == before


def test_roles_are_given_with_the_starters_rights(
    world: World, sign_in: SignIn, organization: Organization, project: Project
) -> None:
    text = f"user_name,given_name,family_name,roles\nanna,Anna,A,{project.id}:buyer\nbert,Bert,B,{project.name}:none\n"
    _run(world, sign_in(), organization, text)
    anna = _find(world, organization, "anna")
    assert anna is not None
    with world.read_only_services() as services:
        [grant] = services.storage.user_grants.page("user_id", anna.id)
    assert grant.roles == {"buyer"}
    assert _find(world, organization, "bert") is None
    # Managers who may create users, but not give roles of the project, give none.
    helper = sign_in("ORG_USER_MANAGER")
    url = _upload(helper, organization, f"user_name,given_name,family_name,roles\ncarl,Carl,C,{project.id}:buyer\n")
    _work(world)
    assert "Will be skipped" in helper.open(url).text
    assert _find(world, organization, "carl") is None


def test_groups_are_joined_with_the_starters_rights(
    world: World, sign_in: SignIn, organization: Organization, project: Project
) -> None:
    with world.transaction_services() as services:
        for name in ("Buyers", "All hands"):
            group = services.groups.add(organization.id, AddGroup(name=name), principal=Principal.OPERATOR)
            if name == "Buyers":
                grant = AddGroupGrant(project_id=project.id, roles=frozenset({"buyer"}))
                services.group_grants.add(group.id, grant, principal=Principal.OPERATOR)
    header = "user_name,given_name,family_name,groups\n"
    _run(world, sign_in(), organization, f"{header}anna,Anna,A,buyers|All hands\nbert,Bert,B,Nobody\n")
    anna = _find(world, organization, "anna")
    assert anna is not None
    with world.read_only_services() as services:
        assert {group.name for group, _ in services.groups.list_of_user(anna.id)} == {"Buyers", "All hands"}
    assert _find(world, organization, "bert") is None
    helper = sign_in("ORG_USER_MANAGER")
    url = _upload(helper, organization, f"{header}carl,Carl,C,Buyers\n")
    _work(world)
    assert "Will be skipped" in helper.open(url).text


def test_import_ends_when_its_starter_loses_the_right(
    world: World, owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    url = _upload(owner, organization, "user_name,given_name,family_name\nanna,Anna,A\n")
    with world.transaction_services() as services:
        for manager in services.storage.managers.page(Resource.of_organization(organization.id).key):
            services.managers.remove(manager.id, principal=Principal.OPERATOR)
    _work(world)
    with world.read_only_services() as services:
        assert services.user_imports.find_next_batch(url.rpartition("/")[2]) is None
    assert _find(world, organization, "anna") is None


def test_only_the_starter_runs_an_import(
    world: World, owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    url = _upload(owner, organization, "user_name,given_name,family_name\nanna,Anna,A\n")
    _work(world)
    other = sign_in()
    other.open(url)
    assert other.submit({}, form="page-form").status_int == 403
    _work(world)
    assert _find(world, organization, "anna") is None
    other_url = url.replace(organization.id, world.make_organization().id)
    assert sign_in("IAM_OWNER", resource=Resource.INSTANCE).open(other_url).status_int == 404


def test_imported_password_signs_in_and_is_replaced(world: World, owner: Browser, organization: Organization) -> None:
    digest = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"saltsalt", 10_000)
    foreign = f"pbkdf2_sha256$10000$saltsalt${b64encode(digest).decode()}"
    _run(world, owner, organization, f"user_name,given_name,family_name,password_hash\nanna,Anna,A,{foreign}\n")
    anna = _find(world, organization, "anna")
    assert anna is not None

    def stored() -> str:
        with world.read_only_services() as services:
            password = services.storage.users.find_password(anna.id)
        assert password is not None
        return password.hash

    assert stored().startswith("$imported$")
    assert b64encode(digest).decode() not in stored()
    assert digest.hex() not in stored()
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(f"anna@{organization.primary_domain}", "another password")
    assert stored().startswith("$imported$")
    browser = Browser(world)
    browser.open("/login")
    page = browser.sign_in(f"anna@{organization.primary_domain}", PASSWORD)
    assert page.status_int == 200
    assert stored().startswith("$argon2id$")


def test_report_escapes_formulas(world: World, owner: Browser, organization: Organization) -> None:
    _run(world, owner, organization, 'user_name,given_name,family_name\n"=1+2",Anna,A\nbert,Bert,B\n')
    assert _report(owner)[1][1] == "'=1+2"


def test_unreadable_files_are_refused(owner: Browser, organization: Organization) -> None:
    for content in (b"", b"\xff\xfe\x00", b"name,mail\n", b'user_name,given_name,family_name\n"a'):
        owner.open(f"/console/organizations/{organization.id}/users/import")
        page = owner.submit({"file": Upload("people.csv", content)})
        assert page.status_int == 422


def test_discarded_import_is_gone(world: World, owner: Browser, organization: Organization) -> None:
    url = _upload(owner, organization, "user_name,given_name,family_name\nanna,Anna,A\n")
    _work(world)
    owner.open(url)
    owner.submit(button=("action", "discard"))
    assert owner.open(url).status_int == 404
    assert _find(world, organization, "anna") is None
    assert not world.audit_events(
        event="user_import.started", object_id=Resource.of_organization(organization.id).key.id
    )

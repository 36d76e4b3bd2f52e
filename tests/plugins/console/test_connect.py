"""The tab Connect of applications and service users: code with real ids, and the addresses that it needs."""

from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.applications import Application, ApplicationType, redirect_uri_error
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.plugins.console.snippets import APPLICATION_FRAMEWORKS, application_frameworks
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.testing.browser import Browser
from identity.testing.world import World

CALLBACK, HOME = "http://localhost:8000/callback", "http://localhost:8000/"


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    return world.make_project(organization)


def make(world: World, project: Project, kind: ApplicationType = ApplicationType.WEB, **members: object) -> Application:
    usual = {} if kind is ApplicationType.API else {"redirect_uris": ["https://shop.example.com/signed-in"]}
    return world.register_application(project.id, type=kind, **(usual | members))[0]


def stored(world: World, application: Application) -> Application:
    with world.read_only_services() as services:
        return services.applications.get(application.id)


def add(browser: Browser) -> None:
    """Press Add beside the missing addresses."""
    (form,) = (index for index, form in browser.page.forms.items() if "/connect/addresses?" in form.action)
    browser.submit(form=form)


def code(browser: Browser) -> str:
    return "\n".join(box.text for box in browser.page.html.select(".codebox__text"))


def test_code_has_the_real_ids_and_no_secret(world: World, project: Project, owner: Browser) -> None:
    application, secret = world.register_application(
        project.id, type=ApplicationType.WEB, redirect_uris=["https://shop.example.com/signed-in"]
    )
    page = owner.open(f"/console/applications/{application.id}/connect?with=fastapi")
    for value in (world.issuer, application.id, project.id):
        assert f'"{value}"' in code(owner)
    assert secret is not None
    assert secret not in page.text
    assert 'os.environ["CLIENT_SECRET"]' in code(owner)


@pytest.mark.parametrize("kind", list(ApplicationType))
def test_every_framework_of_a_type_has_a_page(
    world: World, project: Project, owner: Browser, kind: ApplicationType
) -> None:
    application = make(world, project, kind)
    owner.open(f"/console/applications/{application.id}")
    owner.click("Connect")
    links = [str(link["href"]) for link in owner.page.html.select(".picks a")]
    assert len(links) == len(application_frameworks(application)) >= 3
    for link in links:
        page = owner.open(link)
        assert page.status_int == 200
        assert [str(link["href"]) for link in page.html.select('.picks a[aria-current="true"]')] == [link]
        assert application.id in code(owner)
        assert "[[" not in code(owner)
        assert "[%" not in code(owner)
        assert ("CLIENT_SECRET" in code(owner)) == (kind in (ApplicationType.WEB, ApplicationType.API))


def test_frameworks_are_known_by_key_and_type() -> None:
    known = [(framework.key, kind) for framework in APPLICATION_FRAMEWORKS for kind in framework.types]
    assert len(known) == len(set(known))
    assert {key for key, _ in known} >= {
        *("fastapi", "django", "flask", "express", "next", "react", "spring", "go", "dotnet", "ios", "android", "curl")
    }


def test_unknown_framework_shows_the_first(world: World, project: Project, owner: Browser) -> None:
    application = make(world, project)
    page = owner.open(f"/console/applications/{application.id}/connect?with=cobol")
    assert [link.text.strip() for link in page.html.select('.picks a[aria-current="true"]')] == ["FastAPI"]


def test_missing_addresses_are_added_with_one_click(world: World, project: Project, owner: Browser) -> None:
    application = make(world, project)
    owner.open(f"/console/applications/{application.id}/connect?with=fastapi")
    assert owner.page.html.find(id="addresses").text.count("Not registered") == 2
    add(owner)
    assert urlsplit(owner.url).path == f"/console/applications/{application.id}/connect"
    assert "Not registered" not in owner.page.html.find(id="addresses").text
    assert owner.page.html.select('.picks a[aria-current="true"]')[0].text.strip() == "FastAPI"
    after = stored(world, application)
    assert after.redirect_uris == ("https://shop.example.com/signed-in", CALLBACK)
    assert after.post_logout_redirect_uris == (HOME,)
    assert [event.event for event in world.audit_events(object_id=application.id)][:1] == ["application.changed"]
    page = owner.reload()
    assert page.html.find("form", action=lambda action: action and "/connect/addresses" in action) is None


def test_address_of_the_application_is_chosen(world: World, project: Project, owner: Browser) -> None:
    application = make(world, project)
    path = f"/console/applications/{application.id}/connect"
    owner.open(f"{path}?with=express&at=https://shop.example.com/")
    assert 'const redirectUri = "https://shop.example.com/callback"' in code(owner)
    add(owner)
    assert "https://shop.example.com/callback" in stored(world, application).redirect_uris


@pytest.mark.parametrize(
    "origin",
    [
        *("http://shop.example.com", "javascript:alert(1)", "https://shop.example.com/path", "https://a.test?b", "x"),
        *(
            'https://a.test"+x+"',
            "https://a.test'",
            "https://u:p@a.test",
            "https://a.test#b",
            "https://$(id)",
            "https://",
        ),
        "https://a.test:99999",
    ],
)
def test_other_addresses_do_not_get_into_the_code(world: World, project: Project, owner: Browser, origin: str) -> None:
    application = make(world, project)
    path = f"/console/applications/{application.id}/connect"
    owner.open(f"{path}?with=express")
    usual = code(owner)
    page = owner.open(f"{path}?{urlencode({'with': 'express', 'at': origin})}")
    assert page.status_int == 200
    assert code(owner) == usual
    assert page.html.find(id="origin-error") is not None


def test_name_of_the_application_is_no_code(world: World, project: Project, owner: Browser) -> None:
    application = make(world, project, name='"; import os; os.system("id") #')
    for framework in application_frameworks(application):
        owner.open(f"/console/applications/{application.id}/connect?with={framework.key}")
        assert "os.system" not in code(owner)


def test_secret_in_the_form_is_part_of_the_code(world: World, project: Project, owner: Browser) -> None:
    application = make(world, project, authentication_method="client_secret_post")
    for key, text in (
        ("fastapi", 'authentication_method="client_secret_post"'),
        ("express", "ClientSecretPost"),
        ("next", "client_secret_post"),
        ("spring", "client-authentication-method: client_secret_post"),
    ):
        owner.open(f"/console/applications/{application.id}/connect?with={key}")
        assert text in code(owner)


def test_what_the_code_lacks_is_named(world: World, project: Project, owner: Browser) -> None:
    for members, expected in (
        ({"authentication_method": "private_key_jwt", "require_pushed_authorization_requests": True}, True),
        ({"authentication_method": "client_secret_post"}, False),
    ):
        application = make(world, project, **members)
        page = owner.open(f"/console/applications/{application.id}/connect")
        assert ("private_key_jwt, PAR" in page.text, "needs more than these examples" in page.text) == (
            expected,
            expected,
        )


def test_application_without_a_secret_links_to_a_new_one(world: World, project: Project, owner: Browser) -> None:
    application = make(world, project)
    path = f"/console/applications/{application.id}"
    assert "Create a client secret" not in owner.open(f"{path}/connect").text
    with world.transaction_services() as services:
        for secret in services.applications.list_secrets(application.id):
            services.applications.remove_secret(application.id, secret.id, principal=Principal.OPERATOR)
    owner.open(f"{path}/connect")
    owner.click("Create a client secret")
    assert urlsplit(owner.url).path == f"{path}/secrets/new"


def test_service_user_has_code_and_a_link_to_a_key(world: World, organization: Organization, owner: Browser) -> None:
    robot = world.make_service_user_program(organization)
    page = owner.open(f"/console/service-users/{robot.id}/connect")
    assert "Create a key" not in page.text
    links = [str(link["href"]) for link in page.html.select(".picks a")]
    assert [link.rpartition("=")[2] for link in links] == ["curl", "python", "go", "github-actions", "kubernetes"]
    for link in links:
        owner.open(link)
        assert world.issuer in code(owner)
        assert "[[" not in code(owner)
    assert "${{ secrets.SERVICE_USER_KEY }}" in owner.open(links[3]).text
    owner.click("Add a federated credential")
    assert owner.find_form("page-form")["issuer"].value == "https://token.actions.githubusercontent.com"


def test_conflicting_change_is_not_overwritten(world: World, project: Project, owner: Browser) -> None:
    """Reading and changing are one transaction, so that an address which somebody else adds stays."""
    application = make(world, project)
    path = f"/console/applications/{application.id}/connect"
    owner.open(f"{path}?with=fastapi")
    with world.transaction_services() as services:
        command = ChangeApplication.build(redirect_uris=["https://other.example.com/"])
        services.applications.change(application.id, command, principal=Principal.OPERATOR)
    add(owner)
    assert stored(world, application).redirect_uris == ("https://other.example.com/", CALLBACK)


@given(st.sampled_from(list(ApplicationType)))
def test_addresses_of_the_code_can_be_registered(kind: ApplicationType) -> None:
    for framework in APPLICATION_FRAMEWORKS:
        for uri in (framework.redirect_uri(), framework.post_logout_uri()):
            for type_ in framework.types if uri else ():
                assert redirect_uri_error(uri, type=type_) is None

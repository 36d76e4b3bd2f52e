"""Applications in the console (service description §5.2)."""

import json
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from identity.domain.applications import CERTIFICATE_NAME_FIELDS, Application, ApplicationType
from identity.domain.entity import entity_fields
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.users import TokenFormat
from identity.plugins.console.fields.applications import APPLICATION_FIELDS
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.testing.browser import Browser
from identity.testing.service_test_client import Credentials
from identity.testing.world import CALLBACK_URI, World


@pytest.fixture
def project(world: World, organization: Organization) -> Project:
    """A project of the organization."""
    return world.make_project(organization)


@pytest.fixture
def new(project: Project) -> str:
    """The path of the registration form."""
    return f"/console/projects/{project.id}/applications/new"


def _register(browser: Browser, new: str, kind: str, **fields: str | bool) -> str:
    """Register an application; returns its client id."""
    browser.open(f"{new}?type={kind}")
    page = browser.submit({"name": "Shop", **fields}, form="page-form")
    assert page.status_int == 200, page
    return str(page.html.select_one(".identifier code").text)


def _application(world: World, client_id: str) -> Application:
    with world.read_only_services() as services:
        return services.applications.get(client_id)


def _rename(world: World, client_id: str, name: str) -> None:
    with world.transaction_services() as services:
        services.applications.change(client_id, ChangeApplication(name=name), principal=Principal.OPERATOR)


def _secrets(world: World, client_id: str) -> int:
    with world.read_only_services() as services:
        return len(services.applications.list_secrets(client_id))


def _shown_secret(browser: Browser) -> str:
    return str(browser.page.html.find(id="secret-value").text)


def _works(world: World, client_id: str, secret: str) -> bool:
    with world.transaction_services() as services:
        return services.applications.authenticate(client_id, secret) is not None


# --- registration ----------------------------------------------------------------------------------------------------


def test_registration_asks_for_the_type_first(owner: Browser, project: Project, new: str) -> None:
    page = owner.open(f"/console/projects/{project.id}")
    assert "No applications yet" in page.html.find(id="applications").text
    owner.click("New application")
    assert owner.page.html.h1.text == "New application"
    assert "page-form" not in owner.page.forms
    for kind in ("Web application", "Native application", "Browser application", "API"):
        found = owner.open(new).html.find("main").find_all("a", href=True)
        owner.open(next(link["href"] for link in found if link.get_text().strip().startswith(kind)))
        assert owner.page.html.select_one(".section__lead").text == f"{kind} · Step 2 of 2"
    assert "Step 1 of 2" in owner.open(f"{new}?type=toaster")
    token = owner.open(f"{new}?type=web").forms["page-form"]["csrf_token"].value
    assert "Step 1 of 2" in owner.post_form(new, {"name": "Shop", "csrf_token": token}, initiator=owner.login_url)


def test_settings_appear_for_types_that_use_them(instance_owner: Browser, new: str) -> None:
    # The plugins of these need a setting: see test_absent_plugins.
    absent = {*CERTIFICATE_NAME_FIELDS, "request_uris"}
    settings = [field for field in entity_fields(Application).values() if field.is_mutable and field.name not in absent]
    renamed = {"response_types": "response_type", "grant_types": "grant_type"}
    for kind in ApplicationType:
        form = instance_owner.open(f"{new}?type={kind}").forms["page-form"]
        of_use = [field for field in settings if not field.options.types or kind in field.options.types]
        labels = {APPLICATION_FIELDS[field.name].label for field in of_use}
        assert {renamed.get(field.name, field.name) for field in of_use} == set(form.fields) - {
            "csrf_token",
            "once",
            None,
        }
        assert labels <= {item.text for item in form.html.select("label, legend")}
        form["name"], form["may_manage"] = "Shop", True
        if "redirect_uris" in form.fields:
            form["redirect_uris"] = CALLBACK_URI if kind is not ApplicationType.NATIVE else "com.example.app:/cb"
        page = instance_owner.submit(form="page-form")
        page = instance_owner.open(f"/console/applications/{page.html.select_one('.identifier code').text}")
        facts = {item.text for item in page.html.select("dt")}
        assert {"May manage", "Authentication method", "Lifetime of access tokens"} <= facts
        assert not facts & {"Development", "Require pushed requests", "Public keys"}, "they have their defaults"


@pytest.mark.shows("4.2.3")
def test_web_application_registration_shows_secret(world: World, owner: Browser, new: str) -> None:
    owner.open(f"{new}?type=web")
    page = owner.submit(
        {"name": "Shop", "redirect_uris": f" {CALLBACK_URI}\r\n\r\nhttps://b.example/cb"}, form="page-form"
    )
    assert page.status_int == 200
    assert page.headers["Cache-Control"] == "no-store"
    assert page.html.h1.text == "Application registered"
    client_id, secret = page.html.select_one(".identifier code").text, _shown_secret(owner)
    assert _works(world, client_id, secret)
    stored = _application(world, client_id)
    assert stored.type is ApplicationType.WEB
    assert stored.redirect_uris == (CALLBACK_URI, "https://b.example/cb")
    assert stored.response_types == {"code"}
    assert stored.grant_types == {"authorization_code"}
    assert stored.authentication_method == "client_secret_basic"
    page = owner.click("I have saved it")
    assert secret not in page
    assert owner.path == f"/console/applications/{client_id}"


def test_public_application_has_no_secret(world: World, owner: Browser, new: str) -> None:
    for kind, uri in (("native", "com.example.app:/cb"), ("native", "http://127.0.0.1/cb"), ("browser", CALLBACK_URI)):
        client_id = _register(owner, new, kind, redirect_uris=uri)
        assert "Application registered." in owner.page
        assert owner.path == f"/console/applications/{client_id}"
        assert _application(world, client_id).is_public
        assert _secrets(world, client_id) == 0
        assert owner.page.html.find(id="secrets") is None


@pytest.mark.shows("2.7.6")
def test_userinfo_in_id_token_is_an_option(world: World, owner: Browser, new: str) -> None:
    """Service description §2.7: the label of id_token_userinfo_assertion."""
    for enabled in (True, False):
        owner.open(f"{new}?type=web")
        label = owner.page.html.find("label", string=lambda text: text and text.strip() == "User Info inside ID Token")
        option = owner.page.html.find(id=label["for"])["name"]
        client_id = _register(owner, new, "web", redirect_uris=CALLBACK_URI, **{option: enabled})
        assert _application(world, client_id).id_token_userinfo_assertion is enabled


def test_application_form_stores_every_field(world: World, owner: Browser, new: str) -> None:
    owner.open(f"{new}?type=web")
    form = owner.find_form("page-form")
    for name, enabled in {"response_type": "id_token token", "grant_type": "refresh_token"}.items():
        next(item for item in form.fields[name] if item._value == enabled).checked = True
    form["authentication_method"] = "client_secret_post"
    flags = ("id_token_userinfo_assertion", "assert_roles_in_access_token", "assert_roles_in_id_token", "development")
    typed = {
        "name": "Shop",
        "redirect_uris": "http://shop.test/cb",
        "post_logout_redirect_uris": "http://shop.test/bye",
        "access_token_type": "jwt",
        "access_token_lifetime": "5",
        "id_token_lifetime": "720",
    }
    owner.submit(typed | dict.fromkeys(flags, True), form="page-form")
    stored = _application(world, owner.page.html.select_one(".identifier code").text)
    assert stored.response_types == {"code", "id_token token"}
    assert stored.grant_types == {"authorization_code", "implicit", "refresh_token"}
    assert stored.authentication_method == "client_secret_post"
    assert stored.redirect_uris == ("http://shop.test/cb",)
    assert stored.post_logout_redirect_uris == ("http://shop.test/bye",)
    assert stored.access_token_type is TokenFormat.JWT
    assert (stored.access_token_lifetime, stored.id_token_lifetime) == (timedelta(minutes=5), timedelta(hours=12))
    assert all(getattr(stored, name) for name in flags)


def test_form_offers_only_applicable_settings(world: World, owner: Browser, new: str) -> None:
    form = owner.open(f"{new}?type=web").forms["page-form"]
    choices = world.identity.process_state.capabilities
    assert tuple(item._value for item in form.fields["grant_type"]) == choices.grant_types
    assert tuple(item._value for item in form.fields["response_type"]) == choices.response_types
    assert tuple(option[0] for option in form["authentication_method"].options) == choices.authentication_methods
    assert "urn:ietf:params:oauth:grant-type:jwt-bearer" not in choices.grant_types


def test_choice_of_no_bound_tokens_is_kept_beside_errors(owner: Browser, new: str) -> None:
    owner.open(f"{new}?type=web")
    page = owner.submit({"name": ""}, form="page-form")
    assert page.status_int == 422
    assert page.html.find("input", {"name": "required_sender_constraint", "value": ""}).has_attr("checked")


def test_form_shows_all_errors_at_once(owner: Browser, new: str) -> None:
    owner.open(f"{new}?type=web")
    typed = {
        "name": "",
        "redirect_uris": f"{CALLBACK_URI}\nhttp://shop.test/cb",
        "post_logout_redirect_uris": "https://shop.test/#top",
        "access_token_lifetime": "721",
        "id_token_lifetime": "an hour",
    }
    page = owner.submit({**typed, "assert_roles_in_id_token": True}, form="page-form")
    assert page.status_int == 422
    message = {name: page.html.find(id=f"error-{name}").text for name in typed}
    assert "Enter a name." in message["name"]
    assert "http://shop.test/cb must start with https://" in message["redirect_uris"]
    assert CALLBACK_URI not in message["redirect_uris"]
    assert "https://shop.test/#top must not have a fragment" in message["post_logout_redirect_uris"]
    assert "Enter the lifetime of access tokens as minutes from 1 to 720." in message["access_token_lifetime"]
    assert "Enter the lifetime of ID tokens as minutes from 1 to 720." in message["id_token_lifetime"]
    assert [item["href"] for item in page.html.select("#errors a")] == [f"#field-{name}" for name in typed]
    form = owner.find_form("page-form")
    assert {name: form[name].value.replace("\r\n", "\n").strip("\n") for name in typed} == typed
    assert form["assert_roles_in_id_token"].checked
    # Groups with an error are open.
    opened = [item.summary.text for item in page.html.main.find_all("details") if item.has_attr("open")]
    assert opened == ["Tokens"]


def test_invalid_settings_are_refused(world: World, owner: Browser, project: Project, new: str) -> None:
    token = owner.open(f"{new}?type=web").forms["page-form"]["csrf_token"].value
    sent = {"name": "Shop", "response_type": "code", "redirect_uris": CALLBACK_URI, "csrf_token": token}
    for named, value, message in (
        ("redirect_uris", "", "Enter the address that people return to"),
        ("redirect_uris", "x" * 2001, "longer than 2000"),
        ("redirect_uris", "javascript:alert(1)", "must be an absolute address"),
        ("grant_type", "refresh_token", "refresh tokens come with it alone."),
        ("grant_type", "password", "password is not offered here."),
        ("authentication_method", "tls", "tls is not offered here."),
        ("access_token_type", "paper", "Choose from opaque, jwt."),
    ):
        answer = owner.post_form(f"{new}?type=web", {**sent, named: value}, initiator=owner.login_url)
        assert answer.status_int == 422
        assert message in answer.html.find(id=f"error-{named}").text
    with world.read_only_services() as services:
        assert not services.storage.applications.page(project.id).items


# --- validation while typing -----------------------------------------------------------------------------------------


def _check(browser: Browser, url: str, **fields: str) -> dict[str, str]:
    """The validation result that the page's script requests while a form is filled in."""
    token = browser.open(url).forms["page-form"]["csrf_token"].value
    headers = {
        "X-Check": "1",
        "Cookie": browser.cookies.header(browser.url, browser.world.clock(), method="POST"),
        "Content-Type": "application/x-www-form-urlencoded",
        "Sec-Fetch-Site": "same-origin",
    }
    answer = browser._app.post(browser.url, urlencode({"csrf_token": token, **fields}), headers=headers)
    assert answer.status_int == 200
    found: dict[str, str] = json.loads(answer.body)["fields"]
    return found


def test_uris_are_checked_while_typed(world: World, owner: Browser, project: Project, new: str) -> None:
    url = f"{new}?type=web"
    assert owner.open(url).html.find(id="page-form").has_attr("data-check")
    message = _check(owner, url, redirect_uris=f"{CALLBACK_URI}\r\nftp://a.example", post_logout_redirect_uris="/bye")
    assert message == {
        "redirect_uris": "ftp://a.example must be an absolute address that starts with https://.",
        "post_logout_redirect_uris": "/bye must be an absolute address that starts with https://.",
    }
    assert _check(owner, url, redirect_uris="http://shop.test/cb")
    assert _check(owner, url, redirect_uris="http://shop.test/cb", development="yes") == {}
    assert _check(owner, url, redirect_uris="com.example.app:/cb")
    assert _check(owner, f"{new}?type=native", redirect_uris="com.example.app:/cb") == {}
    assert _check(owner, url, access_token_lifetime="0", id_token_lifetime="60").keys() == {"access_token_lifetime"}
    # Fields that were not touched have no errors.
    assert _check(owner, url) == {}
    with world.read_only_services() as services:
        assert not services.storage.applications.page(project.id).items


# --- detail page -----------------------------------------------------------------------------------------------------


@pytest.fixture
def client(world: World, project: Project) -> Credentials:
    """A web application with one secret."""
    credentials = world.make_web_application(project.id, post_logout_redirect_uris=("https://shop.test/bye",))
    _rename(world, credentials.client_id, "Shop")
    return credentials


@pytest.fixture
def href(client: Credentials) -> str:
    """The address of its page."""
    return f"/console/applications/{client.client_id}"


def test_detail_page_shows_endpoints_to_copy(world: World, owner: Browser, client: Credentials, href: str) -> None:
    page = owner.open(href)
    assert page.html.h1.text == "Shop"
    copied = {item["data-copy"] for item in page.html.select("button[data-copy]")}
    document = world.client.discovery
    assert {client.client_id, CALLBACK_URI, "https://shop.test/bye", world.issuer} <= copied
    assert f"{world.issuer}/.well-known/openid-configuration" in copied
    assert {
        document[f"{name}_endpoint"] for name in ("authorization", "token", "userinfo", "introspection", "end_session")
    } <= copied
    assert document["jwks_uri"] in copied
    assert "60 minutes (default)" in " ".join(page.html.main.text.split())


def test_list_shows_type_and_secret(world: World, owner: Browser, project: Project, client: Credentials) -> None:
    stock = world.make_application(project.id)
    with world.transaction_services() as services:
        services.applications.add_secret(client.client_id, principal=Principal.OPERATOR)
        [secret] = services.applications.list_secrets(stock.client_id)
        services.applications.remove_secret(stock.client_id, secret.id, principal=Principal.OPERATOR)
    _rename(world, stock.client_id, "Stock")
    _rename(world, world.make_public_application(project.id), "Till")
    page = owner.open(f"/console/projects/{project.id}/applications")
    rows = {row.a.text: [item.text for item in row.select("td")] for row in page.html.select("tbody tr")}
    assert rows["Shop"] == ["Web application", client.client_id, "2 live", "Active"]
    assert rows["Stock"][2] == "No secret"
    assert rows["Till"][2] == "None"
    page = owner.open(f"/console/projects/{project.id}/applications?q=sh")
    assert [item.text for item in page.html.select("a.table__name")] == ["Shop"]


# --- change ----------------------------------------------------------------------------------------------------------


def test_edit_without_changes_stores_nothing(world: World, owner: Browser, client: Credentials) -> None:
    with world.transaction_services() as services:
        # Lifetimes that only programs can set stay as they are.
        command = ChangeApplication(
            access_token_lifetime=timedelta(seconds=100),
            id_token_lifetime=timedelta(minutes=10),
            redirect_uris=(CALLBACK_URI, "https://b.example/cb"),
            assert_roles_in_id_token=True,
        )
        before = services.applications.change(client.client_id, command, principal=Principal.OPERATOR)
    owner.open(f"/console/applications/{client.client_id}/edit")
    assert owner.find_form("page-form")["access_token_lifetime"].value == "1.67"
    assert owner.submit(form="page-form").status_int == 200
    assert owner.path == f"/console/applications/{client.client_id}"
    assert _application(world, client.client_id) == before


def test_emptied_fields_are_reset(world: World, owner: Browser, client: Credentials, href: str) -> None:
    with world.transaction_services() as services:
        command = ChangeApplication(
            access_token_lifetime=timedelta(minutes=5), assert_roles_in_id_token=True, required_sender_constraint="dpop"
        )
        services.applications.change(client.client_id, command, principal=Principal.OPERATOR)
    owner.open(f"{href}/edit")
    fields = {"access_token_lifetime": "", "assert_roles_in_id_token": False, "post_logout_redirect_uris": ""}
    owner.submit({**fields, "required_sender_constraint": ""}, form="page-form")
    after = _application(world, client.client_id)
    assert after.access_token_lifetime is None
    assert not after.assert_roles_in_id_token
    assert after.post_logout_redirect_uris == ()
    assert after.required_sender_constraint is None


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_secret_rotation_has_no_gap(world: World, owner: Browser, client: Credentials, href: str) -> None:
    owner.open(f"{href}/secrets")
    owner.click("New client secret")
    assert "The current one keeps working" in owner.page
    page = owner.submit(form="page-form")
    assert page.html.h1.text == "Client secret added"
    assert page.html.find(id="secret-title").text == "Copy the client secret now"
    new = _shown_secret(owner)
    assert _works(world, client.client_id, client.secret)
    assert _works(world, client.client_id, new)
    page = owner.click("I have saved it")
    assert new not in page
    assert len(page.html.select("#secrets tbody tr")) == 2
    assert "New client secret" not in page.html.find(id="secrets").text
    with world.read_only_services() as services:
        [old, _] = services.applications.list_secrets(client.client_id)
    owner.open(f"{href}/secrets/{old.id}/delete")
    assert "Wherever it is still in use, the application no longer gets tokens." in owner.page
    assert "Client secret revoked." in owner.submit(form="page-form")
    assert not _works(world, client.client_id, client.secret)
    assert _works(world, client.client_id, new)


def test_revoking_a_secret_shows_its_last_use(world: World, owner: Browser, client: Credentials, href: str) -> None:
    with world.read_only_services() as services:
        [secret] = services.applications.list_secrets(client.client_id)
    page = owner.open(f"{href}/secrets/{secret.id}/delete")
    assert "It was never used." in page
    assert "It is the only one" in page
    with world.transaction_services() as services:
        services.storage.applications.update_secrets_last_used({secret.id: world.clock()})
    assert f"Last used {world.clock():%Y-%m-%d %H:%M} UTC." in owner.reload()
    assert owner.open(f"{href}/secrets/unknown/delete").status_int == 404


def test_third_secret_is_refused(world: World, owner: Browser, client: Credentials, href: str) -> None:
    owner.open(f"{href}/secrets/new")
    with world.transaction_services() as services:
        services.applications.add_secret(client.client_id, principal=Principal.OPERATOR)
    page = owner.submit(form="page-form")
    assert page.status_int == 409
    assert "Revoke the older one first." in page
    assert _secrets(world, client.client_id) == 2

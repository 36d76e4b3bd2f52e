"""Branding: set by API and state files, shown on sign-in pages, served safely, and deleted with its owner."""

import base64
import io
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 4" onload="alert(1)"><path d="M0 0h9v4z"/></svg>'
LOGO = base64.b64encode(DRAWING).decode()
LOGO_DARK = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M1 1h7"/></svg>'
).decode()
EMPTY = {
    **dict.fromkeys(("display_name", "accent", "accent_dark", "support", "terms_url", "privacy_url"), ""),
    **dict.fromkeys(("logo", "logo_dark"), ""),
    **{name: {} for name in ("login_title", "mail_sender", "mail_intro", "mail_footer")},
}
ALL = {
    "display_name": "Acme",
    "accent": "#0b5a3c",
    "accent_dark": "#8fdcb8",
    "support": "help@acme.example",
    "terms_url": "https://acme.example/terms",
    "privacy_url": "https://acme.example/privacy",
    "login_title": {"en": "Welcome", "de": "Willkommen"},
    "mail_sender": {"en": "Acme accounts"},
    "mail_intro": {"en": "Dear customer,"},
    "mail_footer": {"en": "Acme Ltd\nLondon"},
}


@pytest.fixture
def organization(owner: ServiceUserProgram) -> Organization:
    return owner.organization


@pytest.fixture
def party(world: World, organization: Organization) -> RelyingParty:
    return RelyingParty.register(world, name="Invoices", project_id=world.make_project(organization).id)


@pytest.fixture
def of_organization(organization: Organization) -> str:
    return f"/organizations/{organization.id}/branding"


@pytest.fixture
def of_application(party: RelyingParty) -> str:
    return f"/applications/{party.client_id}/branding"


def sign_in_page(world: World, party: RelyingParty, *, language: str = "en", **parameters: Any) -> Any:
    """The first sign-in page without a session."""
    return Browser(world, languages=language).open(party.new_request(**parameters).url, initiator=party.origin)


def address(page: Any, selector: str, name: str) -> str:
    """The URL of an element on the page; empty if the page has no such element."""
    found = page.html.select(selector)
    return str(found[-1][name]) if found else ""


def logo_of(page: Any) -> str:
    return address(page, ".brand img", "src")


def style_of(page: Any) -> str:
    return address(page, "link[rel=stylesheet][href^='/branding/']", "href")


def served(world: World, path: str) -> Any:
    return world.client.get(world.identity.settings.login_url + path)


# --- the API ----------------------------------------------------------------------------------------------------------


def test_default_branding_is_empty(api: ApiClient, of_organization: str, of_application: str) -> None:
    for path in (of_organization, of_application):
        branding = api.get(path)
        assert branding.pop("version") >= 1
        assert branding == EMPTY


@pytest.mark.every_storage
def test_branding_is_returned_until_removed(world: World, api: ApiClient, of_organization: str) -> None:
    changed = api.patch(of_organization, {**ALL, "logo": LOGO})
    assert {name: changed[name] for name in ALL} == ALL
    assert b"onload" not in base64.b64decode(changed["logo"])
    assert api.get(of_organization) == changed
    # Omitted members keep their values.
    assert api.patch(of_organization, {"login_title": {"en": "Hello"}, "logo": ""}) == {
        **changed,
        "login_title": {"en": "Hello"},
        "logo": "",
        "version": changed["version"] + 1,
    }
    assert api.patch(of_organization, EMPTY) == {**EMPTY, "version": changed["version"] + 2}
    # A change without effect creates no version.
    assert api.patch(of_organization, EMPTY)["version"] == changed["version"] + 2


@pytest.mark.thorough
def test_branding_change_is_audited(
    world: World,
    api: ApiClient,
    organization: Organization,
    of_organization: str,
    of_application: str,
    party: RelyingParty,
) -> None:
    api.patch(of_organization, {"accent": "#0b5a3c", "logo": LOGO})
    api.patch(of_application, {"display_name": "Bills"})
    [event] = world.audit_events(event="branding.changed", object_id=organization.id)
    assert event.detail["accent"] == {"before": "", "after": "#0b5a3c"}
    assert re.fullmatch(r"[0-9a-f]{32}\.svg", event.detail["logo"]["after"])
    assert LOGO not in json.dumps(dict(event.detail))
    [audit_event] = world.audit_events(event="branding.changed", object_id=party.client_id)
    assert (audit_event.object_kind, audit_event.organization_id) == ("application", organization.id)


def test_stale_version_is_refused(api: ApiClient, of_organization: str) -> None:
    tag = api.ask("GET", of_organization).headers["ETag"]
    assert api.ask("GET", of_organization, If_None_Match=tag).status_int == 304
    api.patch(of_organization, {"display_name": "Acme"}, If_Match=tag)
    check_api_error(api.ask("PATCH", of_organization, {"display_name": "B"}, If_Match=tag), 412, "precondition_failed")
    assert api.get(of_organization)["display_name"] == "Acme"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"accent": "#ffcc00"}, "hard to read on light pages"),
        ({"accent": "red"}, "Enter a colour"),
        ({"accent_dark": "#2540ad"}, "hard to read on dark pages"),
        ({"support": "javascript:alert(1)"}, "Enter an email address, or an address that starts with https://."),
        ({"terms_url": "http://acme.example"}, "https://"),
        ({"privacy_url": "https://acme.example/\"onclick='x'"}, "https://"),
        ({"login_title": {"en": "x" * 101}}, "at most 100 characters"),
        ({"login_title": {"xx": "Hello"}}, "Choose from en, de, fr, es, it, zh."),
        ({"mail_sender": {"en": "service@bank.example"}}, "without an address"),
        ({"mail_sender": {"en": "=?utf-8?q?x?="}}, "without an address"),
        ({"mail_intro": {"en": "x\r\nBcc: all@acme.example\x1b"}}, "printable"),
        ({"mail_footer": {"en": "x" * 601}}, "at most 600 characters"),
        ({"display_name": "a\nb"}, "printable"),
        ({"logo": "aGVsbG8="}, "PNG, WebP or SVG"),
        ({"logo": "%%%"}, "base64"),
    ],
)
def test_invalid_branding_is_refused(
    api: ApiClient, of_organization: str, members: dict[str, Any], message: str
) -> None:
    answer = api.ask("PATCH", of_organization, members)
    check_api_error(answer, 422, "invalid")
    [(name, sentence)] = answer.json["fields"].items()
    assert name in members
    assert message in sentence
    assert api.get(of_organization)["version"] == api.get(of_organization.removesuffix("/branding"))["version"]


def test_branding_needs_write_permission_of_owner(
    world: World, organization: Organization, of_organization: str, of_application: str
) -> None:
    viewer = world.make_service_user_program(organization)
    world.assign_manager_role(viewer, "ORG_OWNER_VIEWER")
    seeing = ApiClient.for_user(viewer)
    for path in (of_organization, of_application):
        assert seeing.ask("GET", path).status_int == 200
        assert seeing.ask("PATCH", path, {"display_name": "Mine"}).status_int == 403
        assert ApiClient.for_user(world.make_manager_program("ORG_OWNER")).ask("GET", path).status_int == 404


def test_instance_application_branding_needs_instance_manager(
    world: World, api: ApiClient, of_application: str, party: RelyingParty
) -> None:
    instance_owner = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    with world.transaction_services() as services:
        application = services.storage.applications.find(party.client_id)
        services.storage.applications.update(replace(application, may_manage=True, version=application.version + 1))
    assert api.ask("PATCH", of_application, {"display_name": "Trusted"}).status_int == 403
    assert instance_owner.patch(of_application, {"display_name": "Trusted"})["display_name"] == "Trusted"


# --- sign-in pages ----------------------------------------------------------------------------------------------------


def test_missing_branding_runs_no_query(world: World, party: RelyingParty, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    with world.read_only_services() as services:
        store = type(services.storage.records)
    find = store.find

    def watched(self: Any, plugin: str, kind: str, key: bytes) -> Any:
        statements.append(kind)
        return find(self, plugin, kind, key)

    monkeypatch.setattr(store, "find", watched)
    page = sign_in_page(world, party)
    assert page.html.h1.text == "Sign in"
    assert "/branding/" not in page
    assert "branding" not in statements


def test_sign_in_pages_use_organization_branding(
    world: World, api: ApiClient, party: RelyingParty, of_organization: str
) -> None:
    api.patch(of_organization, {**ALL, "logo": LOGO})
    page = sign_in_page(world, party)
    assert page.html.h1.text == "Welcome"
    assert page.html.title.text == "Welcome – Invoices – Acme"
    assert "to continue to Invoices · Acme" in page.html.find(class_="login__target").p.text
    assert page.html.select_one(".brand img")["alt"] == "Acme"
    links = {item.text: item["href"] for item in page.html.select(".login__foot a")}
    assert links["Support"] == "mailto:help@acme.example"
    assert (links["Terms of use"], links["Privacy policy"]) == (ALL["terms_url"], ALL["privacy_url"])
    # Languages without custom texts use the default texts.
    assert sign_in_page(world, party, language="de").html.h1.text == "Willkommen"
    assert sign_in_page(world, party, language="fr").html.h1.text == "Se connecter"
    # The policy allows no external sources and nothing beyond the default.
    assert page.headers["Content-Security-Policy"] == (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    )
    assert "style=" not in page


def test_application_branding_precedes_organization_branding(
    world: World, api: ApiClient, party: RelyingParty, of_organization: str, of_application: str
) -> None:
    api.patch(of_organization, {**ALL, "logo": LOGO})
    before = sign_in_page(world, party)
    api.patch(of_application, {"display_name": "Bills", "accent": "#7a1f5c", "login_title": {"en": "Pay here"}})
    page = sign_in_page(world, party)
    assert page.html.h1.text == "Pay here"
    assert "to continue to Bills · Acme" in page.html.find(class_="login__target").p.text
    assert logo_of(page) == logo_of(before)
    assert page.html.select_one(".brand img")["alt"] == "Bills"
    assert style_of(page) != style_of(before)
    assert "#8fdcb8" not in served(world, style_of(page)).text, "colours are chosen together"
    # Another application of the organization does not have it.
    relying_party = RelyingParty.register(
        world, name="Other", project_id=world.make_project(party_organization(world, party)).id
    )
    assert sign_in_page(world, relying_party).html.h1.text == "Welcome"


def party_organization(world: World, party: RelyingParty) -> Organization:
    with world.read_only_services() as services:
        client = services.applications.find_client(party.client_id)
    assert client is not None
    return client.organization


def test_requested_organization_branding_applies(
    world: World, api: ApiClient, party: RelyingParty, of_organization: str
) -> None:
    tenant = world.make_organization()
    with world.transaction_services() as services:
        services.branding.change(tenant, ChangeBranding.build(display_name="Tenant"), principal=Principal.OPERATOR)
    api.patch(of_organization, {"display_name": "Acme"})
    page = sign_in_page(world, party, scope=f"openid urn:service:iam:org:id:{tenant.id}")
    assert page.html.find(class_="brand").text.strip() == "Tenant"
    # The sign-in target is the application's organization, not the requested one.
    assert tenant.name not in page.html.find(class_="login__target").p.text
    assert "Tenant" not in page.html.find(class_="login__target").p.text


def test_one_time_link_page_uses_organization_branding(
    world: World, api: ApiClient, organization: Organization, of_organization: str
) -> None:
    api.patch(of_organization, {"display_name": "Acme", "accent": "#0b5a3c"})
    person = world.make_human_user(organization)
    with world.transaction_services() as services:
        link = services.passwords.issue_reset_link(person.id)
    world.client.secrets.add(link.rpartition("/")[2])
    page = Browser(world).open(link)
    assert page.html.find(class_="brand").text.strip() == "Acme"
    assert style_of(page)
    assert "Acme" not in Browser(world).open("/password/reset")


def test_sign_out_page_uses_application_branding(
    world: World, api: ApiClient, organization: Organization, party: RelyingParty, of_application: str
) -> None:
    api.patch(of_application, {"display_name": "Bills"})
    browser = Browser(world)
    browser.start_session(world.make_human_user(organization))
    url = world.client.discovery["end_session_endpoint"]
    page = browser.open(f"{url}?client_id={party.client_id}", initiator=party.origin)
    assert page.html.find(class_="brand").text.strip() == "Bills"
    assert "Bills asks to sign you out." in page.html.find("main").text


HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7331*1337 }}</title>"


def test_hostile_texts_are_escaped(world: World, api: ApiClient, party: RelyingParty, of_organization: str) -> None:
    api.patch(
        of_organization,
        {
            "display_name": HOSTILE,
            "login_title": {"en": HOSTILE},
            "logo": LOGO,
            "support": "https://a.example/&quot;",
        },
    )
    page = sign_in_page(world, party)
    assert page.html.h1.text == HOSTILE
    assert page.html.select_one(".brand img")["alt"] == HOSTILE
    assert not page.html.select("img[onerror]")
    assert all(item.get("src") and not item.text for item in page.html.find_all("script"))
    assert "9801547" not in page


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.every_storage
def test_logo_has_media_type_and_strict_policy(
    world: World, api: ApiClient, party: RelyingParty, of_organization: str
) -> None:
    api.patch(of_organization, {"logo": LOGO})
    path = logo_of(sign_in_page(world, party))
    answer = served(world, path)
    assert (answer.status_int, answer.content_type) == (200, "image/svg+xml")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "Set-Cookie" not in answer.headers
    assert b"onload" not in answer.body
    again = world.client.get(world.identity.settings.login_url + path, {"If-None-Match": answer.headers["ETag"]})
    assert (again.status_int, again.body) == (304, b"")
    # Another logo has another URL, and the previous URL is not found.
    image = io.BytesIO()
    Image.new("RGB", (90, 30), "navy").save(image, "PNG")
    api.patch(of_organization, {"logo": base64.b64encode(image.getvalue()).decode()})
    other = logo_of(sign_in_page(world, party))
    assert served(world, path).status_int == 404
    assert served(world, other).content_type == "image/webp"
    api.patch(of_organization, {"logo": ""})
    assert served(world, other).status_int == 404
    assert logo_of(sign_in_page(world, party)) == ""


def test_style_sheet_holds_colours_only(
    world: World, api: ApiClient, party: RelyingParty, of_organization: str
) -> None:
    api.patch(of_organization, {"accent": "#0B5A3C"})
    path = style_of(sign_in_page(world, party))
    answer = served(world, path)
    assert (answer.status_int, answer.content_type) == (200, "text/css")
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "--color-accent: #0b5a3c;" in answer.text
    assert re.sub(r"--color-[a-z-]+: #[0-9a-f]{6};", "", answer.text).split() == [
        *(":root", "{", "}", "@media", "(prefers-color-scheme:", "dark)", "{", ":root", "{", "}", "}"),
    ]
    again = world.client.get(world.identity.settings.login_url + path, {"If-None-Match": answer.headers["ETag"]})
    assert again.status_int == 304


@pytest.mark.parametrize(
    "path",
    [
        "/branding/ffffff-000000-0000000000000000.css",
        "/branding/zzzzzz-000000-0000000000000000.css",
        "/branding/x.css",
        "/branding/%0a",
        "/branding/nobody/00000000000000000000000000000000.svg",
        "/branding/nobody/%00.svg",
        "/branding/../static/identity.css",
        "/preview/x.css",
        "/preview/ffffff-00000.css",
    ],
)
def test_unknown_branding_file_is_not_found(world: World, path: str) -> None:
    assert served(world, path).status_int == 404


# --- deletion, transfer, state files ----------------------------------------------------------------------------------


def test_light_and_dark_logos_belong_together(
    world: World, api: ApiClient, party: RelyingParty, of_organization: str, of_application: str
) -> None:
    api.patch(of_organization, {"logo": LOGO, "logo_dark": LOGO_DARK})
    source = sign_in_page(world, party).html.select_one("picture source")
    assert source["media"] == "(prefers-color-scheme: dark)"
    dark = served(world, source["srcset"].partition("?")[0])
    assert dark.status_int == 200
    assert b"onload" not in dark.body
    assert source["srcset"] != logo_of(sign_in_page(world, party))
    # An application's logo is not combined with the organization's dark logo.
    api.patch(of_application, {"logo": LOGO})
    assert not sign_in_page(world, party).html.select("picture")
    api.patch(of_application, {"logo": "", "logo_dark": LOGO_DARK})
    assert sign_in_page(world, party).html.select_one("picture source")["srcset"] == source["srcset"]
    # An invalid image is reported at its field.
    with world.transaction_services() as services:
        owner, command = services.organizations.get(of_organization.split("/")[2]), ChangeBranding(logo_dark="bm8=")
        with pytest.raises(Invalid) as refused:
            services.branding.change(owner, command, principal=Principal.OPERATOR)
    assert list(refused.value.fields) == ["logo_dark"]


@pytest.mark.every_storage
def test_branding_is_deleted_with_owner(
    world: World,
    api: ApiClient,
    owner: ServiceUserProgram,
    organization: Organization,
    party: RelyingParty,
    of_organization: str,
) -> None:
    api.patch(of_organization, {"logo": LOGO})
    api.patch(f"/applications/{party.client_id}/branding", {"logo": LOGO})
    name = logo_of(sign_in_page(world, party)).rpartition("/")[2]
    with world.transaction_services() as services:
        assert services.branding.find_logo(organization.id, name)
        assert services.branding.find_logo(party.client_id, name)
        services.organizations.remove(organization.id, principal=Principal.OPERATOR)
    with world.read_only_services() as services:
        assert services.branding.find_logo(organization.id, name) is None
        assert services.branding.find_logo(party.client_id, name) is None


def test_export_contains_branding(
    world: World, api: ApiClient, organization: Organization, of_organization: str
) -> None:
    api.patch(of_organization, {**ALL, "logo": LOGO, "logo_dark": LOGO_DARK})
    with world.read_only_services() as services:
        document = json.loads(
            "".join(OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR))
        )
    branding = api.get(of_organization)
    assert document["organization"]["branding"] == {name: branding[name] for name in EMPTY}


def test_state_file_sets_branding_once(world: World, organization: Organization) -> None:
    described = {
        "version": 1,
        "organizations": [
            {
                "name": organization.name,
                "id": organization.id,
                "branding": {**ALL, "logo": LOGO, "logo_dark": LOGO_DARK},
                "projects": [
                    {
                        "name": "Shop",
                        "applications": [{"name": "Shop", "type": "api", "branding": {"display_name": "Our shop"}}],
                    }
                ],
            }
        ],
    }
    with world.transaction_services() as services:
        first = apply_desired_state(services, parse_desired_state(described), principal=Principal.OPERATOR)
        assert [state_change.kind for state_change in first.state_changes if state_change.kind == "branding"] == [
            "branding"
        ] * 2
    with world.transaction_services() as services:
        assert (
            apply_desired_state(services, parse_desired_state(described), principal=Principal.OPERATOR).state_changes
            == ()
        )
        found = services.organizations.get(organization.id)
        assert services.branding.own_branding(found).login_title == ALL["login_title"]


def test_state_file_problems_name_their_path(world: World, organization: Organization) -> None:
    described = {
        "version": 1,
        "organizations": [
            {"name": organization.name, "id": organization.id, "branding": {"accent": "#ffcc00", "logo": "aGk="}}
        ],
    }
    with pytest.raises(Invalid) as refused, world.transaction_services() as services:
        apply_desired_state(services, parse_desired_state(described), principal=Principal.OPERATOR)
    assert set(refused.value.fields) == {f"organizations[0].branding.{name}" for name in ("accent", "logo")}


# --- concurrency ------------------------------------------------------------------------------------------------------


@pytest.mark.storages("postgresql")
def test_concurrent_branding_changes_are_atomic(
    world: World, api: ApiClient, organization: Organization, of_organization: str, party: RelyingParty
) -> None:
    colours, barrier = ("#0b5a3c", "#6d1247", "#2540ad", "#7a1f5c"), threading.Barrier(4)
    drawings = [DRAWING.replace(b"M0 0", f"M{number} 0".encode()) for number in range(4)]

    def change(number: int) -> tuple[int, int]:
        barrier.wait()
        members = {"accent": colours[number], "logo": base64.b64encode(drawings[number]).decode()}
        return number, api.ask("PATCH", of_organization, members).status_int

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(change, range(4)))
    done = {number for number, status in answers if status == 200}
    assert {status for _, status in answers} <= {200, 409}
    assert done
    branding = api.get(of_organization)
    winner = colours.index(branding["accent"])
    assert winner in done
    # Colour and logo come from the same change, and the logo is served.
    assert f"M{winner} 0".encode() in base64.b64decode(branding["logo"])
    assert served(world, logo_of(sign_in_page(world, party))).status_int == 200
    assert len(world.audit_events(event="branding.changed", object_id=organization.id)) == len(done)

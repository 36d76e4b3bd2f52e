"""Decisions, consent: users consent once to an application of another organization, and can revoke the consent."""

import json

import pytest

from identity.domain.applications import ConsentRule
from identity.services.commands.users import ChangeProfile
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error, check_inactive_token, check_oauth_error
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.consent_scenario import ConsentScenario

RESPONSE_TYPES = ("code", "id_token", "id_token token")
MANAGES = "can do everything on your behalf that you may do as a manager"


@pytest.fixture
def scene(world: World) -> ConsentScenario:
    return ConsentScenario(world)


def test_consent_page_names_application_and_scopes_once(scene: ConsentScenario) -> None:
    ours = "urn:service:iam:user:resourceowner urn:service:iam:org:projects:roles"
    authorization = scene.ask(f"openid email offline_access {ours}")
    assert scene.asks
    text = " ".join(scene.browser.page.html.main.get_text().split())
    for expected in (
        "Invoices & more requests access to your account.",
        f"Invoices & more belongs to {scene.owner.name}, {scene.owner.primary_domain}.",
        f"Invoices & more receives your email address, your organization, your roles in {scene.project.name}.",
        "Invoices & more stays connected until you disconnect it on your account page.",
    ):
        assert expected in text
    assert "urn:" not in text
    assert MANAGES not in text
    scene.decide()
    assert scene.party.obtain_tokens(scene.browser.page, authorization).claims["sub"] == scene.person.id
    for _ in range(2):
        scene.silently("openid email", prompt="none")
        scene.silently("openid email offline_access")


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
def test_nothing_is_issued_before_consent(scene: ConsentScenario, response_type: str) -> None:
    """OpenID Connect Core §3.1.2.6: consent_required if no page is allowed."""
    scene.refused("consent_required", response_type=response_type, prompt="none")
    authorization = scene.ask(response_type=response_type)
    assert scene.asks
    request_id = scene.browser.path.split("/")[2]
    scene.browser.open(f"/oauth/v2/authorize/{request_id}")
    assert scene.asks
    scene.decide()
    assert scene.party.obtain_tokens(scene.browser.page, authorization).claims["sub"] == scene.person.id


def test_additional_scopes_need_new_consent(scene: ConsentScenario) -> None:
    scene.agreed("openid email profile")
    for scope in ("openid", "openid profile", "openid email profile"):
        scene.silently(scope)
    scene.agreed("openid phone")
    scene.silently("openid email profile phone")
    scene.agreed("openid offline_access")
    relying_party = RelyingParty.register(scene.world, project_id=scene.project.id, consent=ConsentRule.WHEN_FOREIGN)
    scene.party = relying_party
    scene.agreed("openid")


#: Scope → claims that the application may receive, beside the subject.
KNOWN_BY: dict[str, set[str]] = {
    "openid": set(),
    "openid offline_access": set(),
    "openid phone address": set(),
    "openid email": {"email"},
    "openid profile": {"user name", "login name", "name"},
    "openid urn:service:iam:user:resourceowner": {"organization", "domain"},
    "openid email profile urn:service:iam:user:resourceowner": {
        "email", "user name", "login name", "name", "organization", "domain",
    },
}  # fmt: skip


@pytest.mark.sampled(12)
@pytest.mark.parametrize("format", ["opaque", "jwt"])
@pytest.mark.parametrize("scope", KNOWN_BY)
def test_claims_are_limited_to_consented_scopes(world: World, scope: str, format: str) -> None:
    """In every response and token: the page promises "receives only your account's identifier"."""
    scene = ConsentScenario(world, access_token_type=format, id_token_userinfo_assertion=True)
    world.operator_services.users.change_profile(scene.person.id, ChangeProfile(email="countess@ada.example"))
    authorization = scene.ask(scope)
    only_a_number = "receives only your account" in scene.browser.page.text
    assert only_a_number == (scope in ("openid", "openid offline_access"))
    scene.decide()
    tokens = scene.party.obtain_tokens(scene.browser.page, authorization)
    api = world.make_application(scene.project.id)
    claims = [
        json.dumps(tokens.claims),
        json.dumps(world.client.fetch_userinfo(tokens.access_token).json),
        *(
            json.dumps(world.client.introspect(tokens.access_token, credentials).json)
            for credentials in (scene.party.credentials, api)
        ),
        json.dumps(decode_jwt_unverified(tokens.access_token)[1]) if format == "jwt" else "",
    ]
    person, home = scene.person, scene.home
    names = {
        "email": "countess@ada.example",
        "user name": person.user_name,
        "login name": f"{person.user_name}@{home.primary_domain}",
        "name": "Lovelace",
        "organization": home.id,
        "domain": home.primary_domain,
    }
    found = {name for name, value in names.items() if value in "".join(claims).replace(scene.person.id, "")}
    by_login_name = {"domain"} if "login name" in found else set()
    assert found - by_login_name == KNOWN_BY[scope] - by_login_name


def test_dropped_scopes_need_no_consent(scene: ConsentScenario) -> None:
    scene.agreed("openid")
    scene.silently("openid unheard_of")


def test_consent_refusal_is_not_remembered(scene: ConsentScenario) -> None:
    """It does not revoke earlier consent, either."""
    for _ in range(2):
        scene.refused("access_denied", decision="refuse")
    scene.agreed("openid")
    scene.refused("access_denied", "openid phone", decision="refuse")
    scene.silently("openid")
    assert [event.event.partition(".")[2] for event in scene.events()] == ["refused", "given", "refused", "refused"]


@pytest.mark.parametrize("decision", [{}, {"decision": ""}, {"decision": "maybe"}])
def test_consent_form_without_decision_is_ignored(scene: ConsentScenario, decision: dict[str, str]) -> None:
    scene.ask()
    form = dict(scene.browser.find_form().submit_fields())
    scene.browser.post_form(scene.browser.path, {**form, **decision}, initiator=scene.browser.login_url)
    assert scene.asks
    assert scene.events() == []


def test_consent_is_bound_to_user(scene: ConsentScenario) -> None:
    """Another user, chosen in a second window, was not asked."""
    stranger = scene.world.make_human_user()
    scene.ask(prompt="consent")
    form = dict(scene.browser.find_form().submit_fields()) | {"account": stranger.id, "decision": "allow"}
    scene.browser.post_form(scene.browser.path, form, initiator=scene.browser.login_url)
    assert scene.asks
    assert scene.events() == []


def test_consent_covers_shown_scopes_only(scene: ConsentScenario) -> None:
    """If the application changes while the page is open, the page shows the new scopes and asks again."""
    scene.change(grant_types=frozenset({"authorization_code"}))
    authorization = scene.ask("openid offline_access")
    assert "stays connected" not in scene.browser.page.text
    scene.change(grant_types=frozenset({"authorization_code", "refresh_token"}))
    scene.decide()
    assert scene.asks
    assert "stays connected" in scene.browser.page.text
    assert scene.events() == []
    scene.decide()
    assert scene.party.obtain_tokens(scene.browser.page, authorization).scope == ["openid", "offline_access"]


def test_consent_follows_password(world: World) -> None:
    scene = ConsentScenario(world)
    scene.browser = Browser(world)
    login_name = set_password(world, scene.person)
    authorization = scene.ask()
    scene.browser.sign_in(login_name, PASSWORD)
    assert scene.asks
    assert login_name in scene.browser.page.text
    scene.decide()
    assert scene.party.obtain_tokens(scene.browser.page, authorization).claims["sub"] == scene.person.id
    [event] = scene.events()
    assert event.actor.id == scene.person.id


def test_account_page_lists_and_revokes_consent(scene: ConsentScenario) -> None:
    """Security 7.4: access and refresh tokens and codes end at once, and the next sign-in asks."""
    tokens = scene.agreed("openid email offline_access")
    authorization = scene.ask("openid email")
    code = scene.party.extract_code(scene.browser.page, authorization)
    listed = scene.browser.open("/account/applications").html.main.get_text()
    assert "Invoices & more" in listed
    assert "Your email address" in listed
    scene.disconnect()
    assert "Invoices & more" not in scene.browser.open("/account/applications").html.main.get_text()
    assert scene.world.client.fetch_userinfo(tokens.access_token).status_int == 401
    check_inactive_token(scene.world.client.introspect(tokens.access_token, scene.party.credentials))
    check_oauth_error(scene.party.refresh(tokens.refresh_token), "invalid_grant")
    check_oauth_error(scene.party.redeem(code, authorization), "invalid_grant")
    assert [event.event for event in scene.events()] == ["consent.withdrawn", "consent.given"]
    assert scene.events()[0].detail["scope"] == ["openid", "email", "offline_access"]
    scene.agreed("openid")


def test_consent_is_listed_after_tokens_expire(scene: ConsentScenario) -> None:
    scene.agreed("openid email")
    scene.world.clock.advance(days=100)
    scene.browser.start_session(scene.person)
    assert "Invoices & more" in scene.browser.open("/account/applications").html.main.get_text()
    scene.disconnect()
    scene.agreed("openid")


def test_user_manager_lists_and_revokes_consent(scene: ConsentScenario) -> None:
    """Needs the permission for sessions. The event names the manager."""
    world = scene.world
    tokens = scene.agreed("openid email offline_access")
    robot = world.make_service_user_program(scene.home)
    world.assign_manager_role(robot, "ORG_USER_MANAGER")
    api = ApiClient.for_user(robot)
    path = f"/users/{scene.person.id}/connections"
    [row] = api.list(path)
    listed = {name: row[name] for name in ("id", "application", "organization", "scope", "offline")}
    assert listed == {
        "id": scene.party.client_id,
        "application": "Invoices & more",
        "organization": scene.owner.name,
        "scope": ["openid", "email", "offline_access"],
        "offline": True,
    }
    higher = world.assign_manager_role(scene.person, "ORG_OWNER")
    check_api_error(api.ask("DELETE", f"{path}/{row['id']}"), 403, "forbidden")
    world.operator_services.managers.remove(higher.id)
    api.delete(f"{path}/{row['id']}")
    assert api.list(path) == []
    check_inactive_token(world.client.introspect(tokens.access_token, scene.party.credentials))
    check_oauth_error(scene.party.refresh(tokens.refresh_token), "invalid_grant")
    scene.ask()
    assert scene.asks
    check_api_error(api.ask("DELETE", f"{path}/{row['id']}"), 404, "not_found")
    assert world.audit_events(event="consent.withdrawn")[0].actor.id == robot.id


def test_console_lists_and_revokes_consent(scene: ConsentScenario) -> None:
    scene.agreed("openid email")
    manager = scene.world.make_human_user(scene.home)
    scene.world.assign_manager_role(manager, "ORG_USER_MANAGER")
    console = Browser(scene.world)
    console.start_session(manager)
    console.open(f"/console/users/{scene.person.id}/sessions")
    assert scene.owner.name in console.page.html.select_one("#connections").get_text()
    console.click("Disconnect … Invoices & more")
    page = console.submit()
    assert "The application is disconnected." in page
    assert "No application has access to the account." in page
    scene.ask()
    assert scene.asks


def test_consent_of_other_user_does_not_count(scene: ConsentScenario) -> None:
    scene.agreed()
    scene.person = scene.world.make_human_user(scene.home)
    scene.browser = Browser(scene.world)
    scene.browser.start_session(scene.person)
    scene.agreed()

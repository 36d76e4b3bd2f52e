"""Service description §4.2: responses of the authorization endpoint, their destination and their format."""

from dataclasses import replace
from typing import Any

import pytest

from identity.domain.applications import ApplicationType
from identity.domain.users import HumanUser, TokenFormat
from identity.provider.endpoints import authorization
from identity.services.commands.projects import ChangeProject
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.world import World

pytestmark = pytest.mark.every_storage

CODE, ID_TOKEN, TOKEN = "code", "id_token", "id_token token"

#: The response modes that each type may use.
DELIVERIES = [
    (CODE, None),
    (CODE, "query"),
    (CODE, "fragment"),
    (CODE, "form_post"),
    (ID_TOKEN, None),
    (ID_TOKEN, "fragment"),
    (ID_TOKEN, "form_post"),
    (TOKEN, None),
    (TOKEN, "fragment"),
    (TOKEN, "form_post"),
]

#: Values of state that no sensible client would send.
ODD_STATES = [
    "0",
    "a b+c",
    "  spaces around  ",
    "\n\t",
    "a=b&code=stolen&state=other#fragment?x",
    "%41%2B%00%zz",
    '"quoted" <script>alert(1)</script> \'&amp;\\',
    "line\r\nSet-Cookie: a=b",
    "tab\tand\x7fdelete",
    "ünïcödé ☃ \U0001f511",
    '{"return_to": "/a?b=c&d=e", "n": [1, 2]}',
    "x" * 2048,
]


@pytest.mark.shows("4.2.1")
def test_endpoint_exists_on_login_host_only(three_host_world: World) -> None:
    """It shares the cookie domain of the login pages."""
    address = three_host_world.client.discovery["authorization_endpoint"]
    assert address == "https://login.example.com/oauth/v2/authorize"
    for host in ("https://id.example.com", "https://api.example.com"):
        assert three_host_world.client.get(f"{host}/oauth/v2/authorize").status_int == 404


@pytest.mark.shows("4.2.2", "4.2.19")
def test_code_response_has_state_and_issuer(browser: Browser, party: RelyingParty) -> None:
    """``read`` checks state, iss (RFC 9207), no-store and no-referrer."""
    sent_authorization_request = party.new_request()
    answer = browser.open(sent_authorization_request.url, initiator=party.origin)
    members = party.check_response(answer, sent_authorization_request)
    assert set(members) == {"code"}
    assert len(members["code"]) >= 43
    assert answer.body == b""
    assert browser.external_redirect is not None


def test_response_without_requested_state_has_none(browser: Browser, party: RelyingParty) -> None:
    for state in (None, ""):
        sent_authorization_request = party.new_request(state=state)
        answer = browser.open(sent_authorization_request.url)
        assert "state" not in answer.headers["Location"]


def test_each_response_has_new_code(browser: Browser, party: RelyingParty) -> None:
    sent_authorization_request = party.new_request()
    first, second = (
        party.extract_code(browser.open(sent_authorization_request.url), sent_authorization_request) for _ in range(2)
    )
    assert first != second
    for code in (first, second):
        assert party.redeem(code, sent_authorization_request).status_int == 200


@pytest.mark.shows("4.2.20")
def test_response_type_id_token_has_no_access_token(browser: Browser, party: RelyingParty, person: HumanUser) -> None:
    """access_token is returned only if the response type includes token."""
    sent_authorization_request = party.new_request(ID_TOKEN)
    answer = browser.open(sent_authorization_request.url)
    tokens = party.obtain_tokens(answer, sent_authorization_request)
    assert set(tokens.members) == {"id_token", "token_type", "expires_in", "scope"}
    assert tokens.claims["sub"] == person.id
    assert "at_hash" not in tokens.claims


@pytest.mark.shows("4.2.2", "4.2.20")
def test_response_type_id_token_token_has_both(browser: Browser, party: RelyingParty, person: HumanUser) -> None:
    """Security 4.6: tokens in the fragment, at_hash present, no refresh token."""
    tokens = party.sign_in_silently(browser, TOKEN, "openid offline_access profile")
    assert set(tokens.members) == {"id_token", "access_token", "token_type", "expires_in", "scope"}
    assert tokens.members["token_type"] == "Bearer"
    assert tokens.members["expires_in"] == "3600"
    assert tokens.claims["at_hash"]
    assert party.fetch_userinfo(tokens)["sub"] == person.id


@pytest.mark.shows("2.4.5")
def test_response_scope_may_differ_from_request(browser: Browser, party: RelyingParty) -> None:
    assert party.sign_in_silently(browser, TOKEN, "openid unheard_of email").scope == ["openid", "email"]


def test_access_token_uses_application_format_and_lifetime(world: World, browser: Browser) -> None:
    party = RelyingParty.register(
        world, access_token_type=TokenFormat.JWT, access_token_lifetime=600, id_token_lifetime=900
    )
    tokens = party.sign_in_silently(browser, TOKEN)
    assert tokens.members["expires_in"] == "600"
    assert decode_jwt_unverified(tokens.access_token)[0]["typ"] == "at+jwt"
    assert tokens.claims["exp"] - tokens.claims["iat"] == 900


@pytest.mark.shows("2.7.3")
def test_id_token_beside_access_token_omits_claims(world: World, browser: Browser, person: HumanUser) -> None:
    """Service description §2.7, and its exception: the option "User Info inside ID Token"."""
    reticent, telling = RelyingParty.register(world), RelyingParty.register(world, id_token_userinfo_assertion=True)
    for party, response_type, expected in (
        (reticent, ID_TOKEN, True),
        (reticent, TOKEN, False),
        (reticent, CODE, False),
        (telling, TOKEN, True),
        (telling, CODE, True),
    ):
        claims = party.sign_in_silently(browser, response_type, "openid profile").claims
        assert claims.get("preferred_username") == (person.user_name if expected else None), (response_type, expected)


def test_response_mode_is_honored(browser: Browser, party: RelyingParty, person: HumanUser) -> None:
    for response_type, mode in DELIVERIES:
        assert party.sign_in_silently(browser, response_type, response_mode=mode).claims["sub"] == person.id


@pytest.mark.shows("4.2.21")
def test_error_response_mode_is_honored(browser: Browser, party: RelyingParty) -> None:
    for response_type, mode in DELIVERIES:
        party.expect_error_at_once(browser, "invalid_scope", response_type, "profile", response_mode=mode)


@pytest.mark.shows("4.2.17")
@pytest.mark.parametrize("mode", ["query", "fragment", "form_post"])
def test_state_is_returned_unmodified(browser: Browser, party: RelyingParty, mode: str) -> None:
    """``read`` reports a duplicate parameter, so the state cannot inject another one."""
    for state in ODD_STATES:
        sent_authorization_request = party.new_request(response_mode=mode, state=state)
        answer = browser.open(sent_authorization_request.url)
        assert set(party.check_response(answer, sent_authorization_request)) == {"code"}
        assert "Set-Cookie" not in answer.headers
        party.expect_error_at_once(browser, "invalid_scope", scope="profile", response_mode=mode, state=state)


def test_tokens_never_travel_in_a_query(browser: Browser, party: RelyingParty) -> None:
    """Decisions, authorization endpoint: query mode with tokens is invalid_request, returned in the fragment."""
    for response_type in (ID_TOKEN, TOKEN):
        party.expect_error_at_once(browser, "invalid_request", response_type, response_mode="query", mode="fragment")


def test_unknown_response_mode_error_uses_default_mode(browser: Browser, party: RelyingParty) -> None:
    for response_type, default in ((CODE, "query"), (TOKEN, "fragment")):
        for mode in ("post", "QUERY", "query fragment", "query.jws", "web_message", "x" * 3000):
            party.expect_error_at_once(browser, "invalid_request", response_type, response_mode=mode, mode=default)


def test_form_post_page_works_without_script_and_carries_no_form_action(browser: Browser, party: RelyingParty) -> None:
    """Security 11.2: browsers would apply form-action to the application's own redirects."""
    sent_authorization_request = party.new_request(response_mode="form_post", state='"><script>alert(1)</script>')
    answer = browser.open(sent_authorization_request.url)
    page = check_page(answer)
    assert "form-action" not in answer.headers["Content-Security-Policy"]
    (form,) = page.find_all("form")
    assert form.find("button", type="submit")
    assert not form.find("button").has_attr("name")
    assert "alert(1)" not in "".join(script.get_text() for script in page.find_all("script"))
    assert all(script.has_attr("src") for script in page.find_all("script"))


def test_response_types_are_compared_as_sets(browser: Browser, party: RelyingParty, person: HumanUser) -> None:
    """OAuth 2.0 Multiple Response Types §3: the order does not matter."""
    for written in ("id_token token", "token id_token", "token  id_token", " id_token token "):
        assert party.sign_in_silently(browser, written).claims["sub"] == person.id


def test_application_response_types_are_sets(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, response_types=["token id_token"])
    assert party.sign_in_silently(browser, TOKEN).access_token


@pytest.mark.shows("7.3")
@pytest.mark.parametrize("response_type", [CODE, ID_TOKEN, TOKEN])
def test_disabled_response_type_is_refused(world: World, browser: Browser, response_type: str) -> None:
    """Service description §7: unauthorized_client."""
    party = RelyingParty.register(world, response_types={CODE, ID_TOKEN, TOKEN} - {response_type})
    party.expect_error_at_once(browser, "unauthorized_client", response_type)


@pytest.mark.parametrize("type_", [ApplicationType.WEB, ApplicationType.BROWSER])
def test_no_response_type_is_enabled_by_default(world: World, browser: Browser, type_: ApplicationType) -> None:
    """Decisions: the implicit flow is off by default."""
    party = RelyingParty.register(world, type=type_, response_types=())
    for response_type in (ID_TOKEN, TOKEN):
        party.expect_error_at_once(browser, "unauthorized_client", response_type)


@pytest.mark.shows("7.4")
def test_unsupported_response_type_is_refused(browser: Browser, party: RelyingParty) -> None:
    """Service description §7; the error is in the fragment if the type would have returned tokens there."""
    for response_type in ("token", "none", "CODE", "code code2", "code none"):
        party.expect_error_at_once(browser, "unsupported_response_type", response_type)


def test_other_methods_have_no_effect(world: World, browser: Browser, party: RelyingParty) -> None:
    """RFC 9110 §9.3.2: a HEAD request issues no code and starts no sign-in."""
    for method in ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
        headers = {"Cookie": browser.cookies.header(browser.login_url, world.clock())}
        for sent_authorization_request in (party.new_request(), party.new_request(prompt="login")):
            answer = world.client.request(method, sent_authorization_request.url, headers=headers)
            assert answer.status_int == 405
            assert "Location" not in answer.headers
            assert "Set-Cookie" not in answer.headers


def test_method_not_allowed_lists_methods(world: World, party: RelyingParty) -> None:
    """RFC 9110 §15.5.6."""
    for url in (party.new_request().url, party.logout_url()):
        assert world.client.request("PUT", url).headers.get("Allow") == "GET, POST"


@pytest.mark.shows("4.2.7", "5.3.1")
def test_client_credentials_are_ignored(world: World, party: RelyingParty) -> None:
    """Service description §5.3: client authentication does not authenticate a user."""
    sent_authorization_request = party.new_request(prompt="none", client_secret=party.secret)
    robot = world.make_service_user_program()
    for header in (party.credentials.header, f"Bearer {robot.access_token()}"):
        answer = world.client.get(sent_authorization_request.url, {"Authorization": header})
        party.check_error_response(answer, sent_authorization_request, "login_required")


def test_codes_name_browser_session(world: World, party: RelyingParty, person: HumanUser) -> None:
    """``sid`` in ID tokens identifies the browser's session, not the user's."""
    session_ids = []
    for _ in range(2):
        browser = Browser(world)
        session = browser.start_session(person)
        for response_type in (CODE, TOKEN):
            assert party.sign_in_silently(browser, response_type).claims["sid"] == session.id
        session_ids.append(session.id)
    assert len(set(session_ids)) == 2


def test_used_session_stays_alive(world: World, browser: Browser, party: RelyingParty) -> None:
    """Decisions, lifetimes: 12 h idle, 7 days absolute."""
    for _ in range(14):
        world.clock.advance(hours=11, minutes=59)
        party.sign_in_silently(browser, prompt="none")
    world.clock.advance(minutes=14 - 1)
    party.sign_in_silently(browser, prompt="none")
    world.clock.advance(minutes=1)
    party.expect_error_at_once(browser, "login_required", prompt="none")


def test_idle_session_ends(world: World, browser: Browser, party: RelyingParty) -> None:
    world.clock.advance(hours=12)
    party.expect_error_at_once(browser, "login_required", prompt="none")


def test_deactivated_user_is_not_signed_in(
    world: World, browser: Browser, party: RelyingParty, person: HumanUser
) -> None:
    """Security 7.4: from the next request on, on every node; also if the organization is deactivated."""
    party.sign_in_silently(browser, prompt="none")
    world.operator_services.organizations.deactivate(person.organization_id)
    party.expect_error_at_once(browser, "login_required", prompt="none")
    world.operator_services.organizations.reactivate(person.organization_id)
    party.sign_in_silently(browser, prompt="none")
    world.operator_services.storage.users.update(replace(person, active=False, version=person.version + 1))
    party.expect_error_at_once(browser, "login_required", prompt="none")


@pytest.mark.parametrize("service", ["applications", "projects", "organizations"])
def test_deactivated_application_looks_unknown(
    world: World, browser: Browser, party: RelyingParty, service: str
) -> None:
    """Pages §4.3: one page for both, so that they are indistinguishable."""
    application = world.operator_services.applications.get(party.client_id)
    project = world.operator_services.projects.get(application.project_id)
    resource_id = {"applications": application.id, "projects": project.id, "organizations": project.organization_id}[
        service
    ]
    getattr(world.operator_services, service).deactivate(resource_id)
    pages = [
        check_page(browser.open(authorization.url), 400, "This application is unknown").main.get_text()
        for authorization in (party.new_request(), party.new_request(client_id="0" * 32))
    ]
    assert application.name not in pages[0]
    assert [page.partition("Request id")[0] for page in pages] == [pages[0].partition("Request id")[0]] * 2


def test_role_check_refuses_user_without_role(world: World, browser: Browser, person: HumanUser) -> None:
    """Decisions, namespaces: access_denied."""
    project = world.make_project()
    party = RelyingParty.register(world, project_id=project.id)
    world.operator_services.projects.change(project.id, ChangeProject(check_roles=True))
    party.expect_error_at_once(browser, "access_denied")


def test_storage_outage_is_reported_to_client(
    world: World, browser: Browser, party: RelyingParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Security 9.5: the redirect URI is known by then; the cause is not disclosed."""
    from identity.services.sessions import SessionService
    from identity.storage.errors import StorageUnavailable

    def away(*args: object) -> None:
        raise StorageUnavailable("db.internal:5432")

    sent_authorization_request = party.new_request()
    with monkeypatch.context() as patch:
        patch.setattr(SessionService, "list_by_secrets", away)
        answer = browser.open(sent_authorization_request.url)
        description = party.check_error_response(answer, sent_authorization_request, "temporarily_unavailable")
        assert "internal" not in description
    with monkeypatch.context() as patch:
        patch.setattr(world.identity.backend, "join_transaction", away)
        patch.setattr(world.identity.backend, "read_session", away)
        page = check_page(browser.open(sent_authorization_request.url), 503)
        assert "internal" not in page.get_text()
    party.extract_code(browser.open(sent_authorization_request.url), sent_authorization_request)


@pytest.mark.shows("7.5")
def test_unexpected_error_is_reported_to_client(
    browser: Browser, party: RelyingParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Service description §7: server_error."""

    def fail(*args: object, **kwargs: object) -> Any:
        raise RuntimeError("db.internal:5432")

    sent_authorization_request = party.new_request()
    with monkeypatch.context() as patch:
        patch.setattr(authorization, "build_consent_summary", fail)
        answer = browser.open(sent_authorization_request.url)
    assert "internal" not in party.check_error_response(answer, sent_authorization_request, "server_error")
    party.extract_code(browser.open(sent_authorization_request.url), sent_authorization_request)


def test_authorization_refusals_are_audited_once_a_minute(world: World, browser: Browser, party: RelyingParty) -> None:
    """Decisions, tokens: once a minute for the same application and reason; a required page is no refusal."""

    def events() -> list[Any]:
        return [
            event for event in world.audit_events() if event.object_id == party.client_id and event.reason is not None
        ]

    quiet = party.new_request(prompt="none")
    party.check_error_response(Browser(world).open(quiet.url), quiet, "login_required")
    assert events() == []
    for _ in range(3):
        browser.open(party.new_request(scope="profile").url)
        browser.open(party.new_request(redirect_uri="https://evil.example/cb").url)
    assert {(event.event, event.reason) for event in events()} == {
        ("authorization.refused", "scope must include openid"),
        ("authorization.refused", "redirect_uri is not registered for this application"),
    }
    assert len(events()) == 2
    world.clock.advance(minutes=1)
    browser.open(party.new_request(scope="profile").url)
    assert len(events()) == 3

"""The test of a provider in the console: checks of its settings, and the trial sign-in."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.domain.upstream_providers import UpstreamAuthentication, UpstreamKind
from identity.domain.users import HumanUser
from identity.outbound_http import ForbiddenDestination, OutboundResponse
from identity.services.access_control import Principal
from identity.services.lookup import Lookup
from identity.testing.browser import Browser
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.fake_provider import CLIENT_ID, ISSUER, SECRET

CHECK, TRY, TURN_ON = ("action", "check"), ("action", "try"), ("action", "activate")
DISCOVERY = "/.well-known/openid-configuration"


def manager_browser(scene: UpstreamScenario, role: str = "ORG_OWNER") -> Browser:
    manager = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(manager, role, resource=Resource.INSTANCE if role == "IAM_OWNER" else None)
    browser = Browser(scene.world)
    browser.start_session(manager)
    return browser


def page_path(scene: UpstreamScenario) -> str:
    return f"/console/upstream-providers/{scene.provider.id}/test"


def results(page: Any) -> dict[str, str]:
    """The title of each result with its state."""
    found = {}
    for item in page.html.select("ul.feed > li"):
        title = item.select_one(".table__name").parent.text.partition(":")[2].strip()
        found[title] = item["class"][-1].removeprefix("sign--").removeprefix("is-")
    return found


def run_checks(scene: UpstreamScenario, browser: Browser | None = None) -> dict[str, str]:
    browser = browser or manager_browser(scene)
    browser.open(page_path(scene))
    page = browser.submit(form="page-form", button=CHECK)
    assert page.status_int == 200
    return results(page)


def try_sign_in(scene: UpstreamScenario, browser: Browser | None = None) -> Any:
    browser = browser or manager_browser(scene)
    browser.open(page_path(scene))
    browser.submit(form="page-form", button=TRY)
    return browser.open(scene.fake_provider.approve(str(browser.external_redirect)), initiator=ISSUER)


# --- checks ----------------------------------------------------------------------------------------------------------


def test_provider_checks_pass(scene: UpstreamScenario) -> None:
    scene.fake_provider.secret = SECRET
    scene.fake_provider.metadata = {"scopes_supported": ["openid", "profile", "email"]}
    assert run_checks(scene) == {
        "The provider answers": "ok",
        "The issuer matches": "ok",
        "Its signing keys are readable": "ok",
        "It supports the scopes": "ok",
        "Client id and secret are accepted": "ok",
    }


@pytest.mark.parametrize(
    "method", [UpstreamAuthentication.CLIENT_SECRET_BASIC, UpstreamAuthentication.CLIENT_SECRET_POST]
)
def test_provider_check_notices_wrong_secret(scene: UpstreamScenario, method: UpstreamAuthentication) -> None:
    scene.fake_provider.secret = "another"
    scene.change(authentication=method)
    assert run_checks(scene)["Client id or secret are refused"] == "bad"
    scene.fake_provider.secret = SECRET
    assert run_checks(scene)["Client id and secret are accepted"] == "ok"


@pytest.mark.parametrize(
    ("status", "body", "title"),
    [
        (400, {"error": "invalid_grant"}, "Client id and secret are accepted"),
        (400, {"error": "unauthorized_client"}, "Client id or secret are refused"),
        (401, {}, "Client id or secret are refused"),
        (400, {"error": "invalid_request"}, "It does not say whether it accepts the client"),
        (200, {"access_token": "for a made-up code"}, "It does not say whether it accepts the client"),
        (500, None, "It does not say whether it accepts the client"),
    ],
)
def test_provider_check_reads_token_errors(scene: UpstreamScenario, status: int, body: Any, title: str) -> None:
    text = b"<html>" if body is None else json.dumps(body).encode()
    scene.fake_provider.answers["/token"] = OutboundResponse(status, text)
    assert list(run_checks(scene))[-1] == title


@pytest.mark.parametrize(
    ("metadata", "title", "state"),
    [
        ({"issuer": "https://evil.example"}, "It has another issuer", "bad"),
        ({"issuer": None}, "It has another issuer", "bad"),
        ({"token_endpoint": "http://login.elsewhere.example/token"}, "Its configuration cannot be used", "bad"),
        ({"id_token_signing_alg_values_supported": ["HS256"]}, "Its configuration cannot be used", "bad"),
        ({"jwks_uri": "https://login.elsewhere.example/nothing"}, "Its signing keys cannot be used", "bad"),
        ({"id_token_signing_alg_values_supported": ["PS512"]}, "Its signing keys cannot be used", "bad"),
        ({"scopes_supported": ["openid"]}, "It does not list every scope", "warn"),
        ({"scopes_supported": "openid"}, "It does not say which scopes it supports", "warn"),
        (
            {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
            "It does not list the authentication method",
            "warn",
        ),
    ],
)
def test_provider_check_names_wrong_metadata(
    scene: UpstreamScenario, metadata: dict[str, Any], title: str, state: str
) -> None:
    scene.fake_provider.metadata = metadata
    found = run_checks(scene)
    assert found[title] == state
    assert ("Client id and secret are accepted" in found) is (state == "warn")


def test_provider_check_reads_metadata_anew(scene: UpstreamScenario) -> None:
    """What was mended at the provider counts at once, for sign-ins too."""
    run_checks(scene)
    scene.fake_provider.metadata = {"issuer": "https://evil.example"}
    assert run_checks(scene)["It has another issuer"] == "bad"
    scene.fake_provider.metadata = {"token_endpoint": f"{ISSUER}/new-token"}
    scene.fake_provider.answers["/new-token"] = OutboundResponse(400, b'{"error":"invalid_grant"}')
    assert run_checks(scene)["Client id and secret are accepted"] == "ok"


@pytest.mark.parametrize(
    "answer", [OutboundResponse(404, b""), OutboundResponse(200, b"<html>"), OutboundResponse(200, b"[]")]
)
def test_provider_check_needs_configuration(scene: UpstreamScenario, answer: OutboundResponse) -> None:
    scene.fake_provider.answers[DISCOVERY] = answer
    assert run_checks(scene) == {"There is no OpenID provider at this address": "bad"}


@pytest.mark.parametrize("role", ["ORG_OWNER", "IAM_OWNER"])
def test_provider_check_tells_of_private_addresses_to_instance_administrators(
    scene: UpstreamScenario, role: str
) -> None:
    browser, pages = manager_browser(scene, role), []
    for answer in (ForbiddenDestination("private"), OSError("unknown"), TimeoutError()):
        scene.fake_provider.answers[DISCOVERY] = answer
        assert run_checks(scene, browser) == {"The provider does not answer": "bad"}
        pages.append(browser.page.html.select_one("ul.feed").text)
    assert "TimeoutError" in pages[2]
    assert ("identity.outgoing_networks" in pages[0]) is (role == "IAM_OWNER")
    assert (pages[0] == pages[1]) is (role == "ORG_OWNER")


class GitHubTokens:
    """GitHub's token endpoint, which answers errors with 200."""

    answer = OutboundResponse(200, b"{}")

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: Any, seconds: Any) -> OutboundResponse:
        assert url == "https://github.com/login/oauth/access_token"
        return self.answer


@pytest.mark.parametrize(
    ("status", "error", "title"),
    [
        (200, "bad_verification_code", "Client id and secret are accepted"),
        (200, "incorrect_client_credentials", "Client id or secret are refused"),
        (200, "redirect_uri_mismatch", "The callback address is not registered there"),
        (404, "", "Client id or secret are refused"),
    ],
)
def test_provider_check_of_github(scene: UpstreamScenario, status: int, error: str, title: str) -> None:
    scene.provider = scene.world.make_upstream_provider(
        scene.organization, kind=UpstreamKind.GITHUB, issuer="", client_id=CLIENT_ID, client_secret=SECRET
    )
    transport = GitHubTokens()
    transport.answer = OutboundResponse(status, json.dumps({"error": error}).encode())
    scene.world.app.registry.upstream._http_client._transport = transport
    assert list(run_checks(scene)) == [title]


# --- trial sign-in ---------------------------------------------------------------------------------------------------


def test_trial_sign_in_shows_claims_and_changes_nothing(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {"given_name": "Ada", "department": ["<b>maths</b>"], "preferred_username": "ada"}
    browser = manager_browser(scene)
    before = len(scene.world.audit_events(organization_id=scene.organization.id))
    page = try_sign_in(scene, browser)
    assert page.status_int == 200
    assert "code=" not in browser.path
    assert "&lt;b&gt;maths&lt;/b&gt;" in page
    assert results(page)["You would get a new account"] == "ok"
    assert "with the user name ada" in page
    assert results(page)["No email address came"] == "warn"
    assert len(scene.world.audit_events(organization_id=scene.organization.id)) == before
    assert results(browser.open(page.request.path_qs)), "it can be loaded again"


def test_trial_sign_in_result_belongs_to_the_session(scene: UpstreamScenario) -> None:
    path = try_sign_in(scene).request.path_qs
    page = manager_browser(scene).open(path)
    assert page.status_int == 200
    assert "What came" not in page


def sign_in_for_real(scene: UpstreamScenario) -> HumanUser:
    authorization = scene.ask()
    claims = scene.party.obtain_tokens(scene.sign_in(), authorization).claims
    user = scene.world.operator_services.users.get(claims["sub"])
    assert isinstance(user, HumanUser)
    return user


def test_trial_sign_in_names_linked_account(scene: UpstreamScenario) -> None:
    user = sign_in_for_real(scene)
    page = try_sign_in(scene)
    assert results(page)["You would be signed in"] == "ok"
    assert f"{user.user_name}@" in page.html.find("main").text


def test_trial_sign_in_names_no_account_that_the_manager_may_not_read(
    scene: UpstreamScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny_users(_principal: Principal, permission: str, _resource: Resource, _lookup: Lookup) -> str | None:
        return "denied" if permission == "user.read" else None

    user = sign_in_for_real(scene)
    monkeypatch.setattr(scene.world.identity.process_state, "deny_hook", deny_users)
    page = try_sign_in(scene)
    assert results(page)["You would be signed in"] == "ok"
    assert f"{user.user_name}@" not in page.html.find("main").text


def test_trial_sign_in_refuses_as_a_sign_in_does(scene: UpstreamScenario) -> None:
    user = sign_in_for_real(scene)
    scene.world.operator_services.users.deactivate(user.id, principal=Principal.OPERATOR)
    assert results(try_sign_in(scene))["You would be refused"] == "bad"


def test_trial_sign_in_without_account_creation(scene: UpstreamScenario) -> None:
    scene.change(create_accounts=False)
    assert results(try_sign_in(scene))["You would be asked to sign in to link"] == "warn"


def test_trial_sign_in_explains_email(scene: UpstreamScenario) -> None:
    domain = scene.organization.primary_domain
    email = f"ada@{domain}"
    scene.fake_provider.claims = {"email": email}
    assert results(try_sign_in(scene))["The email address is not verified there"] == "warn"
    scene.fake_provider.claims = {"email": email, "email_verified": True}
    assert results(try_sign_in(scene))["The email address does not count as verified"] == "warn"
    scene.change(trust_email=True)
    assert results(try_sign_in(scene))["The email address counts as verified"] == "ok"
    scene.fake_provider.claims = {"email": "ada@elsewhere.example", "email_verified": True}
    assert results(try_sign_in(scene))["The email address does not count as verified"] == "warn"


def test_trial_sign_in_explains_invalid_id_token(scene: UpstreamScenario) -> None:
    browser = manager_browser(scene)
    browser.open(page_path(scene))
    browser.submit(form="page-form", button=TRY)
    scene.fake_provider.claims = {"aud": "somebody-else"}
    page = browser.open(scene.fake_provider.approve(str(browser.external_redirect)), initiator=ISSUER)
    assert "The reason: the ID token is for somebody else." in page


def test_trial_sign_in_state_belongs_to_the_session_and_works_once(scene: UpstreamScenario) -> None:
    browser = manager_browser(scene)
    browser.open(page_path(scene))
    browser.submit(form="page-form", button=TRY)
    back = scene.fake_provider.approve(str(browser.external_redirect))
    assert manager_browser(scene).open(back, initiator=ISSUER).status_int == 400
    assert browser.open(back, initiator=ISSUER).status_int == 200
    assert browser.open(back, initiator=ISSUER).status_int == 400


# --- drafts and rights -----------------------------------------------------------------------------------------------


def test_draft_can_be_tested_and_turned_on_but_not_used(scene: UpstreamScenario) -> None:
    scene.ask()
    back = scene.fake_provider.approve(scene.go())
    scene.world.operator_services.upstream_providers.deactivate(scene.provider.id, principal=Principal.OPERATOR)
    assert scene.back(back).status_int == 400
    browser = manager_browser(scene)
    assert run_checks(scene, browser)["Client id and secret are accepted"] == "ok"
    assert "You would get a new account" in results(try_sign_in(scene, browser))
    scene.ask()
    assert scene.button not in scene.browser.page
    assert "Identity provider reactivated" in browser.submit(form="page-form", button=TURN_ON)
    assert scene.world.operator_services.upstream_providers.get(scene.provider.id).active
    scene.ask()
    assert scene.button in scene.browser.page


def test_provider_without_secret_cannot_be_tested(scene: UpstreamScenario) -> None:
    scene.provider = scene.world.make_upstream_provider(scene.organization, issuer=ISSUER, client_secret=None)
    browser = manager_browser(scene)
    for button in (CHECK, TRY):
        browser.open(page_path(scene))
        assert browser.submit(form="page-form", button=button).status_int == 422
    assert not scene.fake_provider.requests


def test_provider_test_requires_write_permission(scene: UpstreamScenario) -> None:
    browser = manager_browser(scene, "ORG_OWNER_VIEWER")
    page = browser.open(f"/console/upstream-providers/{scene.provider.id}")
    assert "Test" not in [item.text for item in page.html.select("main a")]
    assert browser.open(page_path(scene)).status_int == 403


def test_provider_of_the_instance_is_tested_by_instance_administrators(scene: UpstreamScenario) -> None:
    scene.change(instance_managed=True)
    assert manager_browser(scene).open(page_path(scene)).status_int == 403
    assert manager_browser(scene, "IAM_OWNER").open(page_path(scene)).status_int == 200

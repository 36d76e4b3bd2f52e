"""The tab Try it: the checks of the authorization endpoint and the tokens that would follow, without issuing any."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from identity.domain.applications import Application, ApplicationType
from identity.domain.organizations import Organization
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import pkce_challenge
from identity.testing.world import CALLBACK_URI, World


@pytest.fixture
def application(world: World, organization: Organization) -> Application:
    return _register(world, organization)


def _register(world: World, organization: Organization) -> Application:
    client_id = world.make_web_application(world.make_project(organization).id).client_id
    with world.read_only_services() as services:
        return services.applications.get(client_id)


def _try(browser: Browser, application: Application, request: str, user: str = "") -> Browser:
    query = urlencode({"request": request, "user_id": user})
    browser.open(f"/console/applications/{application.id}/try-it?{query}")
    return browser


def _example(browser: Browser, application: Application) -> str:
    page = browser.open(f"/console/applications/{application.id}/try-it")
    return str(page.html.select_one("textarea[name=request]").text.strip())


def test_example_request_is_accepted_and_answered(
    world: World, owner: Browser, organization: Organization, application: Application
) -> None:
    person = world.make_human_user(organization)
    request = _example(owner, application)
    html = _try(owner, application, request, person.id).page.html
    assert "The request is accepted" in html.find(id="check").text
    answer = html.find(id="answer-text").text
    assert answer.startswith(CALLBACK_URI)
    assert dict(parse_qsl(urlsplit(answer).query)).keys() == {"code", "state", "iss"}
    verifier = html.find(id="redeem-text").text.partition("code_verifier=")[2]
    assert dict(parse_qsl(urlsplit(request).query))["code_challenge"] == pkce_challenge(verifier.strip())
    assert person.id in html.find(id="way-1").text


def test_request_that_has_to_be_pushed_is_not_accepted(
    world: World, owner: Browser, organization: Organization
) -> None:
    """The endpoint refuses the address; the rest of the page is about the pushed request."""
    application, _ = world.register_application(
        world.make_project(organization).id,
        type=ApplicationType.WEB,
        redirect_uris=(CALLBACK_URI,),
        require_pushed_authorization_requests=True,
        authentication_method="private_key_jwt",
        required_sender_constraint="dpop",
    )
    html = _try(owner, application, _example(owner, application)).page.html
    check = html.find(id="check").text
    assert "The request is accepted" not in check
    assert "has to push its authorization requests" in check
    assert "code=CODE" in html.find(id="answer-text").text
    command = html.find(id="redeem-text").text
    assert all(item in command for item in (f"client_id={application.id}", "client_assertion=", "DPoP: "))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"redirect_uri": "https://evil.example/"}, "redirect_uri is not registered"),
        ({"scope": "profile"}, "openid"),
        ({"response_type": "nonsense"}, "response_type must be one of"),
        ({"code_challenge_method": "plain"}, "code_challenge_method must be S256"),
    ],
)
def test_mistakes_are_explained(
    owner: Browser, application: Application, changes: dict[str, str], expected: str
) -> None:
    values = dict(parse_qsl(urlsplit(_example(owner, application)).query)) | changes
    html = _try(owner, application, urlencode(values)).page.html
    assert expected in html.find(id="check").text
    answer = html.find(id="answer-text")
    if "redirect_uri" in changes:
        assert answer is None, "nothing is sent to an address that is not registered"
    else:
        assert "error=" in answer.text
    assert html.find(id="way-0") is None


def test_requests_of_others_and_answers_are_not_tried(
    world: World, owner: Browser, organization: Organization, application: Application
) -> None:
    other = _register(world, organization)
    for request in (_example(owner, other), f"{CALLBACK_URI}?code=secret-code&state=x", "", "x" * 5000):
        page = _try(owner, application, request).page
        assert page.status_int == 422
        assert page.html.find(id="check") is None


def test_nothing_is_stored_or_audited(
    world: World, owner: Browser, organization: Organization, application: Application
) -> None:
    request, person = _example(owner, application), world.make_human_user(organization)
    with world.read_only_services() as services:
        before = services.storage.audit.page().items
    _try(owner, application, request, person.id)
    _try(owner, application, request.replace("redirect_uri=", "redirect_uri=x"))
    with world.read_only_services() as services:
        assert services.storage.audit.page().items == before

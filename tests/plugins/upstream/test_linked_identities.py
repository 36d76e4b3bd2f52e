"""Linked identities in the account, and the provider check in the console."""

import pytest

from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.outbound_http import ForbiddenDestination
from identity.testing.browser import Browser, set_password
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.fake_provider import ISSUER

SECURITY = "/account/security"


def signed_in(scene: UpstreamScenario) -> tuple[HumanUser, Browser]:
    """A user with a password and a new session."""
    person = scene.world.make_human_user(scene.organization)
    set_password(scene.world, person)
    browser = Browser(scene.world)
    browser.start_session(person)
    return person, browser


def link_identity(scene: UpstreamScenario, browser: Browser) -> None:
    """Link the upstream identity."""
    browser.open(SECURITY)
    browser.click("Link … " + scene.provider.name)
    browser.submit(form="page-form")
    browser.open(scene.fake_provider.approve(str(browser.external_redirect)), initiator=ISSUER)


def test_linked_identity_signs_in(scene: UpstreamScenario) -> None:
    scene.change(create_accounts=False)
    person, browser = signed_in(scene)
    scene.fake_provider.claims = {"email": "kim@people.example"}
    link_identity(scene, browser)
    assert browser.path == SECURITY
    assert "kim@people.example" in browser.page
    scene.fake_provider.claims = {}
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"] == person.id


def test_external_account_links_to_one_user_only(scene: UpstreamScenario) -> None:
    _, first = signed_in(scene)
    link_identity(scene, first)
    person, second = signed_in(scene)
    link_identity(scene, second)
    assert second.page.status_int == 409
    assert not scene.world.audit_events(event="linked_identity.added", object_id=person.id)


def test_linking_is_bound_to_the_user_who_began_it(scene: UpstreamScenario) -> None:
    _, browser = signed_in(scene)
    browser.open(SECURITY)
    browser.click("Link … " + scene.provider.name)
    browser.submit(form="page-form")
    url = scene.fake_provider.approve(str(browser.external_redirect))
    victim, other = signed_in(scene)
    assert other.open(url, initiator=ISSUER).status_int == 400
    assert not scene.world.audit_events(event="linked_identity.added", object_id=victim.id)


def test_linking_and_unlinking_require_recent_sign_in(scene: UpstreamScenario) -> None:
    _, browser = signed_in(scene)
    link_identity(scene, browser)
    scene.world.clock.advance(minutes=11)
    browser.open(SECURITY)
    browser.click("Unlink … " + scene.provider.name)
    assert browser.sign_in_step == "password"
    browser.open(f"/account/identities/new/{scene.provider.id}")
    assert browser.sign_in_step == "password"


def test_linking_after_long_absence_requires_sign_in(scene: UpstreamScenario) -> None:
    person, browser = signed_in(scene)
    scene.world.clock.advance(minutes=5)
    browser.open(SECURITY)
    browser.click("Link … " + scene.provider.name)
    browser.submit(form="page-form")
    url = scene.fake_provider.approve(str(browser.external_redirect))
    scene.world.clock.advance(minutes=6)
    browser.open(url, initiator=ISSUER)
    assert browser.sign_in_step == "password"
    assert not scene.world.audit_events(event="linked_identity.added", object_id=person.id)


def test_unlinked_identity_cannot_sign_in(scene: UpstreamScenario) -> None:
    scene.change(create_accounts=False)
    person, browser = signed_in(scene)
    link_identity(scene, browser)
    browser.open(SECURITY)
    browser.click("Unlink … " + scene.provider.name)
    browser.submit(form="page-form")
    [event] = scene.world.audit_events(event="linked_identity.removed", object_id=person.id)
    assert event.actor.id == person.id
    scene.ask()
    scene.sign_in()
    assert scene.browser.path.endswith("/upstream/unlinked")


def test_unlinking_identity_of_another_user_is_404(scene: UpstreamScenario) -> None:
    _, browser = signed_in(scene)
    link_identity(scene, browser)
    browser.open(SECURITY)
    href = browser.page.html.select_one("#identities a")["href"]
    _, other = signed_in(scene)
    assert other.open(href).status_int == 404
    assert other.open(f"/account/identities/new/{scene.world.make_upstream_provider().id}").status_int == 404


@pytest.mark.thorough
def test_provider_check_shows_claims_to_manager(scene: UpstreamScenario) -> None:
    manager = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(manager, "ORG_OWNER")
    browser = Browser(scene.world)
    browser.start_session(manager)
    scene.fake_provider.claims = {"given_name": "Ada", "department": ["<b>maths</b>"]}
    browser.open(f"/console/upstream-providers/{scene.provider.id}")
    browser.click("Test")
    browser.submit(form="page-form")
    page = browser.open(scene.fake_provider.approve(str(browser.external_redirect)), initiator=ISSUER)
    assert f"{scene.provider.name} works" in page
    assert "&lt;b&gt;maths&lt;/b&gt;" in page
    assert "Ada" in page
    assert not scene.world.audit_events(event="user.registered", organization_id=scene.organization.id)


def test_provider_check_requires_write_permission(scene: UpstreamScenario) -> None:
    viewer = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(viewer, "ORG_OWNER_VIEWER")
    browser = Browser(scene.world)
    browser.start_session(viewer)
    page = browser.open(f"/console/upstream-providers/{scene.provider.id}")
    assert "Test" not in [item.text for item in page.html.select(".console__head a")]
    assert browser.open(f"/console/upstream-providers/{scene.provider.id}/test").status_int == 403


@pytest.mark.parametrize("role", ["ORG_OWNER", "IAM_OWNER"])
def test_provider_check_explains_failures(scene: UpstreamScenario, role: str) -> None:
    """Only instance managers learn about private addresses, on pages and in the audit trail."""
    manager = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(manager, role, resource=Resource.INSTANCE if role == "IAM_OWNER" else None)
    browser = Browser(scene.world)
    browser.start_session(manager)
    pages = []
    for answer in (ForbiddenDestination("private"), OSError("unknown"), TimeoutError()):
        scene.fake_provider.answers["/.well-known/openid-configuration"] = answer
        scene.world.app.registry.upstream._http_client._backoff_until.clear()
        browser.open(f"/console/upstream-providers/{scene.provider.id}/test")
        page = browser.submit(form="page-form")
        assert page.status_int == 503
        pages.append(page.html.find("main").text.partition("Request id")[0])
    assert "The reason: the provider did not answer: TimeoutError." in pages[2]
    assert ("identity.outgoing_networks" in pages[0]) is (role == "IAM_OWNER")
    assert (pages[0] == pages[1]) is (role == "ORG_OWNER")
    events = scene.world.audit_events(event="authentication.refused", object_id=scene.provider.id)
    assert "private" not in str(events)
    scene.ask()
    assert "The reason" not in scene.browser.click(scene.button)


def test_provider_check_explains_invalid_id_token(scene: UpstreamScenario) -> None:
    manager = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(manager, "ORG_OWNER")
    browser = Browser(scene.world)
    browser.start_session(manager)
    browser.open(f"/console/upstream-providers/{scene.provider.id}/test")
    browser.submit(form="page-form")
    scene.fake_provider.claims = {"aud": "somebody-else"}
    page = browser.open(scene.fake_provider.approve(str(browser.external_redirect)), initiator=ISSUER)
    assert "The reason: the ID token is for somebody else." in page

"""Linked identities in the account."""

from identity.domain.users import HumanUser
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

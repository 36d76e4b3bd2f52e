"""Security 20.4: a provider is a credential of its linked accounts, so people with a role at the instance use those
alone that the instance manages; and nobody is sent anywhere without another way."""

import pytest

from identity.domain.permissions import INSTANCE
from identity.services.access import THE_OPERATOR
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.testing.browser import Browser
from tests.plugins.login.conftest import Person
from tests.plugins.upstream.conftest import Scene
from tests.plugins.upstream.test_linking import KIM, asked_to_link, linked

ROLE = "IAM_OWNER_VIEWER"


@pytest.fixture
def ada(scene: Scene) -> Person:
    person = Person(scene.world, scene.organization)
    scene.world.make_manager(person.user, ROLE, resource=INSTANCE)
    return person


@pytest.fixture
def kim(scene: Scene) -> Person:
    return Person(scene.world, scene.organization)


def manage(scene: Scene, managed: bool) -> None:
    command = ChangeUpstreamProvider.of(instance_managed=managed)
    scene.provider = scene.world.operator.upstream_providers.change(scene.provider.id, command)


def link_in_sign_in(scene: Scene, person: Person) -> None:
    scene.browser = Browser(scene.world)
    scene.change(create_accounts=False)
    scene.elsewhere.claims = dict(KIM)
    asked_to_link(scene, person)


def answers_as(scene: Scene, person: Person) -> bool:
    scene.browser = Browser(scene.world)
    asked = scene.ask()
    answer = scene.sign_in()
    if scene.party.redirect_uri not in str(answer.location):
        return False
    return bool(scene.party.tokens(answer, asked).claims["sub"] == person.user.id)


def test_linking_page_offers_a_holder_no_provider_of_the_organization(scene: Scene, ada: Person) -> None:
    link_in_sign_in(scene, ada)
    assert "cannot be linked" in scene.browser.page
    manage(scene, True)
    link_in_sign_in(scene, ada)
    assert "cannot be linked" not in scene.browser.page
    scene.browser.submit(press=("decision", "link"))
    assert linked(scene.world, ada)


def test_question_that_was_asked_before_the_role_was_given_links_nothing(scene: Scene, kim: Person) -> None:
    link_in_sign_in(scene, kim)
    assert "cannot be linked" not in scene.browser.page
    scene.world.make_manager(kim.user, ROLE, resource=INSTANCE)
    scene.browser.submit(press=("decision", "link"))
    assert not linked(scene.world, kim)


def test_security_page_lets_a_holder_link_what_the_instance_manages_alone(scene: Scene, ada: Person) -> None:
    browser = Browser(scene.world)
    browser.start_session(ada.user)
    new = f"/account/identities/new/{scene.provider.id}"
    assert new not in browser.open("/account/security")
    assert browser.open(new).status_int == 404
    manage(scene, True)
    assert new in browser.open("/account/security")
    page = browser.open(new)
    assert "The instance manages this provider." in page


def test_linking_page_names_who_runs_the_provider(scene: Scene, kim: Person) -> None:
    scene.change(name="Company sign-in")
    browser = Browser(scene.world)
    browser.start_session(kim.user)
    page = browser.open(f"/account/identities/new/{scene.provider.id}")
    run = f"{scene.organization.name} ({scene.organization.primary_domain}) manages this provider."
    host = scene.elsewhere.issuer.removeprefix("https://")
    assert f"{run} You sign in at {host}. Whoever manages it can sign in here as you." in page
    link_in_sign_in(scene, kim)
    assert f"{run} You sign in at {host}. Whoever manages it can sign in here as you." in scene.browser.page


def test_link_rests_while_its_person_holds_a_role_at_the_instance(scene: Scene, kim: Person) -> None:
    link_in_sign_in(scene, kim)
    scene.browser.submit(press=("decision", "link"))
    assert answers_as(scene, kim)
    manager = scene.world.make_manager(kim.user, ROLE, resource=INSTANCE)
    assert not answers_as(scene, kim)
    assert "You hold a role at the instance" in scene.browser.page
    browser = Browser(scene.world)
    browser.start_session(kim.user)
    assert "you can only sign in at providers that the instance manages" in browser.open("/account/security")
    with scene.world.transaction() as services:
        services.managers.remove(manager.id, by=THE_OPERATOR)
    assert answers_as(scene, kim)


def test_provider_of_the_instance_is_a_way_to_sign_in_for_a_role_there(scene: Scene, kim: Person) -> None:
    link_in_sign_in(scene, kim)
    scene.browser.submit(press=("decision", "link"))
    with scene.world.reading() as services:
        subject = services.storage.users.find_subject(kim.user.id)
        has = dict(services.choices.has)["upstream"]
        assert not has(subject, services)
    manage(scene, True)
    with scene.world.reading() as services:
        assert has(subject, services)


def test_every_redirect_passes_a_page_with_another_way_that_shows_ways_of_the_instance(
    scene: Scene, ada: Person, kim: Person
) -> None:
    """The same page for whoever has the name, and nobody; afterwards it is told who may."""
    world, here = scene.world, scene.organization
    with world.transaction() as services:
        services.policies.change(here.id, ChangePolicy.of(factors=("upstream",)))
    scene.change(by_domain=True)
    seen = set()
    for name in (ada.login_name, kim.login_name, f"nobody@{here.primary_domain}"):
        browser = scene.browser = Browser(world)
        scene.ask()
        page = browser.submit({"login_name": name})
        assert browser.step == "upstream"
        assert f"Continue to {scene.provider.name}" in page
        browser.submit(press=("decision", "another"))
        assert browser.step == ""
        assert "Sign in with a passkey" in browser.page
        browser.submit({"login_name": name})
        assert browser.step == "password"
        seen.add(browser.page.html.find("main").text.replace(name, "NAME"))
    assert len(seen) == 1
    for person, passes in ((kim, False), (ada, True)):
        browser = scene.browser = Browser(world)
        scene.ask()
        browser.submit({"login_name": person.login_name})
        browser.submit(press=("decision", "another"))
        answer = browser.sign_in(person.login_name)
        assert (scene.party.redirect_uri in str(browser.left_for or answer.location)) is passes

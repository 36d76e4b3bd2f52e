"""Security 20.4: users with an instance role sign in only by providers that the instance manages.

A provider is a credential of its linked accounts. The redirect page always offers another method.
"""

import pytest

from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.testing.browser import Browser
from tests.plugins.login.conftest import LoginUser
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.test_identity_linking import KIM, is_linked, open_linking_question

ROLE = "IAM_OWNER_VIEWER"


@pytest.fixture
def ada(scene: UpstreamScenario) -> LoginUser:
    person = LoginUser(scene.world, scene.organization)
    scene.world.assign_manager_role(person.user, ROLE, resource=Resource.INSTANCE)
    return person


@pytest.fixture
def kim(scene: UpstreamScenario) -> LoginUser:
    return LoginUser(scene.world, scene.organization)


def manage(scene: UpstreamScenario, managed: bool) -> None:
    command = ChangeUpstreamProvider.build(instance_managed=managed)
    scene.provider = scene.world.operator_services.upstream_providers.change(scene.provider.id, command)


def link_in_sign_in(scene: UpstreamScenario, person: LoginUser) -> None:
    scene.browser = Browser(scene.world)
    scene.change(create_accounts=False)
    scene.fake_provider.claims = dict(KIM)
    open_linking_question(scene, person)


def answers_as(scene: UpstreamScenario, person: LoginUser) -> bool:
    scene.browser = Browser(scene.world)
    authorization = scene.ask()
    answer = scene.sign_in()
    if scene.party.redirect_uri not in str(answer.location):
        return False
    return bool(scene.party.obtain_tokens(answer, authorization).claims["sub"] == person.user.id)


def test_linking_page_hides_organization_providers_from_instance_managers(
    scene: UpstreamScenario, ada: LoginUser
) -> None:
    link_in_sign_in(scene, ada)
    assert "cannot be linked" in scene.browser.page
    manage(scene, True)
    link_in_sign_in(scene, ada)
    assert "cannot be linked" not in scene.browser.page
    scene.browser.submit(button=("decision", "link"))
    assert is_linked(scene.world, ada)


def test_role_assigned_meanwhile_stops_linking(scene: UpstreamScenario, kim: LoginUser) -> None:
    link_in_sign_in(scene, kim)
    assert "cannot be linked" not in scene.browser.page
    scene.world.assign_manager_role(kim.user, ROLE, resource=Resource.INSTANCE)
    scene.browser.submit(button=("decision", "link"))
    assert not is_linked(scene.world, kim)


def test_security_page_offers_instance_managers_instance_providers_only(
    scene: UpstreamScenario, ada: LoginUser
) -> None:
    browser = Browser(scene.world)
    browser.start_session(ada.user)
    new = f"/account/identities/new/{scene.provider.id}"
    assert new not in browser.open("/account/security")
    assert browser.open(new).status_int == 404
    manage(scene, True)
    assert new in browser.open("/account/security")
    page = browser.open(new)
    assert "The instance manages this provider." in page


def test_linking_page_names_provider_host(scene: UpstreamScenario, kim: LoginUser) -> None:
    scene.change(name="Company sign-in")
    browser = Browser(scene.world)
    browser.start_session(kim.user)
    page = browser.open(f"/account/identities/new/{scene.provider.id}")
    run = f"{scene.organization.name} ({scene.organization.primary_domain}) manages this provider."
    host = scene.fake_provider.issuer.removeprefix("https://")
    assert f"{run} You sign in at {host}. Anyone who manages it can sign in here as you." in page
    link_in_sign_in(scene, kim)
    assert f"{run} You sign in at {host}. Anyone who manages it can sign in here as you." in scene.browser.page


def test_link_is_suspended_during_instance_role(scene: UpstreamScenario, kim: LoginUser) -> None:
    link_in_sign_in(scene, kim)
    scene.browser.submit(button=("decision", "link"))
    assert answers_as(scene, kim)
    manager = scene.world.assign_manager_role(kim.user, ROLE, resource=Resource.INSTANCE)
    assert not answers_as(scene, kim)
    assert "You have a role at the instance" in scene.browser.page
    browser = Browser(scene.world)
    browser.start_session(kim.user)
    assert "you can sign in only with providers that the instance manages" in browser.open("/account/security")
    with scene.world.transaction_services() as services:
        services.managers.remove(manager.id, principal=Principal.OPERATOR)
    assert answers_as(scene, kim)


def test_instance_provider_signs_in_instance_managers(scene: UpstreamScenario, kim: LoginUser) -> None:
    link_in_sign_in(scene, kim)
    scene.browser.submit(button=("decision", "link"))
    with scene.world.read_only_services() as services:
        subject = services.storage.users.find_subject(kim.user.id)
        has = dict(services.capabilities.sign_in_method_checks)["upstream"]
        assert not has(subject, services)
    manage(scene, True)
    with scene.world.read_only_services() as services:
        assert has(subject, services)


def test_provider_redirect_page_offers_other_methods(scene: UpstreamScenario, ada: LoginUser, kim: LoginUser) -> None:
    """The page is the same for known and unknown names."""
    world, organization = scene.world, scene.organization
    with world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy.build(factors=("upstream",)))
    scene.change(by_domain=True)
    pages = set()
    for name in (ada.login_name, kim.login_name, f"nobody@{organization.primary_domain}"):
        browser = scene.browser = Browser(world)
        scene.ask()
        page = browser.submit({"login_name": name})
        assert browser.sign_in_step == "upstream"
        assert f"Continue to {scene.provider.name}" in page
        browser.submit(button=("decision", "another"))
        assert browser.sign_in_step == ""
        assert "Sign in with a passkey" in browser.page
        browser.submit({"login_name": name})
        assert browser.sign_in_step == "password"
        pages.add(browser.page.html.find("main").text.replace(name, "NAME"))
    assert len(pages) == 1
    for person, passes in ((kim, False), (ada, True)):
        browser = scene.browser = Browser(world)
        scene.ask()
        browser.submit({"login_name": person.login_name})
        browser.submit(button=("decision", "another"))
        answer = browser.sign_in(person.login_name)
        assert (scene.party.redirect_uri in str(browser.external_redirect or answer.location)) is passes

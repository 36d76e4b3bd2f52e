"""Sign-in by email address works like sign-in by login name, and does not disclose whether an address exists."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from identity.domain.attempts import FREE_ATTEMPTS, MAX_ATTEMPTS
from identity.domain.users import EmailVerifier, HumanUser
from identity.password_hashing import PasswordHasher
from identity.services.commands.policies import ChangePolicy
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_page
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser, normal, opened

ADDRESS = "ada@post.example"


def verify(
    world: World, person: HumanUser, email: str = ADDRESS, email_verifier: EmailVerifier = EmailVerifier.OWN_LINK
) -> None:
    """Give the user this verified address."""
    with world.transaction_services() as services:
        stored = services.storage.users.find(person.id)
        assert isinstance(stored, HumanUser)
        profile = replace(stored.profile, email=email, email_verified=True)
        changed = replace(stored, profile=profile, email_verified_by=email_verifier, version=stored.version + 1)
        services.storage.users.update(changed)


def sign_in_to_service(browser: Browser, party: RelyingParty) -> None:
    browser.open("/login")


def sign_in_to_application(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    """An isolated world, because addresses are counted per instance."""
    return make_world()


SIGN_IN_STARTS = pytest.mark.parametrize("arrive", [sign_in_to_service, sign_in_to_application])
Arrive = Callable[[Browser, RelyingParty], None]


@pytest.mark.thorough
@SIGN_IN_STARTS
@pytest.mark.parametrize("typed", [ADDRESS, "ADA@POST.EXAMPLE", "login name"])
def test_email_address_and_login_name_sign_in(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, arrive: Arrive, typed: str
) -> None:
    verify(world, ada.user)
    arrive(browser, party)
    browser.sign_in(ada.login_name if typed == "login name" else typed)
    assert browser.session_cookies


def test_login_name_label_follows_policy(browser: Browser, world: World) -> None:
    browser.open("/login")
    assert "Login name or email" in browser.page.text
    with world.transaction_services() as services:
        services.policies.change("instance", ChangePolicy.build(sign_in_by_email=False))
    browser.reload()
    check_page(browser.page, 200, "Sign in")
    assert "Login name or email" not in browser.page.text


@pytest.mark.thorough
@SIGN_IN_STARTS
def test_email_sign_in_failures_are_indistinguishable(
    world: World, party: RelyingParty, ada: LoginUser, arrive: Arrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    original = PasswordHasher.verify
    monkeypatch.setattr(
        PasswordHasher,
        "verify",
        lambda self, stored, password, **options: (
            hashed.append(password),
            original(self, stored, password, **options),
        )[1],
    )
    verify(world, ada.user)
    user = LoginUser(world)
    verify(world, user.user, "bob@post.example", EmailVerifier.MANAGER)
    responses = set()
    for address in (ADDRESS, "bob@post.example", "eve@post.example"):
        browser = Browser(world)
        arrive(browser, party)
        page = browser.sign_in(address, "wrong")
        assert page.status_int == 422
        responses.add((normal(page, address), len(browser.session_cookies)))
    assert len(responses) == 1
    assert hashed == ["wrong"] * 3, "the work is the same"


def statuses(
    world: World, party: RelyingParty, typed: str, arrive: Arrive = sign_in_to_service, number: int = 7
) -> list[int]:
    found = []
    for _ in range(number):
        browser = Browser(world)
        arrive(browser, party)
        found.append(browser.sign_in(typed, "wrong").status_int)
    return found


@pytest.mark.thorough
def test_attempt_counter_shown_is_per_typed_name(world: World, party: RelyingParty, ada: LoginUser) -> None:
    verify(world, ada.user)
    known = statuses(world, party, ADDRESS)
    assert known == statuses(world, party, "nobody@post.example")
    assert known[:FREE_ATTEMPTS] == [422] * FREE_ATTEMPTS
    assert 429 in known


@pytest.mark.thorough
def test_email_attempts_share_one_counter_across_pages(world: World, party: RelyingParty, ada: LoginUser) -> None:
    """Otherwise a second page would disclose whether the address means the same user."""
    verify(world, ada.user)
    for address in (ADDRESS, "nobody@post.example"):
        statuses(world, party, address, number=FREE_ATTEMPTS)
        assert statuses(world, party, address, sign_in_to_application, 1) == [429]


@pytest.mark.thorough
def test_account_attempts_share_one_hidden_counter(world: World, party: RelyingParty, ada: LoginUser) -> None:
    """The address and both names have 15 free attempts together, of which five are verified."""
    verify(world, ada.user)
    for typed in (ADDRESS, ada.login_name, ada.user.user_name):
        assert statuses(world, party, typed, number=FREE_ATTEMPTS) == [422] * FREE_ATTEMPTS
    with world.read_only_services() as services:
        [failures] = services.storage.attempts.count_failures([f"user:{ada.user.id}"]).values()
    assert failures == FREE_ATTEMPTS


@pytest.mark.thorough
def test_locked_account_answers_email_as_wrong_password(
    world: World, party: RelyingParty, ada: LoginUser, browser: Browser
) -> None:
    verify(world, ada.user)
    with world.transaction_services() as services:
        for _ in range(MAX_ATTEMPTS):
            services.storage.attempts.reserve(f"user:{ada.user.id}", reserved_at=services.now, user_id=ada.user.id)
            world.clock.advance(minutes=16)
            services.now = world.clock()
    browser.open("/login")
    assert browser.sign_in(ADDRESS, PASSWORD).status_int == 422


@pytest.mark.thorough
def test_email_sign_in_resets_shown_counter(world: World, party: RelyingParty, ada: LoginUser) -> None:
    verify(world, ada.user)
    statuses(world, party, ADDRESS, number=FREE_ATTEMPTS - 1)
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(ADDRESS)
    assert browser.session_cookies
    assert statuses(world, party, ADDRESS, number=FREE_ATTEMPTS) == [422] * FREE_ATTEMPTS


def test_login_hint_by_email_selects_session(world: World, party: RelyingParty, ada: LoginUser) -> None:
    browser, user = Browser(world), LoginUser(world)
    verify(world, ada.user)
    for person in (ada.user, user.user):
        browser.start_session(person)
    auth_request = opened(browser, party, login_hint="ADA@post.example", prompt="none")
    assert "code" in party.check_response(browser.page, auth_request)


@pytest.mark.thorough
def test_policy_disables_email_sign_in(world: World, party: RelyingParty, ada: LoginUser, browser: Browser) -> None:
    verify(world, ada.user)
    with world.transaction_services() as services:
        services.policies.change(ada.organization.id, ChangePolicy.build(sign_in_by_email=False))
    browser.open("/login")
    assert browser.sign_in(ADDRESS).status_int == 422
    browser.open("/login")
    browser.sign_in(ada.login_name)
    assert browser.session_cookies

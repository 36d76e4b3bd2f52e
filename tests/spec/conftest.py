"""Fixtures of the service description tests."""

from functools import cache

import pytest

from identity.crypto.argon2id import HashVerification
from identity.domain.users import HumanUser
from identity.password_hashing import PasswordHasher
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import ReceivedTokens, RelyingParty
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.password_attempts import WRONG, make_password_user


@pytest.fixture
def robot(world: World) -> ServiceUserProgram:
    """A service user in its own organization."""
    return world.make_service_user_program()


@pytest.fixture
def person(world: World) -> HumanUser:
    """A human user in their own organization."""
    return world.make_human_user()


@pytest.fixture
def other_person(world: World) -> HumanUser:
    """A human user of another organization."""
    return world.make_human_user()


@pytest.fixture
def login_name(world: World, person: HumanUser) -> str:
    """The user's login name; the password is PASSWORD."""
    return set_password(world, person)


@pytest.fixture
def ada(world: World) -> HumanUser:
    """A user who can sign in with PASSWORD."""
    return make_password_user(world)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of wrong passwords without hundreds of hashes."""
    verify, no = cache(PasswordHasher.verify), HashVerification(is_match=False, needs_rehash=False)
    monkeypatch.setattr(
        PasswordHasher,
        "verify",
        lambda *arguments, **options: no if WRONG in arguments else verify(*arguments, **options),
    )


@pytest.fixture
def party(world: World) -> RelyingParty:
    """An application for all response types, with a secret."""
    return RelyingParty.register(world)


@pytest.fixture
def owner(world: World) -> ServiceUserProgram:
    """A service user that owns its organization."""
    return world.make_manager_program("ORG_OWNER")


@pytest.fixture
def api(owner: ServiceUserProgram) -> ApiClient:
    """The management API for the owner of an organization."""
    return ApiClient.for_user(owner)


@pytest.fixture
def projects(owner: ServiceUserProgram) -> str:
    """The path of the projects of the owner's organization."""
    return f"/organizations/{owner.organization.id}/projects"


@pytest.fixture
def browser(world: World, person: HumanUser) -> Browser:
    """A browser with a session of the user."""
    browser = Browser(world)
    browser.start_session(person)
    return browser


@pytest.fixture
def anonymous_browser(world: World) -> Browser:
    """A browser without a session."""
    return Browser(world)


@pytest.fixture
def tokens(browser: Browser, party: RelyingParty) -> ReceivedTokens:
    """Tokens that an application obtained through the browser's session."""
    return party.sign_in_silently(browser, scope="openid offline_access", prompt="none")


@pytest.fixture
def client(world: World) -> Credentials:
    """A confidential web application."""
    return world.make_web_application()


@pytest.fixture
def session(world: World) -> BrowserSession:
    """The session of a signed-in user, created without the pages."""
    return world.make_browser_session()

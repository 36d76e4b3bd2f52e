"""What all tests of the service description share."""

from functools import cache

import pytest

from identity.crypto.passwords import Verdict
from identity.domain.users import HumanUser
from identity.hashing import Hasher
from identity.testing.browser import Browser, give_password
from identity.testing.relying_party import RelyingParty, Tokens
from identity.testing.service_client import Credentials
from identity.testing.world import BrowserSession, Robot, World
from tests.plugins.management.estate import Api
from tests.spec.guesses import WRONG, somebody


@pytest.fixture
def robot(world: World) -> Robot:
    """A service user of an organization of its own."""
    return world.a_robot()


@pytest.fixture
def person(world: World) -> HumanUser:
    """A person of an organization of their own."""
    return world.a_person()


@pytest.fixture
def somebody_else(world: World) -> HumanUser:
    """Another person of another organization."""
    return world.a_person()


@pytest.fixture
def login_name(world: World, person: HumanUser) -> str:
    """The person's login name; the password is PASSWORD."""
    return give_password(world, person)


@pytest.fixture
def ada(world: World) -> HumanUser:
    """A person who can sign in with PASSWORD."""
    return somebody(world)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of wrong passwords without hundreds of hashes."""
    verify, no = cache(Hasher.verify), Verdict(matches=False, outdated=False)
    monkeypatch.setattr(Hasher, "verify", lambda *asked: no if WRONG in asked else verify(*asked))


@pytest.fixture
def party(world: World) -> RelyingParty:
    """An application for all response types, with a secret."""
    return RelyingParty.of(world)


@pytest.fixture
def owner(world: World) -> Robot:
    """A service user that owns its organization."""
    return world.a_manager("ORG_OWNER")


@pytest.fixture
def api(owner: Robot) -> Api:
    """The management API as the owner of an organization sees it."""
    return Api.of(owner)


@pytest.fixture
def projects(owner: Robot) -> str:
    """The path of the projects of the owner's organization."""
    return f"/organizations/{owner.organization.id}/projects"


@pytest.fixture
def browser(world: World, person: HumanUser) -> Browser:
    """A browser at which the person is signed in."""
    browser = Browser(world)
    browser.start_session(person)
    return browser


@pytest.fixture
def nobody(world: World) -> Browser:
    """A browser at which nobody is signed in."""
    return Browser(world)


@pytest.fixture
def tokens(browser: Browser, party: RelyingParty) -> Tokens:
    """What an application got from the browser's session."""
    return party.signed_in(browser, scope="openid offline_access", prompt="none")


@pytest.fixture
def client(world: World) -> Credentials:
    """A web application with a secret, seen from its program."""
    return world.a_web_application()


@pytest.fixture
def session(world: World) -> BrowserSession:
    """A person who is signed in, without the pages."""
    return world.a_session()

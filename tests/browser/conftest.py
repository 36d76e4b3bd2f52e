"""A real browser, and a service for it."""

import os
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.browser.acme", "tests.browser.chromium", "tests.browser.tab")

from identity.testing.fixtures import Databases  # noqa: E402
from identity.testing.post import Post  # noqa: E402
from identity.testing.service import KeyPool  # noqa: E402
from tests.browser.acme import Acme, acme  # noqa: E402
from tests.browser.chromium import MISSING, Chromium, MakeProfile, Profile, installed  # noqa: E402
from tests.browser.tab import Tab  # noqa: E402


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """The browser, started once a worker. Without it the tests are skipped, unless they are required."""
    if installed() is None:
        if os.environ.get("IDENTITY_BROWSER_TESTS") == "required":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    chromium = Chromium(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()


@pytest.fixture
def a_profile(chromium: Chromium) -> Iterator[MakeProfile]:
    """Makes browsers of different people; at the end nothing may stand in their consoles."""
    made: list[Profile] = []

    def make(**options: str | bool) -> Profile:
        made.append(chromium.profile(**options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for profile in made:
        profile.close()


@pytest.fixture
def profile(a_profile: MakeProfile) -> Profile:
    """A browser without cookies."""
    return a_profile()


@pytest.fixture
def tab(profile: Profile) -> Tab:
    """A window of it."""
    return profile.tab()


@pytest.fixture(scope="session")
def on_memory(tmp_path_factory: pytest.TempPathFactory, key_pool: KeyPool) -> dict[str, str]:
    """Settings of a service on memory: what storages do is tested elsewhere. All people there have one address."""
    settings = Databases(tmp_path_factory.mktemp("acme"), key_pool, None, {}).settings("memory")
    return settings | {"identity.attempts_per_address": "0"}


@pytest.fixture(scope="session")
def shared_site(chromium: Chromium, on_memory: dict[str, str], key_pool: KeyPool) -> Iterator[Acme]:
    """A service that cannot send mail."""
    with acme(on_memory, key_pool) as site:
        yield site


@pytest.fixture
def site(shared_site: Acme) -> Iterator[Acme]:
    """The same; its clock is put back afterwards."""
    yield shared_site
    shared_site.world.clock.reset()
    shared_site.application.received.clear()


@pytest.fixture(scope="session")
def mailing_site(chromium: Chromium, on_memory: dict[str, str], key_pool: KeyPool) -> Iterator[Acme]:
    """A service with a mail server."""
    post = Post()
    post.open()
    with acme(on_memory, key_pool, post=post) as site:
        yield site
    post.close()

"""Fixtures of browser tests: a real browser and a service."""

import os
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.browser.example_company", "tests.browser.chromium", "tests.browser.tab")

from identity.testing.assembled_service import RsaKeyPool  # noqa: E402
from identity.testing.fixtures import DatabaseFactory  # noqa: E402
from tests.browser.chromium import MISSING, Chromium, ChromiumProfile, MakeProfile, installed  # noqa: E402
from tests.browser.example_company import ExampleCompany, acme  # noqa: E402
from tests.browser.tab import Tab  # noqa: E402
from tests.mail_server import ReceivingMailServer  # noqa: E402


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """The browser, one per worker. If it is not installed, the tests are skipped unless they are required."""
    if installed() is None:
        if os.environ.get("IDENTITY_BROWSER_TESTS") == "required":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    chromium = Chromium(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()


@pytest.fixture
def make_profile(chromium: Chromium) -> Iterator[MakeProfile]:
    """Creates profiles; at the end their consoles must be empty."""
    chromium_profiles: list[ChromiumProfile] = []

    def make(**options: str | bool) -> ChromiumProfile:
        chromium_profiles.append(chromium.profile(**options))  # type: ignore[arg-type]
        return chromium_profiles[-1]

    yield make
    for profile in chromium_profiles:
        profile.close()


@pytest.fixture
def profile(make_profile: MakeProfile) -> ChromiumProfile:
    return make_profile()


@pytest.fixture
def tab(profile: ChromiumProfile) -> Tab:
    return profile.tab()


@pytest.fixture(scope="session")
def on_memory(tmp_path_factory: pytest.TempPathFactory, key_pool: RsaKeyPool) -> dict[str, str]:
    """Settings of a service in memory, because the storages have their own tests. All users share one IP address."""
    settings = DatabaseFactory(tmp_path_factory.mktemp("acme"), key_pool, None, {}).new_database_settings("memory")
    return settings | {"identity.attempts_per_address": "0"}


@pytest.fixture(scope="session")
def shared_site(chromium: Chromium, on_memory: dict[str, str], key_pool: RsaKeyPool) -> Iterator[ExampleCompany]:
    """A service without mail server."""
    with acme(on_memory, key_pool) as site:
        yield site


@pytest.fixture
def site(shared_site: ExampleCompany) -> Iterator[ExampleCompany]:
    """The shared site; its clock is reset afterwards."""
    yield shared_site
    shared_site.world.clock.reset()
    shared_site.application.received.clear()


@pytest.fixture(scope="session")
def mailing_site(chromium: Chromium, on_memory: dict[str, str], key_pool: RsaKeyPool) -> Iterator[ExampleCompany]:
    """A service with a mail server."""
    post = ReceivingMailServer()
    post.start()
    with acme(on_memory, key_pool, post=post) as site:
        yield site
    post.stop()

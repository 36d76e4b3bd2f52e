"""Fixtures of plugins that change how people sign in to applications."""

import pytest

from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World


@pytest.fixture
def browser(world: World) -> Browser:
    """A browser with a signed-in user."""
    browser = Browser(world)
    browser.start_session(world.make_human_user())
    return browser


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world)

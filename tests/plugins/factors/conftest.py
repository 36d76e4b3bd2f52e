"""Fixtures of factor tests."""

import pytest

from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world, name="Invoices")


@pytest.fixture
def ada(world: World) -> LoginUser:
    return LoginUser(world)

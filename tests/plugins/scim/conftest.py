"""Fixtures of SCIM tests."""

import pytest

from identity.testing.world import World
from tests.plugins.scim.scim_client import ScimClient


@pytest.fixture
def scim(world: World) -> ScimClient:
    """A provisioning program of a new organization."""
    return ScimClient.for_program(world.make_manager_program("ORG_USER_PROVISIONER"))

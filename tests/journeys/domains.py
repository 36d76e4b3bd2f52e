"""Who asks for domains in the tests about them, and by which name."""

from typing import Any

from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, organization_resource
from identity.testing.world import World
from tests.plugins.management.estate import Api

#: What its organization proves.
OWN = "acme.example"


def api_of(world: World, organization: Organization) -> Api:
    robot = world.a_robot(organization)
    world.make_manager(robot, "ORG_OWNER", resource=organization_resource(organization.id))
    return Api.of(robot)


def manager(world: World, role: str) -> Api:
    return Api.of(world.a_manager(role, resource=INSTANCE))


def path_of(organization: Organization, name: str = "") -> str:
    return f"/organizations/{organization.id}/domains" + (f"/{name}" if name else "")


def asked(api: Api, organization: Organization, name: str = OWN) -> Any:
    """The domain, waiting."""
    made = api.post(path_of(organization), {"domain": name})
    assert (made["counts"], made["proof"], made["verified_at"]) == (False, None, None)
    return made

"""Clients that request domains, and domain names."""

from typing import Any

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient

#: The domain that the organization verifies.
OWN_DOMAIN = "acme.example"


def api_of(world: World, organization: Organization) -> ApiClient:
    robot = world.make_service_user_program(organization)
    world.assign_manager_role(robot, "ORG_OWNER", resource=Resource.of_organization(organization.id))
    return ApiClient.for_user(robot)


def manager(world: World, role: str) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program(role, resource=Resource.INSTANCE))


def path_of(organization: Organization, name: str = "") -> str:
    return f"/organizations/{organization.id}/domains" + (f"/{name}" if name else "")


def request_domain(api: ApiClient, organization: Organization, name: str = OWN_DOMAIN) -> Any:
    """Request the domain, which is then pending."""
    created = api.post(path_of(organization), {"domain": name})
    assert (created["counts"], created["proof"], created["verified_at"]) == (False, None, None)
    return created

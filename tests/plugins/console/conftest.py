"""Fixtures of console tests: signed-in browsers of managers."""

from collections.abc import Callable

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project, ProjectGrant
from identity.testing.browser import Browser
from identity.testing.world import World

SignIn = Callable[..., Browser]


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def sign_in(world: World, organization: Organization) -> SignIn:
    """A browser of a new user with this role, by default at the organization."""

    def sign_in(
        role: str | None = "ORG_OWNER", *, resource: Resource | None = None, home: Organization | None = None
    ) -> Browser:
        person = world.make_human_user(home or organization)
        if role is not None:
            world.assign_manager_role(person, role, resource=resource or Resource.of_organization(organization.id))
        browser = Browser(world)
        browser.start_session(person)
        return browser

    return sign_in


@pytest.fixture
def owner(sign_in: SignIn) -> Browser:
    """A browser of an ORG_OWNER."""
    return sign_in()


@pytest.fixture
def instance_owner(sign_in: SignIn) -> Browser:
    """A browser of an IAM_OWNER."""
    return sign_in("IAM_OWNER", resource=Resource.INSTANCE)


@pytest.fixture
def holder(world: World) -> Organization:
    """The organization to which projects are granted."""
    return world.make_organization()


@pytest.fixture
def grant(world: World, project: Project, holder: Organization) -> ProjectGrant:
    """The project, with two of its roles, granted to ``holder``."""
    return world.make_project_grant(project, holder, roles=["reader", "writer"])


@pytest.fixture
def holding(sign_in: SignIn, holder: Organization) -> Browser:
    """A browser of an ORG_OWNER of ``holder``."""
    return sign_in(resource=Resource.of_organization(holder.id), home=holder)

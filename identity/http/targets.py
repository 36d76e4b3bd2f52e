"""Targets: what the ids in an address name, loaded once per request, before any permission is asked for.

Each function is a route factory: it answers with the thing and the resource at which permissions on it are judged.
What the principal may not know of is not there: NotFound, whether it exists or not. That is whatever lies in an
organization into which the principal reaches nowhere; managers of a project grant reach the grant alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyramid.request import Request

from identity.domain.errors import NotFound
from identity.domain.managers import Manager
from identity.domain.permissions import (
    INSTANCE,
    Resource,
    organization_resource,
    project_grant_resource,
    project_resource,
)
from identity.domain.users import HumanUser, ServiceUser
from identity.services.bundle import Services

#: The subject of permissions on managers, whatever their level.
MANAGER = "manager"


@dataclass(frozen=True, slots=True)
class Target:
    """What a route is about.

    ``resource`` is where permissions are judged, None if there is nobody who could hold one. With ``parts`` it is
    enough to hold the permission at something inside of it; the view then shows those parts alone.
    """

    resource: Resource | None
    value: Any = None
    parts: bool = False

    def permission(self, declared: str) -> str:
        """The permission that a route's declared one means here.

        Managers of each level have permissions of their own: routes that serve all four say ``manager.read``.
        """
        subject, _, action = declared.partition(".")
        if subject != MANAGER or self.resource is None:
            return declared
        return f"{self.resource.key.level}_{MANAGER}.{action}"


#: For whoever proves to be nobody, or manages nothing: it has no resource, so every permission is refused.
_CLOSED = Target(None)

#: Finds the thing of an id and the resource at which permissions on it are judged. Raises NotFound.
Find = Callable[[Services, str], tuple[Any, Resource]]


def instance(request: Request) -> Target:
    """The instance itself."""
    return Target(INSTANCE, request.services.instance()) if _may_ask(request) else _CLOSED


def caller(request: Request) -> Target:
    """Whoever asks, about themselves: for what needs no role."""
    return Target(INSTANCE)


def by_id(name: str, find: Find, *, parts: bool = False) -> Callable[[Request], Target]:
    """A factory for what the address names by ``{name}``."""

    def factory(request: Request) -> Target:
        if not _may_ask(request):
            return _CLOSED
        identifier = request.matchdict[name]
        value, resource = find(request.services, identifier)
        if not _is_there(request, value, resource):
            raise NotFound(name.replace("_", " "), identifier)
        return Target(resource, value, parts)

    return factory


def _find_organization(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.organizations.get(identifier)
    return found, organization_resource(found.id)


def _find_project(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.projects.get(identifier)
    return found, project_resource(found)


def _find_application(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.applications.get(identifier)
    return found, project_resource(services.projects.get(found.project_id))


def _find_project_grant(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.project_grants.get(identifier)
    return found, project_grant_resource(found, services.projects.get(found.project_id))


def _find_user(services: Services, identifier: str) -> tuple[HumanUser, Resource]:
    found = services.users.get(identifier)
    return found, organization_resource(found.organization_id)


def _find_service_user(services: Services, identifier: str) -> tuple[ServiceUser, Resource]:
    found = services.service_users.get(identifier)
    return found, organization_resource(found.organization_id)


def _find_upstream_provider(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.upstream_providers.get(identifier)
    return found, organization_resource(found.organization_id)


def _find_user_grant(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.user_grants.get(identifier)
    return found, services.user_grants.resource(found)


def _find_manager(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.managers.get(identifier)
    return found, services.access.resource(found.resource)


def _find_audit_event(services: Services, identifier: str) -> tuple[Any, Resource]:
    found = services.audit_trail.get(identifier)
    if found.organization_id is None:
        return found, INSTANCE
    return found, organization_resource(found.organization_id)


organization = by_id("organization", _find_organization)
#: An organization of which one may manage parts, such as a single project.
organization_or_part = by_id("organization", _find_organization, parts=True)
project = by_id("project", _find_project)
application = by_id("application", _find_application)
project_grant = by_id("project_grant", _find_project_grant)
user = by_id("user", _find_user)
service_user = by_id("service_user", _find_service_user)
upstream_provider = by_id("upstream_provider", _find_upstream_provider)
user_grant = by_id("user_grant", _find_user_grant)
manager = by_id("manager", _find_manager)
audit_event = by_id("audit_event", _find_audit_event)


def _may_ask(request: Request) -> bool:
    """False for nobody, and for users without any manager role: they learn nothing, not even what exists."""
    principal = request.identity
    return principal is not None and bool(principal.held)


def _is_there(request: Request, value: Any, resource: Resource) -> bool:
    """True if whoever asks may know of the thing; of the managers of a project grant, those of the own side alone."""
    services, principal = request.services, request.identity
    if isinstance(value, Manager) and not services.managers.are_known(value, by=principal):
        return False
    reaches: bool = services.access.reaches(principal, resource)
    return reaches

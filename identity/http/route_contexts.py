"""Route factories: load the entity that a path names once per request, before permissions are checked.

Each returns the entity and the resource of its permissions. What the principal may not see raises NotFound, whether
it exists or not: everything in an organization in which the principal has no role. Managers of a project grant see
only the grant.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyramid.request import Request

from identity.domain.errors import NotFound
from identity.domain.managers import Manager
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.users import HumanUser, ServiceUser
from identity.services.container import Services

#: The subject of permissions on managers, at any level.
MANAGER_SUBJECT = "manager"


@dataclass(frozen=True, slots=True)
class RouteContext:
    """The context of a view. ``resource`` is where permissions are checked, None if no role applies. With
    ``includes_children`` a permission at a child is enough; the view then shows only those children."""

    resource: Resource | None
    entity: Any = None
    includes_children: bool = False

    @staticmethod
    def of_upstream_provider(request: Request) -> "RouteContext":
        """The context of a route with ``{upstream_provider}``, a factory."""
        return upstream_provider_context(request)

    def effective_permission(self, declared: str) -> str:
        """The permission that a route's declared one stands for. Managers of each level have permissions of their own:
        routes for all four levels declare ``manager.read``."""
        subject, _, action = declared.partition(".")
        if subject != MANAGER_SUBJECT or self.resource is None:
            return declared
        return f"{self.resource.key.level}_{MANAGER_SUBJECT}.{action}"


#: For requests without a valid credential or manager role: without a resource every permission is refused.
_DENIED_CONTEXT = RouteContext(None)

#: Finds an entity by id and the resource of its permissions. Raises NotFound.
EntityFinder = Callable[[Services, str], tuple[Any, Resource]]


def instance_context(request: Request) -> RouteContext:
    return (
        RouteContext(Resource.INSTANCE, request.services.find_instance()) if _is_manager(request) else _DENIED_CONTEXT
    )


def caller_context(request: Request) -> RouteContext:
    """The authenticated user, for views that need no role."""
    return RouteContext(Resource.INSTANCE)


def context_factory(
    name: str, find: EntityFinder, *, includes_children: bool = False
) -> Callable[[Request], RouteContext]:
    """A factory for the entity named by ``{name}`` in the path."""

    def factory(request: Request) -> RouteContext:
        if not _is_manager(request):
            return _DENIED_CONTEXT
        identifier = request.matchdict[name]
        value, resource = find(request.services, identifier)
        if not _is_visible(request, value, resource):
            raise NotFound(name.replace("_", " "), identifier)
        return RouteContext(resource, value, includes_children)

    return factory


def _find_organization(services: Services, identifier: str) -> tuple[Any, Resource]:
    organization = services.organizations.get(identifier)
    return organization, Resource.of_organization(organization.id)


def _find_project(services: Services, identifier: str) -> tuple[Any, Resource]:
    project = services.projects.get(identifier)
    return project, project_resource(project)


def _find_application(services: Services, identifier: str) -> tuple[Any, Resource]:
    application = services.applications.get(identifier)
    return application, project_resource(services.projects.get(application.project_id))


def _find_project_grant(services: Services, identifier: str) -> tuple[Any, Resource]:
    project_grant = services.project_grants.get(identifier)
    return project_grant, project_grant_resource(project_grant, services.projects.get(project_grant.project_id))


def _find_user(services: Services, identifier: str) -> tuple[HumanUser, Resource]:
    user = services.users.get(identifier)
    return user, Resource.of_organization(user.organization_id)


def _find_service_user(services: Services, identifier: str) -> tuple[ServiceUser, Resource]:
    service_user = services.service_users.get(identifier)
    return service_user, Resource.of_organization(service_user.organization_id)


def _find_upstream_provider(services: Services, identifier: str) -> tuple[Any, Resource]:
    provider = services.upstream_providers.get(identifier)
    return provider, Resource.of_organization(provider.organization_id)


def _find_user_grant(services: Services, identifier: str) -> tuple[Any, Resource]:
    user_grant = services.user_grants.get(identifier)
    return user_grant, services.user_grants.grant_resource(user_grant)


def _find_manager(services: Services, identifier: str) -> tuple[Any, Resource]:
    manager = services.managers.get(identifier)
    return manager, services.access_control.get_resource(manager.resource)


def _find_audit_event(services: Services, identifier: str) -> tuple[Any, Resource]:
    event = services.audit_trail.get(identifier)
    if event.organization_id is None:
        return event, Resource.INSTANCE
    return event, Resource.of_organization(event.organization_id)


organization_context = context_factory("organization", _find_organization)
#: An organization of which the principal may manage only a child, such as a single project.
organization_or_child_context = context_factory("organization", _find_organization, includes_children=True)
project_context = context_factory("project", _find_project)
application_context = context_factory("application", _find_application)
project_grant_context = context_factory("project_grant", _find_project_grant)
user_context = context_factory("user", _find_user)
service_user_context = context_factory("service_user", _find_service_user)
upstream_provider_context = context_factory("upstream_provider", _find_upstream_provider)
user_grant_context = context_factory("user_grant", _find_user_grant)
manager_context = context_factory("manager", _find_manager)
audit_event_context = context_factory("audit_event", _find_audit_event)


def _is_manager(request: Request) -> bool:
    """False without a credential or manager role: such requests learn nothing, not even what exists."""
    principal = request.identity
    return principal is not None and bool(principal.manager_entries)


def _is_visible(request: Request, value: Any, resource: Resource) -> bool:
    """True if the principal may know of the entity; of a project grant's managers, only those of its own side."""
    services, principal = request.services, request.identity
    if isinstance(value, Manager) and not services.managers.is_visible(value, principal=principal):
        return False
    reaches: bool = services.access_control.can_see_resource(principal, resource)
    return reaches

"""Route factories: load the entity that a path names once per request, before permissions are checked.

Each returns the entity and the resource of its permissions. What the principal may not see raises NotFound, whether
it exists or not: everything in an organization in which the principal has no role. Managers of a project grant see
only the grant.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyramid.request import Request

from identity.domain.applications import Application, client_id_from_path
from identity.domain.audit import AuditEvent
from identity.domain.errors import NotFound
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource, project_grant_resource, project_resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.webhooks import Webhook
from identity.services.container import Services

#: The subject of permissions on managers, at any level.
MANAGER_SUBJECT = "manager"
#: The subject of permissions on webhooks, of an organization or of the instance.
WEBHOOK_SUBJECT = "webhook"


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
        routes for all four levels declare ``manager.read``. Webhooks of the instance belong to its settings."""
        subject, _, action = declared.partition(".")
        if subject == WEBHOOK_SUBJECT and self.resource == Resource.INSTANCE:
            # Roles for all organizations include webhook.write: that is about the webhooks of these.
            return "instance.read" if action == "read" else INSTANCE_WRITE
        if subject != MANAGER_SUBJECT or self.resource is None:
            return declared
        return f"{self.resource.key.level}_{MANAGER_SUBJECT}.{action}"


#: For requests without a valid credential or manager role: without a resource every permission is refused.
_DENIED_CONTEXT = RouteContext(None)


def instance_context(request: Request) -> RouteContext:
    return (
        RouteContext(Resource.INSTANCE, request.services.find_instance()) if _is_manager(request) else _DENIED_CONTEXT
    )


def caller_context(request: Request) -> RouteContext:
    """The authenticated user, for views that need no role."""
    return RouteContext(Resource.INSTANCE)


def context_factory(
    name: str, getter: Callable[[Services], Callable[[str], Any]], *, includes_children: bool = False
) -> Callable[[Request], RouteContext]:
    """A factory for the entity named by ``{name}`` in the path. ``getter`` is a service's method that returns the
    entity with an id, or raises NotFound."""

    def factory(request: Request) -> RouteContext:
        if not _is_manager(request):
            return _DENIED_CONTEXT
        identifier = request.matchdict[name]
        value = getter(request.services)(identifier)
        resource = _resource_of(value, request.services)
        if not _is_visible(request, value, resource):
            raise NotFound(name.replace("_", " "), identifier)
        return RouteContext(resource, value, includes_children)

    return factory


def _resource_of(entity: Any, services: Services) -> Resource:
    """Where the permissions of an entity are checked. Raises NotFound."""
    match entity:
        case Organization():
            return Resource.of_organization(entity.id)
        case Project():
            return project_resource(entity)
        case Application():
            return project_resource(services.projects.get(entity.project_id))
        case ProjectGrant():
            return project_grant_resource(entity, services.projects.get(entity.project_id))
        case UserGrant():
            return services.user_grants.grant_resource(entity)
        case Manager():
            return services.access_control.get_resource(entity.resource)
        case AuditEvent(organization_id=None) | Webhook(organization_id=None):
            return Resource.INSTANCE
        case _:
            return Resource.of_organization(entity.organization_id)


organization_context = context_factory("organization", lambda services: services.organizations.get)
#: An organization of which the principal may manage only a child, such as a single project.
organization_or_child_context = context_factory(
    "organization", lambda services: services.organizations.get, includes_children=True
)
project_context = context_factory("project", lambda services: services.projects.get)
application_context = context_factory(
    "application", lambda services: lambda value: services.applications.get(client_id_from_path(value))
)
project_grant_context = context_factory("project_grant", lambda services: services.project_grants.get)
user_context = context_factory("user", lambda services: services.users.get)
service_user_context = context_factory("service_user", lambda services: services.service_users.get)
upstream_provider_context = context_factory("upstream_provider", lambda services: services.upstream_providers.get)
attribute_context = context_factory("attribute", lambda services: services.attributes.get)
attribute_mapping_context = context_factory("attribute_mapping", lambda services: services.attribute_mappings.get)
webhook_context = context_factory("webhook", lambda services: services.webhooks.get)
group_context = context_factory("group", lambda services: services.groups.get)
group_member_context = context_factory("group_member", lambda services: services.group_members.get)
group_grant_context = context_factory("group_grant", lambda services: services.group_grants.get)
group_mapping_context = context_factory("group_mapping", lambda services: services.group_mappings.get)
group_manager_context = context_factory("group_manager", lambda services: services.group_managers.get)
user_grant_context = context_factory("user_grant", lambda services: services.user_grants.get)
manager_context = context_factory("manager", lambda services: services.managers.get)
audit_event_context = context_factory("audit_event", lambda services: services.audit_trail.get)


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

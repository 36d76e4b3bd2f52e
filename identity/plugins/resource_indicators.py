"""Resource indicators (RFC 8707): clients name APIs by the addresses that projects declare.

An authorization request::

    GET /oauth/v2/authorize?response_type=code&client_id=…&resource=https%3A%2F%2Fapi.example.com%2F
"""

from collections.abc import Iterable

from identity.api.endpoints import Context
from identity.api.grants import AudienceScope, Authorization, ResourceResolver
from identity.api.plugins import hookimpl


class ProjectResources(ResourceResolver):
    """Resource URIs of projects, compared as strings. The address of the management API and
    ``urn:service:iam:org:project:id:<project_id>`` need no declaration."""

    name = "projects"

    def find_project_id(self, resource: str, authorization: Authorization, context: Context) -> str | None:
        """The project, if the user and the client have the right that its audience scope needs."""
        services, subject, client = context.services, authorization.subject, authorization.client
        instance = services.find_instance()
        own_project_id = "" if instance is None else instance.project_id
        scope = f"{resource}{AudienceScope.SUFFIX}"
        named = AudienceScope.find_project(scope, context.settings.urn_namespaces, own_project_id)
        if resource == context.settings.base_url + AudienceScope.MANAGEMENT_PATH:
            named = own_project_id
        if named is None:
            project = services.projects.find_resource(resource, subject, client)
            return None if project is None else project.id
        return named if services.projects.filter_audience(frozenset({named}), subject, client) else None


class ResourceIndicatorsPlugin:
    """Resource indicators (RFC 8707)."""

    hookspecs = 1

    @hookimpl
    def identity_resource_resolvers(self) -> Iterable[ResourceResolver]:
        """The resource URIs of projects."""
        return [ProjectResources()]

"""Scope urn:service:iam:org:project:id:<project_id>:aud: adds a project to the token's audience (§2.7)."""

from collections.abc import Iterable

from identity.api.endpoints import Context, InvalidScope
from identity.api.grants import AudienceScope, Authorization, GrantedScope, Scope
from identity.api.plugins import hookimpl


class ProjectAudienceScope(Scope):
    """A pattern with one scope per project. It adds an audience, never a permission."""

    open_to_dynamic_clients = True

    def matches(self, value: str) -> bool:
        """True for a scope of this form in any namespace."""
        return AudienceScope.PROJECT_ID_INFIX in value and value.endswith(AudienceScope.SUFFIX)

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Adds the project to the audience.

        The services check the user's and the client's access to the project. Raises InvalidScope with the same
        message whether the project is not accessible or does not exist. A scope of another namespace is dropped.
        """
        services = context.services
        instance = services.find_instance()
        named = AudienceScope.find_project(
            value, context.settings.urn_namespaces, "" if instance is None else instance.project_id
        )
        if named is None:
            return None
        if not services.projects.filter_audience(frozenset({named}), authorization.subject, authorization.client):
            raise InvalidScope(
                f"{value} names no project that the organization owns or was granted",
                reason="a scope names no project that the organization owns or was granted",
            )
        return GrantedScope(value, (named,))


class ProjectAudiencePlugin:
    """The audience scope for projects."""

    hookspecs = 1

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The audience scope."""
        return [ProjectAudienceScope()]

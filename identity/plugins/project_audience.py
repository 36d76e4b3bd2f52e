"""Scope urn:service:iam:org:project:id:<project_id>:aud: adds a project to the token's audience (§2.7)."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.domain.audiences import AUDIENCE_SUFFIX, PROJECT_ID_INFIX
from identity.provider.context import Context
from identity.provider.errors import InvalidScope
from identity.provider.grant_type import Authorization
from identity.provider.scope import GrantedScope, Scope, project_from_audience_scope


class ProjectAudienceScope(Scope):
    """A pattern with one scope per project. It adds an audience, never a permission."""

    def matches(self, value: str) -> bool:
        """True for a scope of this form in any namespace."""
        return PROJECT_ID_INFIX in value and value.endswith(AUDIENCE_SUFFIX)

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Adds the project to the audience.

        The services check the user's and the client's access to the project. Raises InvalidScope with the same
        message whether the project is not accessible or does not exist. A scope of another namespace is dropped.
        """
        services = context.services
        instance = services.find_instance()
        named = project_from_audience_scope(
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
    """Offers the project audience scope."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The audience scope."""
        return [ProjectAudienceScope()]

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
    """A pattern: one word per project. It adds an audience, never a right."""

    def matches(self, value: str) -> bool:
        """True for a word of this shape in any namespace."""
        return PROJECT_ID_INFIX in value and value.endswith(AUDIENCE_SUFFIX)

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """The project in the audience.

        What it has to be is for the services to say, by the user's rights and by the client's. Raises InvalidScope in
        the same words whether the project is foreign or does not exist. Another namespace's word is dropped.
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

"""Scope urn:service:iam:org:project:id:<project_id>:aud: adds a project to the token's audience (§2.7)."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.domain.audiences import AUDIENCE_END, PROJECT_OF
from identity.provider.context import Context
from identity.provider.errors import InvalidScope
from identity.provider.grant import Authorization
from identity.provider.scope import GrantedScope, Scope, named_project


class ProjectAudience(Scope):
    """A pattern: one word per project. It adds an audience, never a right."""

    def matches(self, value: str) -> bool:
        """True for a word of this shape in any namespace."""
        return PROJECT_OF in value and value.endswith(AUDIENCE_END)

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """The project in the audience.

        What it has to be is for the services to say, by the user's rights and by the client's. Raises InvalidScope in
        the same words whether the project is foreign or does not exist. Another namespace's word is dropped.
        """
        services = context.services
        instance = services.instance()
        named = named_project(value, context.settings.urn_namespaces, "" if instance is None else instance.project_id)
        if named is None:
            return None
        if not services.projects.audience(frozenset({named}), authorization.subject, authorization.client):
            raise InvalidScope(
                f"{value} names no project that the organization owns or was granted",
                reason="a scope names no project that the organization owns or was granted",
            )
        return GrantedScope(value, (named,))


class Plugin:
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
        return [ProjectAudience()]

"""Scopes urn:service:iam:org:projects:roles and …:org:project:role:<key>: ask for the user's project roles as claims.

The claims themselves are made by ``identity.provider.role_claims``, which also tells roles unasked where a project says
so.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.provider.context import Context
from identity.provider.errors import InvalidScope
from identity.provider.grant_type import Authorization
from identity.provider.role_claims import ALL_ROLES_SUFFIX, ONE_ROLE_INFIX, is_role_scope
from identity.provider.scope import GrantedScope, Scope


class ProjectRolesScope(Scope):
    """A pattern: one word for all roles, and one for each single role. It shows what the user has and gives nothing."""

    def matches(self, value: str) -> bool:
        """True for words of these shapes in any namespace."""
        return value.endswith(ALL_ROLES_SUFFIX) or ONE_ROLE_INFIX in value

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Granted whether or not the user has such a role. Another namespace's word is dropped.

        Raises InvalidScope for a word that names no role.
        """
        namespaces = context.settings.urn_namespaces
        if is_role_scope(value, namespaces):
            return GrantedScope(value)
        if value.removesuffix(ONE_ROLE_INFIX) in namespaces:
            raise InvalidScope(f"{value} names no role", reason="a scope names no role")
        return None


class ProjectRolesPlugin:
    """Offers the scopes for project roles."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The role scopes."""
        return [ProjectRolesScope()]

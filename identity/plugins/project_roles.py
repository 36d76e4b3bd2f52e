"""Scopes urn:service:iam:org:projects:roles and …:org:project:role:<key>: request the user's project roles as claims.

``identity.provider.role_claims`` makes the claims; it also adds roles without a scope if a project is configured so.
"""

from collections.abc import Iterable

from identity.api.endpoints import Context, InvalidScope
from identity.api.grants import Authorization, GrantedScope, RoleScope, Scope
from identity.api.plugins import hookimpl


class ProjectRolesScope(Scope):
    """A pattern with one scope for all roles, and one for each role. It discloses roles and grants none."""

    open_to_dynamic_clients = True

    def matches(self, value: str) -> bool:
        """True for scopes of these forms in any namespace."""
        return value.endswith(RoleScope.ALL_SUFFIX) or RoleScope.ONE_INFIX in value

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Granted whether or not the user has such a role. A scope of another namespace is dropped.

        Raises InvalidScope for a scope without a role key.
        """
        namespaces = context.settings.urn_namespaces
        if RoleScope.is_valid(value, namespaces):
            return GrantedScope(value)
        if value.removesuffix(RoleScope.ONE_INFIX) in namespaces:
            raise InvalidScope(f"{value} names no role", reason="a scope names no role")
        return None


class ProjectRolesPlugin:
    """The scopes for project roles."""

    hookspecs = 1

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The role scopes."""
        return [ProjectRolesScope()]

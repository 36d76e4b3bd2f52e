"""Scopes about organizations: whose members may sign in, and which organization the user belongs to.

- ``urn:service:iam:org:id:<organization_id>`` and ``…:org:domain:primary:<domain>``: the user must belong to it.
- ``urn:service:iam:user:resourceowner``: claims with id, name and primary domain of the user's organization.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from identity.api.endpoints import Context, InvalidScope
from identity.api.entities import Organization, User
from identity.api.grants import Authorization, GrantedScope, Scope
from identity.api.plugins import hookimpl
from identity.api.services import Lookup
from identity.api.storage import Storage

_OWNER = ":user:resourceowner"


class OrganizationMembersScope(Scope):
    """A pattern with one scope per organization. ``middle`` is between the namespace and the organization."""

    middle: str

    def matches(self, value: str) -> bool:
        """True for a scope of this form in any namespace."""
        return self.middle in value

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Granted to members of the organization, at each issuance. A scope of another namespace is dropped.

        Raises InvalidScope for all other users.
        """
        named = self._named(value, context)
        if named is None:
            return None
        if not self._is(authorization.organization, named):
            raise InvalidScope(
                f"{value} names another organization than the user's", reason="a scope names another organization"
            )
        return GrantedScope(value)

    def organization(self, value: str, context: Context) -> Organization | None:
        """The active organization that the scope names; None for another namespace.

        Raises InvalidScope with the same message whether it does not exist or is deactivated.
        """
        named = self._named(value, context)
        if named is None:
            return None
        with context.services.read_session() as storage:
            organization = self._find(named, storage)
        if organization is None or not organization.active:
            raise InvalidScope(f"{value} names no organization", reason="a scope names no organization")
        return organization

    def _named(self, value: str, context: Context) -> str | None:
        namespace, _, named = value.partition(self.middle)
        return named if namespace in context.settings.urn_namespaces else None

    @abstractmethod
    def _is(self, organization: Organization, named: str) -> bool:
        pass

    @abstractmethod
    def _find(self, named: str, storage: Storage) -> Organization | None:
        pass


class OrganizationIdScope(OrganizationMembersScope):
    """``…:org:id:<organization_id>``."""

    middle = ":org:id:"

    def _is(self, organization: Organization, named: str) -> bool:
        return organization.id == named

    def _find(self, named: str, storage: Storage) -> Organization | None:
        return storage.organizations.find(named)


class OrganizationDomainScope(OrganizationMembersScope):
    """``…:org:domain:primary:<domain>``, in any case, as domains are (RFC 4343)."""

    middle = ":org:domain:primary:"

    def _is(self, organization: Organization, named: str) -> bool:
        return organization.primary_domain == named.lower()

    def _find(self, named: str, storage: Storage) -> Organization | None:
        return storage.organizations.find_by_domain(named.lower())


class ResourceOwnerScope(Scope):
    """``…:user:resourceowner``: opens claims about the organization that the user belongs to."""

    def matches(self, value: str) -> bool:
        """True for the scope in any namespace."""
        return value.endswith(_OWNER)

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Always granted. A scope of another namespace is dropped."""
        return GrantedScope(value) if value.removesuffix(_OWNER) in context.settings.urn_namespaces else None


class OrganizationScopesPlugin:
    """The scopes for organizations, and their claims."""

    hookspecs = 1

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """All three."""
        return [OrganizationIdScope(), OrganizationDomainScope(), ResourceOwnerScope()]

    @hookimpl
    def identity_user_claims(self, user: User, scopes: tuple[str, ...], lookup: Lookup) -> Mapping[str, object]:
        """The user's organization, in claims prefixed with the scope."""
        # Scopes of other namespaces were dropped when scopes were granted.
        prefixes = [scope for scope in scopes if scope.endswith(_OWNER)]
        organization = lookup.find_organization(user.organization_id) if prefixes else None
        if organization is None:
            return {}
        claims: dict[str, object] = {}
        for prefix in prefixes:
            claims[f"{prefix}:id"] = organization.id
            claims[f"{prefix}:name"] = organization.name
            claims[f"{prefix}:primary_domain"] = organization.primary_domain
        return claims

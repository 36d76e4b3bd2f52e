"""Scopes about organizations: whose members may sign in, which organization the user belongs to, and the attributes
that it defines for its people.

- ``urn:service:iam:org:id:<organization_id>`` and ``…:org:domain:primary:<domain>``: the user must belong to it.
- ``urn:service:iam:user:resourceowner``: claims with id, name and primary domain of the user's organization.
- ``urn:service:iam:user:metadata``: the attributes that the organization releases in tokens.
"""

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping

from identity.api.endpoints import Context, InvalidScope
from identity.api.entities import Organization, User
from identity.api.grants import Authorization, GrantedScope, Scope
from identity.api.plugins import hookimpl
from identity.api.services import Lookup
from identity.api.storage import Storage

_OWNER = ":user:resourceowner"
_METADATA = ":user:metadata"
#: The service refuses longer claims of one plugin. Attributes that do not fit are left out: nobody is kept out by them.
_MAX_BYTES = 4096


class OrganizationMembersScope(Scope):
    """A pattern with one scope per organization. ``middle`` is between the namespace and the organization."""

    middle: str
    open_to_dynamic_clients = True

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


class UserScope(Scope):
    """A scope that ends in ``suffix`` and opens claims about the user."""

    suffix: str

    def matches(self, value: str) -> bool:
        """True for the scope in any namespace."""
        return value.endswith(self.suffix)

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Always granted. A scope of another namespace is dropped."""
        return GrantedScope(value) if value.removesuffix(self.suffix) in context.settings.urn_namespaces else None


class ResourceOwnerScope(UserScope):
    """``…:user:resourceowner``: the organization that the user belongs to."""

    suffix = _OWNER


class MetadataScope(UserScope):
    """``…:user:metadata``: the user's attributes in tokens."""

    suffix = _METADATA


class OrganizationScopesPlugin:
    """The scopes for organizations, and their claims."""

    hookspecs = 1

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """All four."""
        return [OrganizationIdScope(), OrganizationDomainScope(), ResourceOwnerScope(), MetadataScope()]

    @hookimpl
    def identity_user_claims(self, user: User, scopes: tuple[str, ...], lookup: Lookup) -> Mapping[str, object]:
        """The user's organization, in claims prefixed with the scope, and attributes."""
        # Scopes of other namespaces were dropped when scopes were granted.
        claims = _organization_claims(user, [scope for scope in scopes if scope.endswith(_OWNER)], lookup)
        _add_attributes(claims, user, [scope for scope in scopes if scope.endswith(_METADATA)], lookup)
        return claims


def _organization_claims(user: User, scopes: list[str], lookup: Lookup) -> dict[str, object]:
    organization = lookup.find_organization(user.organization_id) if scopes else None
    claims: dict[str, object] = {}
    if organization is None:
        return claims
    for scope in scopes:
        claims[f"{scope}:id"] = organization.id
        claims[f"{scope}:name"] = organization.name
        claims[f"{scope}:primary_domain"] = organization.primary_domain
    return claims


def _add_attributes(claims: dict[str, object], user: User, scopes: list[str], lookup: Lookup) -> None:
    """Add each attribute in tokens: to the claim that is named like the scope, and under its own claim."""
    values: dict[str, object] = {}
    for key, claim, value in lookup.list_token_attributes(user.id) if scopes else ():
        added: dict[str, object] = {scope: {**values, key: value} for scope in scopes}
        if claim:
            added[claim] = value
        if len(json.dumps(claims | added)) <= _MAX_BYTES:
            values[key] = value
            claims.update(added)

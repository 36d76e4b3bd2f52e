"""Scopes, and how requested scopes become granted scopes, audience and claims."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.provider.context import Context
from identity.provider.errors import AccessDenied, InvalidScope, InvalidTarget
from identity.provider.grant_type import Authorization
from identity.provider.resource_indicators import resolve_resources

_SCOPE_TOKEN = re.compile(r"[!#-\[\]-~]*")


@dataclass(frozen=True, slots=True)
class GrantedScope:
    """A granted scope value, what it adds to the audience, and the standard claims it opens."""

    value: str
    audience: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantedScopes:
    """All granted scopes; ``values`` are those of the response's scope."""

    values: tuple[str, ...]
    audience: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    @property
    def scope_string(self) -> str:
        return " ".join(self.values)


class Scope(ABC):
    """A fixed scope or a pattern of scopes."""

    OPENID: ClassVar[str] = "openid"
    OFFLINE_ACCESS: ClassVar[str] = "offline_access"

    #: In discovery as scopes_supported; empty for patterns.
    names: tuple[str, ...] = ()
    #: The standard or custom claims that the scope opens, for discovery.
    claims: frozenset[str] = frozenset()
    #: True if applications that no manager created get it, too.
    open_to_dynamic_clients: bool = False

    @abstractmethod
    def matches(self, value: str) -> bool:
        """True if the scope value is of this kind."""

    @abstractmethod
    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """The granted scope; None drops it silently. Raises InvalidScope with its name if it cannot be honoured."""

    def organization(self, value: str, context: Context) -> Organization | None:
        """The organization to whose members this scope limits the sign-in; None for any. Raises InvalidScope if the
        organization does not exist."""
        return None

    @staticmethod
    def require_syntax(requested: tuple[str, ...]) -> None:
        """Raise InvalidScope unless every value has the syntax of RFC 6749 §3.3."""
        for name in requested:
            if not _SCOPE_TOKEN.fullmatch(name):
                raise InvalidScope("scope holds a character that a scope cannot have")

    @staticmethod
    def require_openid(requested: tuple[str, ...]) -> None:
        """Raise InvalidScope unless every value has the syntax of RFC 6749 §3.3 and openid is among them."""
        Scope.require_syntax(requested)
        if Scope.OPENID not in requested:
            raise InvalidScope("scope must include openid")


class ClaimsScope(Scope):
    """A scope with a fixed name that opens claims about the user (OpenID Connect Core §5.4)."""

    def __init__(
        self, name: str, claims: frozenset[str] = frozenset(), *, open_to_dynamic_clients: bool = False
    ) -> None:
        self.names = (name,)
        self.claims = claims
        self.open_to_dynamic_clients = open_to_dynamic_clients

    def matches(self, value: str) -> bool:
        return value == self.names[0]

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Always granted: it opens the claims that are known of the subject."""
        return GrantedScope(value)


class Scopes:
    """All supported scopes: fixed names in a dict, patterns in order."""

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self.all = tuple(scopes)
        self._named = {name: scope for scope in self.all for name in scope.names}
        self._patterns = tuple(scope for scope in self.all if not scope.names)
        #: All claims that some scope opens.
        self.claims = frozenset(claim for scope in self.all for claim in scope.claims)
        open_scopes = (scope for scope in self.all if scope.open_to_dynamic_clients)
        #: Those that dynamic clients can request.
        self.dynamic_client_claims = frozenset(claim for scope in open_scopes for claim in scope.claims)

    def find_scope(self, value: str) -> Scope | None:
        named = self._named.get(value)
        return named or next((scope for scope in self._patterns if scope.matches(value)), None)

    def find_opening_scope(self, claim: str, names: Iterable[str]) -> str | None:
        """The first of these granted scopes that opens the claim."""
        return next((name for name in names if name in self._named and claim in self._named[name].claims), None)

    def scopes_for_claims(self, claims: Iterable[str]) -> tuple[str, ...]:
        """Fixed scopes that together open these claims, as far as any does."""
        names = (self.find_opening_scope(claim, self._named) for claim in claims)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def claims_opened(self, names: Iterable[str]) -> frozenset[str]:
        claims: frozenset[str] = frozenset()
        for name in names:
            scope = self._named.get(name)
            if scope is not None:
                claims |= scope.claims
        return claims


def required_organization(requested: Iterable[str], context: Context) -> Organization | None:
    """The organization to whose members these scopes limit the sign-in. Raises InvalidScope, also for two
    organizations."""
    found: Organization | None = None
    for value in requested:
        scope = context.protocol.scopes.find_scope(value)
        organization = None if scope is None else scope.organization(value, context)
        if organization is None:
            continue
        if found is not None and found.id != organization.id:
            raise InvalidScope(
                f"{value} names another organization than the scope before it", reason="scopes name two organizations"
            )
        found = organization
    return found


def require_member(subject: Subject, organization: Organization | None) -> None:
    """Raise AccessDenied unless the subject belongs to the required organization, if any."""
    if organization is not None and subject.organization.id != organization.id:
        raise AccessDenied("The user does not belong to the organization that the scope names.")


def resolve_scopes(authorization: Authorization, context: Context) -> GrantedScopes:
    """Grant the requested scopes; unknown ones are dropped.

    The audience is the application and its project, then what the scopes add, or the issuer if there is none. The
    service's own project is in it only by a scope. It is limited to what the authorization allows, and requested
    targets narrow it to themselves.

    Dynamic clients get the scopes that are open to them. Their project is in the audience only if
    ``ProjectService.filter_audience`` allows it.

    Raises InvalidScope with the scope's name; InvalidTarget for a target that is not in the audience."""
    names: list[str] = []
    audience: dict[str, None] = {}
    client, projects = authorization.client, context.services.projects
    is_dynamic = client is not None and client.application.is_dynamic
    if client is not None:
        audience[client.id] = None
        if is_dynamic:
            open_projects = projects.filter_audience(frozenset({client.project.id}), authorization.subject, client)
            audience.update(dict.fromkeys(open_projects))
        elif not projects.is_own_project(client.project.id):
            audience[client.project.id] = None
    for value in authorization.requested_scopes:
        scope = context.protocol.scopes.find_scope(value)
        if is_dynamic and scope is not None and not scope.open_to_dynamic_clients:
            continue
        granted = None if scope is None else scope.grant(value, authorization, context)
        if granted is not None:
            names.append(granted.value)
            audience.update(dict.fromkeys(granted.audience))
    found, allowed = tuple(audience) or (context.issuer,), authorization.allowed_audience
    if allowed is not None:
        found = tuple(item for item in found if item in allowed)
    targets = resolve_resources(authorization, context)
    found = tuple(dict.fromkeys((*found, *targets)))
    return GrantedScopes(tuple(names), _narrowed(found, (*authorization.requested_audience, *targets)))


def _narrowed(audience: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets if any, else the whole audience. Raises InvalidTarget for other targets."""
    if not set(targets) <= set(audience):
        raise InvalidTarget("a target is not among those that the scope opens", reason="unknown target")
    return tuple(dict.fromkeys(targets)) or audience


def resolve_scopes_without_client(subject: Subject, requested: tuple[str, ...], context: Context) -> tuple[str, ...]:
    """The scope values granted to a user for a token without an application; unknown ones are dropped. Raises
    InvalidScope with the scope's name."""
    authorization = Authorization(
        subject=subject,
        client=None,
        client_id=subject.user.id,
        requested_scopes=requested,
        authenticated_at=context.now,
    )
    return resolve_scopes(authorization, context).values

"""Explains in previews why each claim is included, and why others are missing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from identity.domain.messages import gettext_lazy
from identity.domain.projects import Project
from identity.domain.users import ServiceUser
from identity.provider.claims import scope_claims
from identity.provider.context import Context
from identity.provider.grant_type import Authorization
from identity.provider.role_claims import RoleScope, token_role_claims
from identity.provider.scope import GrantedScopes, Scope

#: Claims whose value differs in each token: the preview does not show its own.
VOLATILE_CLAIMS = frozenset({"jti", "at_hash", "c_hash", "sid", "nonce"})

_PROTOCOL_CLAIMS = {
    "iss": gettext_lazy("the issuer of this service"),
    "sub": gettext_lazy("the id of the user"),
    "aud": gettext_lazy("the audience: the application, its project, and what scopes add"),
    **dict.fromkeys(("azp", "client_id"), gettext_lazy("the client that it is issued to")),
    "scope": gettext_lazy("what was granted"),
    "iat": gettext_lazy("when it is issued"),
    "exp": gettext_lazy("when it expires"),
    "auth_time": gettext_lazy("when the user last authenticated"),
    **dict.fromkeys(("acr", "amr"), gettext_lazy("how the user authenticated")),
    "nonce": gettext_lazy("as the application sends it"),
    "jti": gettext_lazy("a new id for each token"),
    "sid": gettext_lazy("the id of the session"),
    "at_hash": gettext_lazy("ties the ID token to the access token"),
    "c_hash": gettext_lazy("ties the ID token to the code"),
    "active": gettext_lazy("the token is active, and the requesting application is in its audience"),
    "token_type": gettext_lazy("how the token is sent"),
    "username": gettext_lazy("the login name"),
}


class ClaimsCarrier(StrEnum):
    """What contains claims or leads to them."""

    CODE = "code"
    ACCESS_TOKEN = "access_token"  # noqa: S105 - a word of the protocol
    ID_TOKEN = "id_token"  # noqa: S105
    REFRESH_TOKEN = "refresh_token"  # noqa: S105
    USERINFO = "userinfo"
    INTROSPECTION = "introspection"


@dataclass(frozen=True, slots=True)
class ExplainedClaim:
    """A claim with the reason why it is included; ``value`` is None if it differs each time."""

    name: str
    value: object
    reason: str


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """Something requested or expected that is missing, and why."""

    name: str
    reason: str


class ClaimReasons:
    """Explains the claims in the tokens of one authorization."""

    def __init__(self, authorization: Authorization, granted: GrantedScopes, context: Context) -> None:
        subject, client, namespaces = authorization.subject, authorization.client, context.settings.urn_namespaces
        self.context, self._subject, self._client, self._scopes = context, subject, client, context.protocol.scopes
        self._requested_scopes, self.granted = authorization.requested_scopes, granted
        self._has_resources = bool(authorization.resources)
        self._user_claims = {} if subject is None else scope_claims(subject.user, granted.values, context)
        self._is_service_user = subject is not None and isinstance(subject.user, ServiceUser)
        self._roles = token_role_claims(subject, client, granted, context).values
        self._role_names = tuple(f"{namespace}:org:project" for namespace in namespaces)
        self._role_scopes = " ".join(value for value in granted.values if RoleScope.is_valid(value, namespaces))
        with context.services.read_session() as storage:
            self._projects: Mapping[str, Project] = storage.projects.find_many(granted.audience)

    def explain(
        self, carrier: ClaimsCarrier, claims: Mapping[str, Any], *, without_access_token: bool = False
    ) -> tuple[ExplainedClaim, ...]:
        """The claims of a carrier with their reasons; ``without_access_token`` for an ID token issued without one."""
        return tuple(
            ExplainedClaim(
                name,
                None if name in VOLATILE_CLAIMS else value,
                self._why(carrier, name, alone=without_access_token),
            )
            for name, value in claims.items()
        )

    def omitted_claims(self, carrier: ClaimsCarrier, claims: Mapping[str, Any]) -> Iterator[OmittedItem]:
        """What this token could contain and does not: roles, and the user's claims if it is an ID token."""
        lacks_roles = self._client is not None and self._roles and not self._roles.keys() & claims.keys()
        if lacks_roles and carrier is ClaimsCarrier.ACCESS_TOKEN:
            why = gettext_lazy("The application does not assert roles in access tokens.")
            yield OmittedItem(gettext_lazy("Role claims in the access token"), why)
        elif lacks_roles:
            why = gettext_lazy("The application does not assert roles in ID tokens.")
            yield OmittedItem(gettext_lazy("Role claims in the ID token"), why)
        missing = ", ".join(name for name in self._user_claims if name not in claims)
        if missing and carrier is ClaimsCarrier.ID_TOKEN:
            asks_itself = gettext_lazy("The client has an access token and can ask userinfo for them.")
            switched_off = gettext_lazy(
                "The application has an access token and can ask userinfo for them; “User Info inside ID Token” is off."
            )
            label = gettext_lazy("{claims} in the ID token", claims=missing)
            yield OmittedItem(label, asks_itself if self._client is None else switched_off)

    def omitted_scopes(self, requested: Iterable[str]) -> Iterator[OmittedItem]:
        """Requested scopes that were dropped, and granted ones that yield nothing."""
        for scope in dict.fromkeys(requested):
            if scope not in self.granted.values:
                yield OmittedItem(gettext_lazy("scope {scope}", scope=scope), self._why_dropped(scope))
        for scope in () if self._subject is None or self._is_service_user else self.granted.values:
            unknown = ", ".join(sorted(self._scopes.claims_opened((scope,)) - self._user_claims.keys()))
            if unknown:
                label = gettext_lazy("{claims} of the scope {scope}", claims=unknown, scope=scope)
                yield OmittedItem(label, gettext_lazy("It is unknown."))
        if self._subject is not None and self._role_scopes and not self._roles:
            why = gettext_lazy("The user has no such role in a project of the audience.")
            yield OmittedItem(gettext_lazy("Role claims"), why)

    def _why_dropped(self, scope: str) -> str:
        if self._scopes.find_scope(scope) is None:
            return gettext_lazy("There is no such scope.")
        if scope != Scope.OFFLINE_ACCESS:
            return gettext_lazy("Its namespace is not one of this service.")
        if self._client is None or self._subject is None:
            return gettext_lazy(
                "A client that acts for itself gets no refresh token: it can request a new token at any time."
            )
        if scope not in self._requested_scopes:
            return gettext_lazy("Without a code there is no refresh token.")
        return gettext_lazy("The application may not use refresh tokens.")

    def _why(self, carrier: ClaimsCarrier, name: str, *, alone: bool) -> str:
        if name == "aud" and self._has_resources and carrier is not ClaimsCarrier.ID_TOKEN:
            return gettext_lazy("the audience: the resources that the request names")
        if name == "sub" and self._client is not None and self._client.application.has_pairwise_subjects:
            return gettext_lazy("by which only this application, or others of its sector, know the user")
        if name in _PROTOCOL_CLAIMS:
            return _PROTOCOL_CLAIMS["client_id" if name == "sub" and self._subject is None else name]
        if name.startswith(self._role_names):
            return self._why_roles(carrier, name)
        scope = self._scopes.find_opening_scope(name, self.granted.values)
        if carrier is ClaimsCarrier.ID_TOKEN and scope is not None:
            if alone:
                return gettext_lazy("scope {scope}, and no access token comes with it", scope=scope)
            return gettext_lazy("scope {scope}, and “User Info inside ID Token” is on", scope=scope)
        if self._is_service_user and name in ("name", "preferred_username", "updated_at"):
            return gettext_lazy("always included for service users")
        scope = scope or self._find_yielding_scope(name)
        return gettext_lazy("a plugin adds it") if scope is None else gettext_lazy("scope {scope}", scope=scope)

    def _find_yielding_scope(self, claim: str) -> str | None:
        """The first scope for which plugins add the claim."""
        if self._subject is None:
            return None
        user, scopes = self._subject.user, self.granted.values
        return next((scope for scope in scopes if claim in scope_claims(user, (scope,), self.context)), None)

    def _why_roles(self, carrier: ClaimsCarrier, name: str) -> str:
        if carrier is ClaimsCarrier.ACCESS_TOKEN:
            return gettext_lazy("the application asserts roles in access tokens")
        if carrier is ClaimsCarrier.ID_TOKEN:
            return gettext_lazy("the application asserts roles in ID tokens")
        if not self._role_scopes:
            return gettext_lazy("role assertion of the project")
        about = [project for project in self._projects.values() if f":{project.id}:" in name]
        own_id = None if self._client is None else self._client.project.id
        fixed_name = (project for project in self._projects.values() if own_id in (None, project.id))
        if any(project.assert_roles for project in about or fixed_name):
            return gettext_lazy("scope {scope}, and role assertion of the project", scope=self._role_scopes)
        return gettext_lazy("scope {scope}", scope=self._role_scopes)

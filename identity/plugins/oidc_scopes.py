"""openid and the claims scopes of OpenID Connect Core §5.4."""

from collections.abc import Iterable

from identity.api.endpoints import Context
from identity.api.entities import HumanUser
from identity.api.grants import Authorization, ClaimsScope, GrantedScope, Scope
from identity.api.plugins import hookimpl

CLAIMS = {
    Scope.OPENID: frozenset[str](),
    "profile": frozenset(
        {
            "name",
            "family_name",
            "given_name",
            "middle_name",
            "nickname",
            "preferred_username",
            "profile",
            "picture",
            "website",
            "gender",
            "birthdate",
            "zoneinfo",
            "locale",
            "updated_at",
        }
    ),
    "email": frozenset({"email", "email_verified"}),
    "phone": frozenset({"phone_number", "phone_number_verified"}),
    "address": frozenset({"address"}),
}


class OfflineAccessScope(Scope):
    """Requests a refresh token; dropped for clients that cannot use one (OpenID Connect Core §11)."""

    names = (Scope.OFFLINE_ACCESS,)
    open_to_dynamic_clients = True

    def matches(self, value: str) -> bool:
        """True for the name itself."""
        return value == Scope.OFFLINE_ACCESS

    def grant(self, value: str, authorization: Authorization, context: Context) -> GrantedScope | None:
        """Granted to applications with the refresh grant, for human users only."""
        subject, client = authorization.subject, authorization.client
        if client is None or subject is None or not isinstance(subject.user, HumanUser):
            return None
        return GrantedScope(value) if "refresh_token" in client.application.grant_types else None


class OidcScopesPlugin:
    """The scopes ``openid``, ``profile``, ``email``, ``phone``, ``address`` and ``offline_access``."""

    hookspecs = 1

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The standard claims scopes."""
        claims_scopes = (ClaimsScope(name, claims, open_to_dynamic_clients=True) for name, claims in CLAIMS.items())
        return [*claims_scopes, OfflineAccessScope()]

"""openid and the claims scopes of OpenID Connect Core §5.4."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.provider.scope import OPENID, ClaimsScope, Scope

CLAIMS = {
    OPENID: frozenset[str](),
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


class Plugin:
    """Offers openid, profile, email, phone and address."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The standard claims scopes."""
        return [ClaimsScope(name, claims) for name, claims in CLAIMS.items()]

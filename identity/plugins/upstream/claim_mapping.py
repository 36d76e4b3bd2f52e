"""Maps a provider's claims to a profile by the provider's claim mapping; invalid values are left out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from identity.api.entities import Invalid, UpstreamKind, UpstreamProvider
from identity.api.services import ChangeProfile
from identity.plugins.upstream.http_client import ProviderResponseError, parse_json_object
from identity.plugins.upstream.provider_clients import ExternalUser


def map_claims(provider: UpstreamProvider, claims: Mapping[str, Any]) -> dict[str, str]:
    """The profile fields and user name in the claims, without invalid values."""
    found: dict[str, str] = {}
    for name, claim in provider.claim_mapping.items():
        value = claims.get(claim) if claim else None
        if not isinstance(value, str) or not value.strip():
            continue
        if name == "user_name" or _is_valid(name, value):
            found[name] = value.strip()
    if found.get("given_name") and found.get("family_name"):
        # The display name derives from these.
        found.pop("display_name", None)
    return found


def profile_command(found: Mapping[str, str], *, with_email: bool) -> ChangeProfile:
    """The command that updates a profile with these values."""
    left_out = {"user_name"} if with_email else {"user_name", "email"}
    return ChangeProfile.decode({name: value for name, value in found.items() if name not in left_out})


def _is_valid(name: str, value: str) -> bool:
    try:
        ChangeProfile.decode({name: value})
    except Invalid:
        return False
    return True


def merge_apple_name(provider: UpstreamProvider, external_user: ExternalUser, user: str) -> ExternalUser:
    """The identity with the name that Apple sends only the first time, unsigned in the authorization response."""
    if provider.kind is not UpstreamKind.APPLE or not user:
        return external_user
    try:
        name = parse_json_object(user.encode("utf-8", "replace")).get("name")
    except ProviderResponseError:
        return external_user
    parts = name if isinstance(name, dict) else {}
    unsigned_claims = {"given_name": parts.get("firstName"), "family_name": parts.get("lastName")}
    return replace(external_user, unsigned_claims=unsigned_claims)

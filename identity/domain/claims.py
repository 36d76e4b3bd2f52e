"""Names of claims that tokens use, and names that organizations may give to claims of their own."""

import re

from identity.domain.messages import gettext_lazy

#: Set only by the service.
RESERVED_CLAIMS = frozenset(
    {
        "iss", "sub", "aud", "exp", "iat", "nbf", "jti", "azp", "nonce", "auth_time", "acr", "amr", "at_hash", "c_hash",
        "sid", "client_id", "scope", "active", "token_type", "username", "act",
    }
)  # fmt: skip

#: Claims about users that every client knows (OpenID Connect Core §5.1): their values come from the profile.
_STANDARD_CLAIMS = frozenset(
    {
        "name", "given_name", "family_name", "middle_name", "nickname", "preferred_username", "profile", "picture",
        "website", "email", "email_verified", "gender", "birthdate", "zoneinfo", "locale", "phone_number",
        "phone_number_verified", "address", "updated_at",
    }
)  # fmt: skip
#: Claims by which clients and APIs authorize, bind or verify (RFC 7519, RFC 7800, RFC 8485, RFC 8693, RFC 9068,
#: RFC 9396, RFC 9470, OpenID Connect for Identity Assurance, and common products).
_AUTHORIZATION_CLAIMS = frozenset(
    {
        "roles", "role", "groups", "group", "entitlements", "permissions", "permission", "authorities",
        "authorization_details", "scp", "scopes", "cnf", "may_act", "vot", "vtm", "events", "toe", "txn", "s_hash",
        "sub_id", "sub_jwk", "verified_claims", "realm_access", "resource_access", "tid", "oid", "upn", "hd", "wids",
        "admin", "is_admin", "login", "user_id", "uid", "ver", "typ", "alg", "kid", "error", "error_description",
    }
)  # fmt: skip
#: Names that no attribute may have as a claim, in any case.
UNAVAILABLE_CLAIMS = RESERVED_CLAIMS | _STANDARD_CLAIMS | _AUTHORIZATION_CLAIMS

#: A word, or an URL as namespace (RFC 7519 §4.2). Without other colons no name is in the service's namespaces.
_OWN_CLAIM = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,99}|https://[A-Za-z0-9][A-Za-z0-9./_-]{0,190})\Z")


def own_claim_error(name: str) -> str | None:
    """What is wrong with the name of an organization's own claim, as a sentence, or None."""
    if not _OWN_CLAIM.match(name):
        return gettext_lazy("Use letters, digits, dots, hyphens and underscores, or an address with https://.")
    if name.lower() in UNAVAILABLE_CLAIMS:
        return gettext_lazy("Choose another name: this claim has a meaning of its own.")
    return None

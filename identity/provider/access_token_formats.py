"""Access tokens in the format JWT (RFC 9068)."""

from collections.abc import Callable, Mapping
from typing import Any

from identity.crypto.jwt import sign
from identity.crypto.signature_keys import ExternalKey, PrivateKey
from identity.domain.authentication import authentication_claims
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.tokens import AccessToken, confirmation_claim
from identity.domain.users import ServiceUser
from identity.provider.claims import merge_plugin_claims, scope_claims
from identity.provider.context import Context
from identity.provider.grant_type import Authorization
from identity.provider.scope import GrantedScopes, Scope

JWT_TYPE = "at+jwt"

#: Returns the id and the private key to sign with, of the service's default algorithm for None; called only if
#: something is signed.
SigningKeyGetter = Callable[[SignatureAlgorithm | None], tuple[str, PrivateKey | ExternalKey]]


def response_algorithm(authorization: Authorization) -> SignatureAlgorithm | None:
    """The algorithm that the client chose for ID tokens and access tokens; None for the default."""
    if authorization.client is not None:
        return authorization.client.application.id_token_signed_response_alg
    user = None if authorization.subject is None else authorization.subject.user
    return user.id_token_signed_response_alg if isinstance(user, ServiceUser) else None


def new_jwt_access_token(
    token: AccessToken,
    authorization: Authorization,
    granted: GrantedScopes,
    context: Context,
    *,
    roles: Mapping[str, Any],
    key: SigningKeyGetter,
) -> str:
    """A signed token that resource servers can read: typ at+jwt, with the claims of RFC 9068 §2.2 and these of the
    user's roles."""
    claims: dict[str, Any] = {
        "iss": context.issuer,
        "sub": token.subject,
        "aud": list(token.audience),
        "client_id": token.client_id,
        "scope": granted.scope_string,
        "jti": token.id,
        "iat": int(token.issued_at.timestamp()),
        "exp": int(token.expires_at.timestamp()),
    }
    claims |= token.actor_claim() | confirmation_claim(token.confirmation)
    if authorization.methods:
        claims |= authentication_claims(authorization.methods, authorization.acr, authorization.authenticated_at)
    client = authorization.client
    subject = authorization.subject
    if client is not None and client.application.access_token_userinfo_assertion and subject is not None:
        user_claims = scope_claims(subject.user, granted.values, context) if Scope.OPENID in granted else {}
        claims = {**user_claims, **claims}
    claims |= roles
    hooks = context.protocol.token_claims
    if hooks:
        merge_plugin_claims(claims, hooks, context, authorization=authorization, granted=granted)
    key_id, private_key = key(response_algorithm(authorization))
    return sign(claims, private_key, key_id=key_id, typ=JWT_TYPE)

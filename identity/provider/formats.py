"""The two forms of an access token: opaque, and JWT (RFC 9068)."""

from collections.abc import Callable
from typing import Any

from identity.crypto.jwt import sign
from identity.crypto.keys import PrivateKey
from identity.crypto.secrets import new_token
from identity.domain.authentication import acr_of, amr_of
from identity.domain.tokens import AccessToken, IssuedToken
from identity.provider.claims import claims_about, contribute
from identity.provider.context import Context
from identity.provider.grant import Authorization
from identity.provider.roles import role_claims
from identity.provider.scope import OPENID, GrantedScopes

JWT_TYPE = "at+jwt"

#: Gives the key to sign with and its id, where something is signed at all.
SigningKeySource = Callable[[], tuple[str, PrivateKey]]


def opaque() -> str:
    """A token that says nothing: 256 random bits."""
    return new_token()


def jwt(
    token: AccessToken, authorization: Authorization, granted: GrantedScopes, context: Context, *, key: SigningKeySource
) -> str:
    """A token that resource servers can read: signed, typ at+jwt, with the claims of RFC 9068 §2.2."""
    claims: dict[str, Any] = {
        "iss": context.issuer,
        "sub": token.subject,
        "aud": list(token.audience),
        "client_id": token.client_id,
        "scope": granted.text,
        "jti": token.id,
        "iat": int(token.issued_at.timestamp()),
        "exp": int(token.expires_at.timestamp()),
    }
    claims |= acting(token)
    if authorization.methods:
        claims |= {**proved(authorization), "auth_time": int(authorization.authenticated_at.timestamp())}
    client = authorization.client
    subject = authorization.subject
    if client is not None and client.application.access_token_userinfo_assertion and subject is not None:
        told = claims_about(subject.user, granted.words, context) if OPENID in granted else {}
        claims = {**told, **claims}
    if client is not None and client.application.assert_roles_in_access_token:
        claims |= role_claims(authorization.subject, client, granted, context)
    hooks = context.protocol.token_claims
    if hooks:
        contribute(claims, hooks, context, authorization=authorization, granted=granted)
    key_id, private_key = key()
    return sign(claims, private_key, key_id=key_id, typ=JWT_TYPE)


def proved(authorization: Authorization | IssuedToken) -> dict[str, Any]:
    """The claims ``amr`` and ``acr``: how somebody proved to be it (OpenID Connect Core §2, RFC 9068 §2.2.1)."""
    methods = authorization.methods
    amr = amr_of(methods)
    return ({"amr": amr} if amr else {}) | {"acr": authorization.acr or acr_of(methods)}


def acting(token: AccessToken) -> dict[str, Any]:
    """The claim ``act``: who acts for the subject, and whom they act for in turn (RFC 8693 §4.1); empty for nobody."""
    claims: dict[str, Any] = {}
    for actor in reversed(token.actors):
        claims = {"act": {"sub": actor, **claims}}
    return claims

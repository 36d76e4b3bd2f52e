"""From an Authorization and granted scopes to tokens: the only place where tokens are minted."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from identity.crypto.jwt import half_hash
from identity.crypto.secrets import digest, new_id
from identity.domain.tokens import AccessToken
from identity.domain.users import ServiceUser, TokenFormat
from identity.provider import formats
from identity.provider.claims import claims_about
from identity.provider.errors import InvalidGrant
from identity.provider.grant import Authorization
from identity.provider.oidc import IdTokenContent
from identity.provider.request import Context
from identity.provider.scope import OPENID, GrantedScopes
from identity.services.signing_keys import ALGORITHM
from identity.storage.errors import Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokens:
    """What a token answer carries; ``expires_in`` in seconds."""

    access_token: str
    expires_in: int
    scope: str
    id_token: str | None = None

    def members(self) -> dict[str, Any]:
        """The answer's members (service description §2.4); what is absent is left out."""
        members: dict[str, Any] = {
            "access_token": self.access_token,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "scope": self.scope,
        }
        if self.id_token is not None:
            members["id_token"] = self.id_token
        return members


def issue(authorization: Authorization, granted: GrantedScopes, context: Context) -> IssuedTokens:
    """Mint, record and return the tokens of one authorization."""
    token, text = _access_token(authorization, granted, context)
    id_token = None
    if authorization.id_token and OPENID in granted:
        id_token = _id_token(authorization, granted, text, context)
    # Recorded last: unless the grant had to note something, the write begins here, after the signature. What was looked
    # up before may be gone by now.
    try:
        context.services.tokens.record(token)
    except Missing:
        raise InvalidGrant("the grant is not valid any more") from None
    expires_in = int((token.expires_at - token.issued_at).total_seconds())
    return IssuedTokens(access_token=text, expires_in=expires_in, scope=granted.text, id_token=id_token)


def _access_token(authorization: Authorization, granted: GrantedScopes, context: Context) -> tuple[AccessToken, str]:
    user = None if authorization.subject is None else authorization.subject.user
    client = authorization.client
    unsigned = AccessToken(
        id=new_id(),
        digest=b"",
        format=_format(authorization),
        subject=authorization.client_id if user is None else user.id,
        user_id=None if user is None else user.id,
        client_id=authorization.client_id,
        application_id=None if client is None else client.id,
        key_id=authorization.key_id,
        family_id=authorization.family_id,
        session_id=authorization.session_id,
        scope=granted.words,
        audience=granted.audience,
        issued_at=context.now,
        expires_at=context.now + _access_token_lifetime(authorization, context),
    )
    if unsigned.format is TokenFormat.JWT:
        text = formats.jwt(unsigned, authorization, granted, context)
    else:
        text = formats.opaque()
    return replace(unsigned, digest=digest(text)), text


def _id_token(authorization: Authorization, granted: GrantedScopes, access_token: str, context: Context) -> str:
    assert_userinfo = authorization.client is not None and authorization.client.application.id_token_userinfo_assertion
    subject = authorization.subject
    claims: dict[str, Any] = {"at_hash": half_hash(access_token, ALGORITHM)}
    if assert_userinfo and subject is not None:
        claims |= claims_about(subject.user, granted.words, context)
    if authorization.session_id is not None:
        claims["sid"] = authorization.session_id
    content = IdTokenContent(
        subject=authorization.client_id if subject is None else subject.user.id,
        client_id=authorization.client_id,
        issued_at=context.now,
        lifetime=_id_token_lifetime(authorization, context),
        authenticated_at=authorization.authenticated_at,
        nonce=authorization.nonce,
        claims=claims,
    )
    return context.provider.id_token(content, key=context.services.signing_keys.current())


def _format(authorization: Authorization) -> TokenFormat:
    if authorization.client is not None:
        return authorization.client.application.access_token_type
    user = None if authorization.subject is None else authorization.subject.user
    return user.access_token_type if isinstance(user, ServiceUser) else TokenFormat.OPAQUE


def _access_token_lifetime(authorization: Authorization, context: Context) -> timedelta:
    settings = context.settings
    if authorization.client is not None and authorization.client.application.access_token_lifetime is not None:
        return authorization.client.application.access_token_lifetime
    if authorization.subject is not None and isinstance(authorization.subject.user, ServiceUser):
        return max(settings.access_token_lifetime, settings.service_user_token_min_lifetime)
    return settings.access_token_lifetime


def _id_token_lifetime(authorization: Authorization, context: Context) -> timedelta:
    own = None if authorization.client is None else authorization.client.application.id_token_lifetime
    return own or context.settings.id_token_lifetime

"""Issue tokens from an Authorization and granted scopes. Tokens are minted only here."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from identity.crypto.jwt import UnverifiedToken, sign
from identity.crypto.secrets import new_id, new_token, token_digest
from identity.domain.authentication import authentication_claims
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.expirations import earliest
from identity.domain.security_profiles import MAX_CODE_LIFETIME
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily, actor_claim, confirmation_claim
from identity.domain.users import ServiceUser, TokenFormat
from identity.domain.validators import MAX_TOKEN_LIFETIME
from identity.provider.access_token_formats import SigningKeyGetter, new_jwt_access_token, response_algorithm
from identity.provider.claims import requested_claims, scope_claims
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant
from identity.provider.grant_type import Authorization, OutgoingAssertion
from identity.provider.role_claims import RoleClaims, token_role_claims
from identity.provider.scope import GrantedScopes, Scope
from identity.provider.sender_constraint import BEARER, token_type
from identity.storage.errors import RowNotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokens:
    """Tokens of a response; ``expires_in`` is in seconds, of the access token or else of the ID token."""

    scope: str
    expires_in: int
    access_token: str | None = None
    id_token: str | None = None
    refresh_token: str | None = None
    token_type: str = BEARER

    def response_members(self) -> dict[str, Any]:
        """Members of the response (service description §2.4), without absent ones."""
        members: dict[str, Any] = {"token_type": self.token_type, "expires_in": self.expires_in, "scope": self.scope}
        tokens = {
            "access_token": self.access_token,
            "id_token": self.id_token,
            "refresh_token": self.refresh_token,
        }
        return members | {name: text for name, text in tokens.items() if text is not None}


@dataclass(frozen=True, slots=True)
class MintedTokens:
    """Tokens in clear text, the rows to store, and what they were minted from."""

    authorization: Authorization
    granted: GrantedScopes
    tokens: IssuedTokens
    access_token: AccessToken | None
    refresh_token: RefreshToken | None


def store_tokens(minted: MintedTokens, context: Context) -> None:
    """Make minted tokens valid, as the last write of the transaction. Raises InvalidGrant if the grant has ended."""
    credential = minted.authorization.single_use_credential
    try:
        if minted.authorization.provider_id is not None:
            context.services.tokens.store_family(new_family(minted.authorization, minted.granted, context))
        if credential is not None:
            credential.consume(minted.access_token, minted.refresh_token, context)
        elif minted.access_token is not None:
            context.services.tokens.store_access_token(minted.access_token)
    except RowNotFound:
        raise InvalidGrant("the grant is not valid any more") from None
    context.activity.issue_tokens(minted.authorization.client, minted.authorization.subject)


def mint_tokens(
    authorization: Authorization,
    granted: GrantedScopes,
    context: Context,
    *,
    key: SigningKeyGetter,
    access_token: bool = True,
    code: str | None = None,
) -> MintedTokens:
    """The tokens of one authorization, signed with this key; they are not valid until they are stored. Only an ID token
    without ``access_token``; it contains the hash of a ``code`` in the same response. Unless the grant had to write
    before, nothing is written until the signatures are there."""
    if authorization.assertion is not None:
        return MintedTokens(
            authorization, granted, _assertion(authorization, authorization.assertion, context, key), None, None
        )
    if authorization.provider_id is not None:
        authorization = replace(authorization, family_id=new_id())
    token, text = _access_token(authorization, granted, context, key) if access_token else (None, None)
    id_token = None
    if authorization.includes_id_token and Scope.OPENID in granted:
        id_token = _id_token(authorization, granted, text, context, key, code=code)
    refresh, refresh_text = _refresh_token(authorization, context)
    lifetime = _id_token_lifetime(authorization, context) if token is None else token.expires_at - token.issued_at
    tokens = IssuedTokens(
        scope=granted.scope_string,
        expires_in=int(lifetime.total_seconds()),
        access_token=text,
        id_token=id_token,
        refresh_token=refresh_text,
        token_type=token_type(authorization.confirmation, context),
    )
    return MintedTokens(authorization, granted, tokens, token, refresh)


def _assertion(
    authorization: Authorization, assertion: OutgoingAssertion, context: Context, key: SigningKeyGetter
) -> IssuedTokens:
    """The assertion in the place of an access token, which it is not (RFC 8693 §2.2.1)."""
    if authorization.subject is None:
        raise ValueError("an assertion needs a subject")
    key_id, private_key = key(response_algorithm(authorization))
    lifetime = _cap_lifetime(assertion.lifetime, authorization, None, context)
    scope = " ".join(assertion.scope)
    claims = {
        "iss": context.issuer,
        "sub": _identify(authorization.subject.user.id, authorization, context),
        "aud": assertion.audience,
        "iat": int(context.now.timestamp()),
        "exp": int((context.now + lifetime).timestamp()),
        "jti": new_id(),
        **authentication_claims(authorization.methods, authorization.acr, authorization.authenticated_at),
        **({"scope": scope} if scope else {}),
        **confirmation_claim(authorization.confirmation),
        **assertion.claims,
    }
    return IssuedTokens(
        scope=scope,
        expires_in=int(lifetime.total_seconds()),
        access_token=sign(claims, private_key, key_id=key_id, typ=assertion.type),
        token_type="N_A",  # noqa: S106 - a name of RFC 8693
    )


def new_code(
    authorization: Authorization,
    granted: GrantedScopes,
    context: Context,
    *,
    redirect_uri: str,
    code_challenge: str | None,
) -> tuple[str, AuthorizationCode]:
    """A code for the tokens of the authorization's family, and its row (RFC 6749 §4.1.2)."""
    if authorization.subject is None or authorization.family_id is None:
        raise ValueError("a code is about a person, and brings a family of tokens")
    text = new_token()
    code = AuthorizationCode(
        digest=token_digest(text),
        family_id=authorization.family_id,
        client_id=authorization.client_id,
        user_id=authorization.subject.user.id,
        redirect_uri=redirect_uri,
        scope=granted.values,
        issued_at=context.now,
        expires_at=context.now + _code_lifetime(authorization, context),
        authenticated_at=authorization.authenticated_at,
        session_id=authorization.session_id,
        nonce=authorization.nonce,
        code_challenge=code_challenge,
        confirmation=authorization.confirmation,
    )
    return text, code


def _code_lifetime(authorization: Authorization, context: Context) -> timedelta:
    lifetime, client = context.settings.authorization_code_lifetime, authorization.client
    has_profile = client is not None and client.application.security_profile is not None
    return min(lifetime, MAX_CODE_LIFETIME) if has_profile else lifetime


def new_family(authorization: Authorization, granted: GrantedScopes, context: Context) -> TokenFamily:
    """The family of all tokens from one sign-in of one person at one client."""
    if authorization.subject is None or authorization.client is None or authorization.family_id is None:
        raise ValueError("a family has an id, and is about a person and an application")
    offline = Scope.OFFLINE_ACCESS in granted
    settings = context.settings
    longest = settings.refresh_token_max_age if offline else MAX_TOKEN_LIFETIME
    return TokenFamily(
        id=authorization.family_id,
        user_id=authorization.subject.user.id,
        client_id=authorization.client.id,
        scope=granted.values,
        started_at=context.now,
        # As long as its family is kept, a used code can be distinguished from an unknown one.
        ends_at=_family_end(authorization, context.now + settings.authorization_code_lifetime + longest),
        session_id=authorization.session_id,
        offline=offline,
        methods=authorization.methods,
        acr=authorization.acr,
        authenticated_at=authorization.authenticated_at,
        userinfo_claims=authorization.userinfo_claims,
        id_token_claims=authorization.id_token_claims,
        impersonator_id=authorization.impersonator_id,
        resources=authorization.resources or None,
        provider_id=authorization.provider_id,
    )


def _family_end(authorization: Authorization, latest: datetime) -> datetime:
    """The end of a family; that of the authorization ends all of its tokens."""
    return latest if authorization.ends_at is None else min(latest, authorization.ends_at)


def _refresh_token(authorization: Authorization, context: Context) -> tuple[RefreshToken | None, str | None]:
    refreshing = authorization.refresh_token_terms
    if refreshing is None or authorization.subject is None or authorization.family_id is None:
        return None, None
    if authorization.impersonator_id is not None:
        return None, None
    text = new_token()
    ends_at = refreshing.ends_at if authorization.ends_at is None else min(refreshing.ends_at, authorization.ends_at)
    token = RefreshToken(
        id=new_id(),
        digest=token_digest(text),
        family_id=authorization.family_id,
        user_id=authorization.subject.user.id,
        client_id=authorization.client_id,
        scope=refreshing.scope,
        issued_at=context.now,
        expires_at=min(context.now + context.settings.refresh_token_idle_timeout, ends_at),
        ends_at=ends_at,
        authenticated_at=authorization.authenticated_at,
        session_id=authorization.session_id,
        predecessor_id=refreshing.predecessor_id,
        # Those of other clients are bound to the client, which authenticates (RFC 9449 §5).
        confirmation=authorization.confirmation if _is_public(authorization) else None,
    )
    return token, text


def _is_public(authorization: Authorization) -> bool:
    return authorization.client is not None and authorization.client.application.is_public


def _access_token(
    authorization: Authorization, granted: GrantedScopes, context: Context, key: SigningKeyGetter
) -> tuple[AccessToken, str]:
    user = None if authorization.subject is None else authorization.subject.user
    client = authorization.client
    form = _format(authorization)
    roles = RoleClaims()
    if form is TokenFormat.JWT and client is not None and client.application.assert_roles_in_access_token:
        roles = token_role_claims(authorization.subject, client, granted, context)
    new_id_token = partial(
        AccessToken,
        id=new_id(),
        format=form,
        subject=authorization.client_id if user is None else _identify(user.id, authorization, context),
        user_id=None if user is None else user.id,
        client_id=authorization.client_id,
        application_id=None if client is None else client.id,
        key_id=authorization.key_id,
        federated_credential_id=authorization.federated_credential_id,
        secret_id=authorization.secret_id,
        client_secret_id=authorization.client_secret_id,
        family_id=authorization.family_id,
        session_id=authorization.session_id,
        scope=granted.values,
        audience=granted.audience,
        issued_at=context.now,
        expires_at=context.now + _access_token_lifetime(authorization, context, roles.ends_at),
        actors=_acting_subjects(authorization, context),
        confirmation=authorization.confirmation,
        ancestors=authorization.ancestors or None,
    )
    if form is TokenFormat.JWT:
        text = new_jwt_access_token(
            new_id_token(digest=b""), authorization, granted, context, roles=roles.values, key=key
        )
    else:
        text = new_token()
    return new_id_token(digest=token_digest(text)), text


def _id_token(
    authorization: Authorization,
    granted: GrantedScopes,
    access_token: str | None,
    context: Context,
    key: SigningKeyGetter,
    *,
    code: str | None,
) -> str:
    application = None if authorization.client is None else authorization.client.application
    subject = authorization.subject
    # With an access token, or a code for one, the client can request the rest itself (OpenID Connect Core §5.4).
    is_alone = access_token is None and code is None
    assert_userinfo = is_alone or (application is not None and application.id_token_userinfo_assertion)
    signing_key = key(response_algorithm(authorization))
    algorithm = signing_key[1].algorithm
    claims: dict[str, Any] = {}
    if access_token is not None:
        claims["at_hash"] = UnverifiedToken.left_half_hash(access_token, algorithm)
    if code is not None:
        claims["c_hash"] = UnverifiedToken.left_half_hash(code, algorithm)
    if authorization.methods:
        claims |= authentication_claims(authorization.methods, authorization.acr)
    if assert_userinfo and subject is not None:
        claims |= scope_claims(subject.user, granted.values, context)
    if subject is not None:
        claims |= requested_claims(subject.user, authorization.id_token_claims, context)
    roles = RoleClaims()
    if application is not None and application.assert_roles_in_id_token:
        roles = token_role_claims(authorization.subject, authorization.client, granted, context)
        claims |= roles.values
    if authorization.session_id is not None:
        claims["sid"] = authorization.session_id
    if authorization.impersonator_id is not None:
        claims |= actor_claim(_acting_subjects(authorization, context))
    return context.provider.id_token(
        key=signing_key,
        subject=authorization.client_id if subject is None else _identify(subject.user.id, authorization, context),
        client_id=authorization.client_id,
        issued_at=context.now,
        lifetime=_id_token_lifetime(authorization, context, roles.ends_at),
        authenticated_at=authorization.authenticated_at,
        nonce=authorization.nonce,
        claims=claims,
    )


def _identify(user_id: str, authorization: Authorization, context: Context) -> str:
    """The ``sub`` of a user for the client. Nothing is constructed and read for public ones."""
    client = authorization.client
    if client is None or not client.application.has_pairwise_subjects:
        return user_id
    return context.services.subject_identifiers.identify(user_id, client)


def _acting_subjects(authorization: Authorization, context: Context) -> tuple[str, ...]:
    """The members of the claim ``act``; the grant named those of an actor's token as the client knows them."""
    if authorization.impersonator_id is None:
        return authorization.actors
    return (_identify(authorization.impersonator_id, authorization, context), *authorization.actors)


def _format(authorization: Authorization) -> TokenFormat:
    if authorization.client is not None:
        return authorization.client.application.access_token_type
    user = None if authorization.subject is None else authorization.subject.user
    return user.access_token_type if isinstance(user, ServiceUser) else TokenFormat.OPAQUE


def _access_token_lifetime(authorization: Authorization, context: Context, roles_end_at: datetime | None) -> timedelta:
    settings = context.settings
    lifetime = settings.access_token_lifetime
    if authorization.client is not None and authorization.client.application.access_token_lifetime is not None:
        lifetime = authorization.client.application.access_token_lifetime
    elif authorization.subject is not None and isinstance(authorization.subject.user, ServiceUser):
        lifetime = max(lifetime, settings.service_user_token_min_lifetime)
    return _cap_lifetime(lifetime, authorization, roles_end_at, context)


def _id_token_lifetime(
    authorization: Authorization, context: Context, roles_end_at: datetime | None = None
) -> timedelta:
    configured = None if authorization.client is None else authorization.client.application.id_token_lifetime
    return _cap_lifetime(configured or context.settings.id_token_lifetime, authorization, roles_end_at, context)


def _cap_lifetime(
    lifetime: timedelta, authorization: Authorization, roles_end_at: datetime | None, context: Context
) -> timedelta:
    """The lifetime, limited by the end of the authorization and of the roles in the token. Raises InvalidGrant after
    it."""
    ends_at = earliest((authorization.ends_at, roles_end_at))
    if ends_at is None:
        return lifetime
    left = ends_at - context.now
    if left < timedelta(seconds=1):
        raise InvalidGrant("what was presented has ended")
    return min(lifetime, left)

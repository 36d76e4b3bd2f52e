"""Token preview: which tokens and claims a user and an application would get, and why; nothing is issued or stored.

It runs the code of real requests (``authorization_from_sign_in``, the grants,
``authorization_checks.check_and_resolve_scopes``, ``token_issuance.mint_tokens``) up to the point where tokens are
stored, with a signing key that is never published.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from identity.crypto.jwt import UnverifiedToken
from identity.crypto.rsa_keys import RsaPrivateKey
from identity.crypto.secrets import new_id
from identity.domain.applications import ApplicationClient
from identity.domain.authentication import Proof
from identity.domain.authorization_codes import PresentedCode
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.tokens import PresentedAccessToken, PresentedRefreshToken
from identity.domain.users import HumanUser, ServiceUser, Subject, TokenFormat
from identity.provider.authorization_checks import check_and_resolve_scopes
from identity.provider.authorization_request import require_response_type
from identity.provider.claim_reasons import ClaimReasons, ClaimsCarrier, ExplainedClaim
from identity.provider.claims import scope_claims
from identity.provider.claims_request import ClaimsRequest
from identity.provider.consent import lacks_consent
from identity.provider.context import Context
from identity.provider.endpoint import ClaimsPreview
from identity.provider.endpoints.token import require_grant_type
from identity.provider.errors import (
    AccessDenied,
    InsufficientScope,
    InvalidClient,
    InvalidGrant,
    InvalidRequest,
    OAuthError,
    UnknownApplication,
)
from identity.provider.grant_type import Authorization, ClientRequirement, GrantType, PreviewInput, PreviewUnsupported
from identity.provider.response_type import Artifact
from identity.provider.role_claims import token_role_claims
from identity.provider.scope import GrantedScopes, Scope, required_organization
from identity.provider.sign_in_authorization import authorization_from_sign_in
from identity.provider.token_issuance import MintedTokens, mint_tokens, new_code, new_family

_LONGEST = 1024 * 1024

_NO_ROLES = {
    ClaimsCarrier.ACCESS_TOKEN: (
        gettext_lazy("Role claims in the access token"),
        gettext_lazy("The application does not assert roles in access tokens."),
    ),
    ClaimsCarrier.ID_TOKEN: (
        gettext_lazy("Role claims in the ID token"),
        gettext_lazy("The application does not assert roles in ID tokens."),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedClaims:
    """Claims of a token, or of a response about the access token. ``format`` is that of an access token."""

    carrier: ClaimsCarrier
    claims: tuple[ExplainedClaim, ...] = ()
    format: TokenFormat | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """Something requested or expected that is missing, and why."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class GrantPreview:
    """Result of one grant type, or of the sign-in (None). ``error`` is the error that the client would get."""

    grant_type: str | None
    granted: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    previewed_claims: tuple[PreviewedClaims, ...] = ()
    omitted: tuple[OmittedItem, ...] = ()
    error: OAuthError | None = None


@dataclass(frozen=True, slots=True)
class TokenPreviewResult:
    """Result by grant type, and the grant types that do not support previews."""

    grant_previews: tuple[GrantPreview, ...]
    unsupported_grant_types: tuple[str, ...]


def preview_tokens(
    subject: Subject | None,
    client: ApplicationClient | None,
    requested_scopes: tuple[str, ...],
    response_type: str,
    context: Context,
) -> TokenPreviewResult:
    """Everything that a user, an application, or both together would get for the requested scopes.

    A person signs in to the application with an authorization request of this ``response_type``. Then every grant
    type is previewed, and again once another one has yielded the code or token it requires.
    """
    run = _PreviewRun(PreviewInput(subject=subject, client=client, requested_scopes=requested_scopes), context)
    if client is not None and subject is not None and isinstance(subject.user, HumanUser):
        run.sign_in(subject, client, response_type)
    if not any(grant_preview_builder.refusal for grant_preview_builder in run.builders):
        run.ask(context.protocol.grant_types.values())
    return TokenPreviewResult(
        tuple(grant_preview_builder.build() for grant_preview_builder in run.builders), tuple(run.unsupported)
    )


@cache
def _nobodys_key() -> tuple[str, RsaPrivateKey]:
    """A key that is never published: its signatures are worthless."""
    return "preview", RsaPrivateKey.generate()


@dataclass
class _PreviewRun:
    """One preview; its input grows with the codes and tokens obtained."""

    supposed: PreviewInput
    context: Context
    builders: "list[_GrantPreviewBuilder]" = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)

    def sign_in(self, subject: Subject, client: ApplicationClient, response_type: str) -> None:
        """Preview the authorization endpoint."""
        requested, context = self.supposed.requested_scopes, self.context
        with self._collect(None) as grant_preview_builder:
            if not client.is_active:
                raise UnknownApplication("client_id names no active application")
            issues = require_response_type(response_type, client, context).artifacts
            if not requested:
                raise InvalidRequest("parameter scope is missing")
            Scope.require_openid(requested)
            organization = required_organization(requested, context)
            _require_active(subject)
            authorization = authorization_from_sign_in(
                subject,
                client,
                requested,
                issues,
                authenticated_at=context.now,
                session_id=new_id(),
                nonce="nonce",
                methods=(Proof.PASSWORD_METHOD,),
                claims=ClaimsRequest(),
            )
            grant_preview_builder.admit(authorization, organization=organization, error=AccessDenied)
            if lacks_consent(authorization, grant_preview_builder.granted, context):
                grant_preview_builder.omit(
                    gettext_lazy("Consent"),
                    gettext_lazy("The person is asked first whether the application may have this."),
                )
            family = new_family(authorization, grant_preview_builder.granted, context)
            text = None
            if Artifact.CODE in issues:
                text, code = new_code(
                    authorization, grant_preview_builder.granted, context, redirect_uri="", code_challenge=None
                )
                grant_preview_builder.carried.append(
                    PreviewedClaims(carrier=ClaimsCarrier.CODE, expires_at=code.expires_at)
                )
                self.supposed = replace(self.supposed, code=PresentedCode(code, family, subject))
            if issues - {Artifact.CODE}:
                grant_preview_builder.mint(authorization, access_token=Artifact.ACCESS_TOKEN in issues, code=text)
            grant_preview_builder.explain_scopes(requested)

    def ask(self, grants: Iterable[GrantType]) -> None:
        """Preview the token endpoint."""
        before = None
        while self.supposed != before:
            before = self.supposed
            grants = [grant for grant in grants if not self._preview_grant(grant)]

    def _preview_grant(self, grant: GrantType) -> bool:
        """False if the grant does not apply, or needs a code or token that does not exist yet."""
        client = self.supposed.client
        if grant.client_requirement is ClientRequirement.REQUIRED and client is None:
            return False
        authorization, refusal = None, None
        try:
            authorization = grant.preview(self.supposed, self.context)
        except PreviewUnsupported:
            if (
                grant.client_requirement is ClientRequirement.NONE
                or client is None
                or grant.grant_type in client.application.grant_types
            ):
                self.unsupported.append(grant.grant_type)
            return True
        except OAuthError as error:
            refusal = error
        if authorization is None and refusal is None:
            return False
        with self._collect(grant.grant_type) as grant_preview_builder:
            if client is not None and grant.client_requirement is not ClientRequirement.NONE:
                if not client.is_active:
                    raise InvalidClient("the application, its project or its organization is deactivated")
                require_grant_type(grant.grant_type, client)
            _require_active(self.supposed.subject)
            if refusal is not None:
                raise refusal
            if authorization is not None:
                grant_preview_builder.admit(authorization, error=InvalidGrant)
                self._remember(grant_preview_builder.mint(authorization), authorization)
                grant_preview_builder.explain_scopes(authorization.requested_scopes)
        return True

    def _remember(self, minted: MintedTokens, authorization: Authorization) -> None:
        code, token = self.supposed.code, minted.refresh_token
        if code is not None and token is not None and self.supposed.refresh_token is None:
            presented = PresentedRefreshToken(token, code.family, authorization.subject)
            self.supposed = replace(self.supposed, refresh_token=presented)

    @contextmanager
    def _collect(self, grant_type: str | None) -> "Iterator[_GrantPreviewBuilder]":
        """Collect one more result; a refusal ends it."""
        grant_preview_builder = _GrantPreviewBuilder(grant_type, self.context)
        self.builders.append(grant_preview_builder)
        try:
            yield grant_preview_builder
        except OAuthError as refusal:
            grant_preview_builder.refusal = refusal


def _require_active(subject: Subject | None) -> None:
    if subject is not None and not subject.is_active:
        raise InvalidGrant("the user is deactivated")


@dataclass
class _GrantPreviewBuilder:
    grant_type: str | None
    context: Context
    granted: GrantedScopes = field(default=GrantedScopes((), ()), init=False)
    carried: list[PreviewedClaims] = field(default_factory=list, init=False)
    left_out: list[OmittedItem] = field(default_factory=list, init=False)
    refusal: OAuthError | None = field(default=None, init=False)

    def build(self) -> GrantPreview:
        return GrantPreview(
            grant_type=self.grant_type,
            granted=self.granted.values,
            audience=self.granted.audience,
            previewed_claims=tuple(self.carried),
            omitted=tuple(self.left_out),
            error=self.refusal,
        )

    def admit(
        self, authorization: Authorization, *, organization: Organization | None = None, error: type[OAuthError]
    ) -> None:
        """Grant the scopes. Raises the error if the user or client is refused, or InvalidScope."""
        self.granted = check_and_resolve_scopes(authorization, self.context, organization=organization, error=error)
        self._subject, self._client = authorization.subject, authorization.client
        self._claims = (
            {} if self._subject is None else dict(scope_claims(self._subject.user, self.granted.values, self.context))
        )
        self._roles = token_role_claims(self._subject, self._client, self.granted, self.context)
        self._requested = authorization.requested_scopes
        self._reasons = ClaimReasons(authorization, self.granted, self.context)

    def mint(self, authorization: Authorization, *, access_token: bool = True, code: str | None = None) -> MintedTokens:
        minted = mint_tokens(
            authorization, self.granted, self.context, key=_nobodys_key, access_token=access_token, code=code
        )
        if minted.access_token is not None:
            self._carry_access_token(minted)
        if minted.tokens.id_token is not None:
            self._carry_id_token(minted)
        if minted.refresh_token is not None:
            self.carried.append(
                PreviewedClaims(carrier=ClaimsCarrier.REFRESH_TOKEN, expires_at=minted.refresh_token.expires_at)
            )
        if minted.access_token is not None:
            issued = PresentedAccessToken(
                minted.access_token,
                self._subject,
                self._client,
                methods=authorization.methods,
                acr=authorization.acr,
                authenticated_at=authorization.authenticated_at,
            )
            for endpoint in self.context.protocol.endpoints:
                if endpoint.claims_preview is not None:
                    self._carry_answer(endpoint.claims_preview, issued)
        return minted

    def _carry_access_token(self, minted: MintedTokens) -> None:
        token, text = minted.access_token, minted.tokens.access_token
        if token is None or text is None:
            return
        claims = _claims_in(text) if token.format is TokenFormat.JWT else {}
        self.carried.append(
            PreviewedClaims(
                carrier=ClaimsCarrier.ACCESS_TOKEN,
                claims=self._reasons.explain(ClaimsCarrier.ACCESS_TOKEN, claims),
                format=token.format,
                expires_at=token.expires_at,
            )
        )
        if token.format is TokenFormat.JWT:
            self._tell_missing_roles(ClaimsCarrier.ACCESS_TOKEN, claims)

    def _carry_id_token(self, minted: MintedTokens) -> None:
        claims = _claims_in(minted.tokens.id_token or "")
        fronted = minted.access_token is None
        self.carried.append(
            PreviewedClaims(
                carrier=ClaimsCarrier.ID_TOKEN,
                claims=self._reasons.explain(ClaimsCarrier.ID_TOKEN, claims, without_access_token=fronted),
                expires_at=datetime.fromtimestamp(claims["exp"], self.context.now.tzinfo),
            )
        )
        self._tell_missing_roles(ClaimsCarrier.ID_TOKEN, claims)
        missing = [name for name in self._claims if name not in claims]
        if missing:
            asks_itself = gettext_lazy("The client has an access token and can ask userinfo for them.")
            switched_off = gettext_lazy(
                "The application has an access token and can ask userinfo for them; “User Info inside ID Token” is off."
            )
            self.omit(
                gettext_lazy("{claims} in the ID token", claims=", ".join(missing)),
                asks_itself if self._client is None else switched_off,
            )

    def _carry_answer(self, preview: ClaimsPreview, issued: PresentedAccessToken) -> None:
        """Add the response that the access token gives access to."""
        try:
            members = preview.claims(issued, self.context)
        except InsufficientScope:
            about_nobody = gettext_lazy("The token is about no user.")
            self.omit(
                preview.carrier,
                about_nobody if issued.subject is None else gettext_lazy("The scope openid is missing."),
            )
            return
        self.carried.append(
            PreviewedClaims(carrier=preview.carrier, claims=self._reasons.explain(preview.carrier, members))
        )

    def explain_scopes(self, requested: Iterable[str]) -> None:
        """Report requested scopes that were dropped, and granted ones that yield nothing."""
        for scope_name in dict.fromkeys(requested):
            if scope_name not in self.granted:
                self.omit(gettext_lazy("scope {scope}", scope=scope_name), self._why_dropped(scope_name))
        if self._subject is None:
            return
        scopes = self.context.protocol.scopes
        for scope_name in self.granted.values if not isinstance(self._subject.user, ServiceUser) else ():
            unknown = sorted(scopes.claims_opened((scope_name,)) - self._claims.keys())
            if unknown:
                self.omit(
                    gettext_lazy("{claims} of the scope {scope}", claims=", ".join(unknown), scope=scope_name),
                    gettext_lazy("Nothing is known of it."),
                )
        if self._reasons.role_scopes and not self._roles:
            self.omit(
                gettext_lazy("Role claims"), gettext_lazy("The user has no such role in a project of the audience.")
            )

    def _why_dropped(self, scope_name: str) -> str:
        if self.context.protocol.scopes.find_scope(scope_name) is None:
            return gettext_lazy("There is no such scope.")
        if scope_name != Scope.OFFLINE_ACCESS:
            return gettext_lazy("Its namespace is not one of this service.")
        if self._client is None or self._subject is None:
            return gettext_lazy("Who acts for itself gets no refresh token: it can ask again at any time.")
        if scope_name not in self._requested:
            return gettext_lazy("Without a code there is no refresh token.")
        return gettext_lazy("The application may not use refresh tokens.")

    def _tell_missing_roles(self, carrier: ClaimsCarrier, claims: Mapping[str, Any]) -> None:
        if self._client is not None and self._roles and not self._roles.keys() & claims.keys():
            self.omit(*_NO_ROLES[carrier])

    def omit(self, label: str, reason: str) -> None:
        self.left_out.append(OmittedItem(label, reason))


def _claims_in(text: str) -> dict[str, Any]:
    return UnverifiedToken.parse(text, max_length=_LONGEST).claims

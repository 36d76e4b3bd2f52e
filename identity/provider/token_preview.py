"""Token preview: which tokens and claims a user and an application would get, and why; nothing is issued or stored.

It is a dry run of the authorization and token endpoints: their own functions up to the point where they would store
something, with supposed proofs and consent, and signatures by a key that is never published.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from identity.crypto.jwt import unverified_claims
from identity.crypto.signature_keys import PrivateKey
from identity.domain.applications import ApplicationClient
from identity.domain.authentication import Proof
from identity.domain.authorization_codes import PresentedCode
from identity.domain.messages import gettext_lazy
from identity.domain.sessions import SignedInAccount
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.tokens import PresentedAccessToken, PresentedRefreshToken
from identity.domain.users import HumanUser, Subject, TokenFormat
from identity.provider.authorization_request import parse_authorization_request, require_active
from identity.provider.claim_reasons import ClaimReasons, ClaimsCarrier, ExplainedClaim, OmittedItem
from identity.provider.consent import build_consent_summary
from identity.provider.context import Context
from identity.provider.endpoints.authorization import build_sign_in, mint_artifacts
from identity.provider.endpoints.token import mint_granted_tokens, require_grant_type
from identity.provider.errors import InsufficientScope, InvalidClient, InvalidGrant, OAuthError
from identity.provider.grant_type import Authorization, ClientRequirement, GrantType, PreviewInput, PreviewUnsupported
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import NO_BROWSER_STATE
from identity.provider.redirect_target import RedirectTarget
from identity.provider.resource_indicators import PARAMETER, with_requested_resources
from identity.provider.response_type import ResponseTransport
from identity.provider.token_issuance import MintedTokens


@dataclass(frozen=True, slots=True)
class PreviewedClaims:
    """Claims of a token, or of a response about the access token. ``format`` is that of an access token."""

    carrier: ClaimsCarrier
    claims: tuple[ExplainedClaim, ...] = ()
    format: TokenFormat | None = None
    expires_at: datetime | None = None


@dataclass(slots=True)
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
    *,
    resource: str = "",
) -> TokenPreviewResult:
    """Everything that a user, an application, or both together would get for the requested scopes, and for the
    resources (RFC 8707), separated by spaces. A person signs in to the application with an authorization request of
    this ``response_type``. Then every grant type is previewed, and again once another one has yielded the code or token
    it requires."""
    supposed = PreviewInput(subject=subject, client=client, requested_scopes=requested_scopes)
    run = _PreviewRun(supposed, Parameters({PARAMETER: resource} if resource else {}), context)
    is_person = subject is not None and isinstance(subject.user, HumanUser)
    # Some applications, such as those of devices, have no response type: people sign in to them by another grant.
    if client is not None and subject is not None and is_person and client.application.response_types:
        run.sign_in(subject, client, response_type)
    if not any(preview.error for preview in run.previews):
        grants, before = list(context.protocol.grant_types.values()), None
        while run.supposed != before:
            before, grants = run.supposed, [grant for grant in grants if not run.use_grant(grant)]
    return TokenPreviewResult(tuple(run.previews), tuple(run.unsupported))


@cache
def _nobodys_key(algorithm: SignatureAlgorithm | None) -> tuple[str, PrivateKey]:
    """A key that is never published: its signatures are worthless."""
    return "preview", PrivateKey.generate(algorithm=algorithm or SignatureAlgorithm.RS256)


class _PreviewRun:
    """One preview; its input grows with the codes and tokens obtained."""

    def __init__(self, supposed: PreviewInput, resources: Parameters, context: Context) -> None:
        self.supposed, self.resources, self.context = supposed, resources, context
        self.previews: list[GrantPreview] = []
        self.unsupported: list[str] = []

    def sign_in(self, subject: Subject, client: ApplicationClient, response_type: str) -> None:
        """The authorization endpoint, for a user who has just signed in with a password."""
        context, scope = self.context, " ".join(self.supposed.requested_scopes)
        pkce = {"code_challenge": "x" * 43, "code_challenge_method": "S256"}
        sent = {"response_type": response_type, "scope": scope, "nonce": "nonce", **self.resources, **pkce}
        address = RedirectTarget("", ResponseTransport.QUERY, None, context.issuer, client.application.name)
        proof = Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), context.now)
        with self._preview(None) as preview:
            parameters = Parameters({name: value for name, value in sent.items() if value})
            request = parse_authorization_request(parameters, require_active(client), address, context)
            sign_in = build_sign_in(request, None, NO_BROWSER_STATE, context)
            _refuse_inactive(subject)
            session = context.services.sessions.new_session(subject, (proof,), context.now)
            summary = build_consent_summary(sign_in, SignedInAccount(session, subject), context)
            artifacts = mint_artifacts(summary, request, context, key=_nobodys_key)
            if summary.needs_consent:
                why = gettext_lazy("The person is asked first whether the application may receive this.")
                preview.omitted += (OmittedItem(gettext_lazy("Consent"), why),)
            if artifacts.code is not None:
                self.supposed = replace(self.supposed, code=PresentedCode(artifacts.code, artifacts.family, subject))
                expires_at = artifacts.code.expires_at
                preview.previewed_claims += (PreviewedClaims(ClaimsCarrier.CODE, expires_at=expires_at),)
            reasons = ClaimReasons(summary.authorization, summary.granted, context)
            _describe(preview, reasons, self.supposed.requested_scopes, artifacts.minted)

    def use_grant(self, grant: GrantType) -> bool:
        """The token endpoint. False if the grant does not apply, or needs a code or token that does not exist yet."""
        context, client = self.context, self.supposed.client
        uses_client = client is not None and grant.client_requirement is not ClientRequirement.NONE
        if client is None and grant.client_requirement is ClientRequirement.REQUIRED:
            return False
        decision: Authorization | OAuthError | None
        try:
            decision = grant.preview(self.supposed, context)
        except PreviewUnsupported:
            if client is None or not uses_client or grant.grant_type in client.application.grant_types:
                self.unsupported.append(grant.grant_type)
            return True
        except OAuthError as error:
            decision = error
        if decision is None:
            return False
        with self._preview(grant.grant_type) as preview:
            if client is not None and uses_client:
                if not client.is_active:
                    raise InvalidClient("the application, its project or its organization is deactivated")
                require_grant_type(grant.grant_type, client)
            _refuse_inactive(self.supposed.subject)
            if isinstance(decision, OAuthError):
                raise decision
            decision = with_requested_resources(decision, self.resources, context)
            minted = mint_granted_tokens(decision, context, key=_nobodys_key, has_interacted=True)
            code, refresh_token = self.supposed.code, minted.refresh_token
            if code is not None and refresh_token is not None and self.supposed.refresh_token is None:
                presented = PresentedRefreshToken(refresh_token, code.family, decision.subject)
                self.supposed = replace(self.supposed, refresh_token=presented)
            reasons = ClaimReasons(decision, minted.granted, context)
            _describe(preview, reasons, decision.requested_scopes, minted)
        return True

    @contextmanager
    def _preview(self, grant_type: str | None) -> Iterator[GrantPreview]:
        """Collect one more result; a refusal ends it."""
        preview = GrantPreview(grant_type)
        self.previews.append(preview)
        try:
            yield preview
        except OAuthError as refusal:
            preview.error = refusal


def _refuse_inactive(subject: Subject | None) -> None:
    if subject is not None and not subject.is_active:
        raise InvalidGrant("the user is deactivated")


def _describe(
    preview: GrantPreview, reasons: ClaimReasons, requested: tuple[str, ...], minted: MintedTokens | None
) -> None:
    preview.granted, preview.audience = reasons.granted.values, reasons.granted.audience
    if minted is not None:
        _add_tokens(preview, minted, reasons)
    preview.omitted += tuple(reasons.omitted_scopes(requested))


def _add_tokens(preview: GrantPreview, minted: MintedTokens, reasons: ClaimReasons) -> None:
    """Add the tokens, then the responses that the access token gives access to."""
    access_token, refresh_token = minted.access_token, minted.refresh_token
    authorization, context = minted.authorization, reasons.context
    texts = {ClaimsCarrier.ACCESS_TOKEN: minted.tokens.access_token, ClaimsCarrier.ID_TOKEN: minted.tokens.id_token}
    for carrier, text in texts.items():
        if text is None:
            continue
        token = access_token if carrier is ClaimsCarrier.ACCESS_TOKEN else None
        claims = unverified_claims(text, max_length=1024 * 1024)
        expires_at = datetime.fromtimestamp(claims["exp"], context.now.tzinfo) if token is None else token.expires_at
        explained = reasons.explain(carrier, claims, without_access_token=access_token is None)
        preview.previewed_claims += (
            PreviewedClaims(carrier, explained, None if token is None else token.format, expires_at),
        )
        preview.omitted += tuple(reasons.omitted_claims(carrier, claims)) if claims else ()
    if refresh_token is not None:
        carrier, expires_at = ClaimsCarrier.REFRESH_TOKEN, refresh_token.expires_at
        preview.previewed_claims += (PreviewedClaims(carrier, expires_at=expires_at),)
    if access_token is None:
        return
    issued = PresentedAccessToken(
        access_token,
        authorization.subject,
        authorization.client,
        methods=authorization.methods,
        acr=authorization.acr,
        authenticated_at=authorization.authenticated_at,
    )
    for endpoint in context.protocol.endpoints:
        if endpoint.token_claims is None:
            continue
        carrier = ClaimsCarrier.INTROSPECTION if endpoint.authenticates_clients else ClaimsCarrier.USERINFO
        try:
            explained = reasons.explain(carrier, endpoint.token_claims(issued, context))
            preview.previewed_claims += (PreviewedClaims(carrier, explained),)
        except InsufficientScope:
            about_nobody = gettext_lazy("The token does not represent a user.")
            why = about_nobody if authorization.subject is None else gettext_lazy("The scope openid is missing.")
            preview.omitted += (OmittedItem(carrier, why),)

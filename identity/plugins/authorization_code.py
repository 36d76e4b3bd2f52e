"""Grant authorization_code and response type code (service description §4.2, §4.3; RFC 6749 §4.1; RFC 7636).

A token request::

    POST /oauth/v2/token
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    grant_type=authorization_code&code=…&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&code_verifier=…
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from identity.api.crypto import constant_time_equal, encode_base64url
from identity.api.endpoints import Context, InvalidGrant, Parameters
from identity.api.entities import ApplicationClient
from identity.api.grants import (
    AccessToken,
    Artifact,
    Authorization,
    AuthorizationCode,
    ClientRequirement,
    GrantType,
    PresentedCode,
    PreviewInput,
    RefreshToken,
    RefreshTokenTerms,
    ResponseType,
    Scope,
    SingleUseCredential,
    TokenRequest,
)
from identity.api.plugins import hookimpl

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z")


@dataclass(frozen=True, slots=True)
class AuthorizationCodeCredential(SingleUseCredential):
    """A valid code, redeemed when its tokens are stored."""

    code: AuthorizationCode
    client: ApplicationClient

    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Redeem the code and store its tokens. Raises InvalidGrant; a replay revokes its family."""
        with SingleUseCredential.translate_errors():
            context.services.tokens.redeem_code(self.code, self.client, access=access, refresh=refresh)


class AuthorizationCodeGrant(GrantType):
    """Only the client of a code can redeem it; a wrong attempt by that client invalidates it."""

    grant_type = "authorization_code"
    parameters = frozenset({"code", "redirect_uri", "code_verifier"})
    client_requirement = ClientRequirement.REQUIRED
    accepts_codes = True
    issues_refresh_tokens = True
    discovery_members: ClassVar[Mapping[str, object]] = {"code_challenge_methods_supported": ["S256"]}

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The code's authorization. Raises InvalidGrant, InvalidRequest."""
        client = request.client
        if client is None:
            raise ValueError("the token endpoint authenticates the client first")
        text = request.parameters.require_value("code")
        redirect_uri = request.parameters.require_value("redirect_uri")
        presented = context.services.tokens.find_code(text)
        if presented is None or presented.code.client_id != client.id:
            raise InvalidGrant("the code is unknown, or was issued to another client")
        code = presented.code
        problem = _find_mismatch(presented, client, redirect_uri, request.parameters, context)
        if problem is not None:
            # A client with the right code and credentials that fails otherwise gets no second attempt.
            with SingleUseCredential.translate_errors():
                context.services.tokens.redeem_code(code, client)
            raise InvalidGrant(problem, keep_changes=True)
        return _build_authorization(presented, client, context)

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """The authorization of the previewed sign-in's code, if there is one."""
        if preview_input.code is None or preview_input.client is None:
            return None
        return _build_authorization(preview_input.code, preview_input.client, context)


def _build_authorization(presented: PresentedCode, client: ApplicationClient, context: Context) -> Authorization:
    code, family = presented.code, presented.family
    refreshing = None
    if Scope.OFFLINE_ACCESS in code.scope and family.impersonator_id is None:
        ends_at = code.issued_at + context.settings.refresh_token_max_age
        refreshing = RefreshTokenTerms(ends_at=ends_at, scope=code.scope)
    return Authorization(
        subject=presented.subject,
        client=client,
        client_id=client.id,
        requested_scopes=code.scope,
        authenticated_at=code.authenticated_at,
        session_id=code.session_id,
        nonce=code.nonce,
        family_id=code.family_id,
        refresh_token_terms=refreshing,
        single_use_credential=AuthorizationCodeCredential(code, client),
        methods=family.methods,
        acr=family.acr,
        userinfo_claims=family.userinfo_claims,
        id_token_claims=family.id_token_claims,
        impersonator_id=family.impersonator_id,
        ends_at=None if family.impersonator_id is None else family.ends_at,
        confirmation=code.confirmation,
    )


def _find_mismatch(
    presented: PresentedCode, client: ApplicationClient, redirect_uri: str, parameters: Parameters, context: Context
) -> str | None:
    """Why the code is refused, if it is unused; redemption detects a used one."""
    code = presented.code
    if code.redeemed_at is not None or context.now >= code.expires_at:
        return "the code was used or has expired"
    if redirect_uri != code.redirect_uri:
        return "redirect_uri differs from the one of the authorization request"
    if client.application.is_public and code.code_challenge is None:
        return "the code was issued without PKCE, which public clients need"
    if not _verifies_challenge(parameters.get_value("code_verifier"), code.code_challenge):
        return "code_verifier does not fit the code_challenge"
    if presented.family.revoked_at is not None or presented.session_ended or presented.subject is None:
        return "the sign-in that brought the code has ended"
    return None if presented.subject.is_active else "the user is deactivated"


def _verifies_challenge(verifier: str | None, challenge: str | None) -> bool:
    """True if both are absent, or the verifier's SHA-256 is the challenge (RFC 7636 §4.6)."""
    if challenge is None or verifier is None:
        return challenge is None and verifier is None
    if not _VERIFIER.match(verifier):
        return False
    hashed = encode_base64url(hashlib.sha256(verifier.encode("ascii")).digest())
    return constant_time_equal(hashed.encode("ascii"), challenge.encode("ascii"))


class AuthorizationCodePlugin:
    """The authorization code grant and the response type ``code``."""

    hookspecs = 1

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        """The code grant."""
        return [AuthorizationCodeGrant()]

    @hookimpl
    def identity_response_types(self) -> Iterable[ResponseType]:
        """Response type code."""
        return [ResponseType("code", frozenset({Artifact.CODE}))]

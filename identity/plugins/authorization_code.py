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
from typing import ClassVar

from identity.api.crypto import constant_time_equal, encode_base64url
from identity.api.endpoints import Context, InvalidGrant, Parameters
from identity.api.entities import ApplicationClient
from identity.api.grants import (
    Artifact,
    Authorization,
    CodeGrantType,
    GrantType,
    PresentedCode,
    PreviewInput,
    ResponseType,
    TokenRequest,
)
from identity.api.plugins import hookimpl

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z")


class AuthorizationCodeGrant(CodeGrantType):
    """Only the client of a code can redeem it; a wrong attempt by that client invalidates it."""

    grant_type = "authorization_code"
    parameters = frozenset({"code", "redirect_uri", "code_verifier"})
    accepts_codes = True
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
        problem = self.find_problem(presented, context) or _find_mismatch(
            presented, client, redirect_uri, request.parameters
        )
        if problem is not None:
            self.refuse_code(presented, client, problem, context)
        return self.build_authorization(presented, client, context)

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """The authorization of the previewed sign-in's code, if there is one."""
        if preview_input.code is None or preview_input.client is None:
            return None
        return self.build_authorization(preview_input.code, preview_input.client, context)


def _find_mismatch(
    presented: PresentedCode, client: ApplicationClient, redirect_uri: str, parameters: Parameters
) -> str | None:
    """Why the request may not redeem the code."""
    code = presented.code
    if redirect_uri != code.redirect_uri:
        return "redirect_uri differs from the one of the authorization request"
    if client.application.needs_code_challenge and code.code_challenge is None:
        return "the code was issued without PKCE, which this application needs"
    if not _verifies_challenge(parameters.get_value("code_verifier"), code.code_challenge):
        return "code_verifier does not fit the code_challenge"
    return None


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

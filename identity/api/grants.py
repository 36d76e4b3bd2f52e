"""Grants: the authorization that a token request results in, granted scopes, and issued tokens."""

from identity.domain.audiences import AudienceScope
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.tokens import (
    AccessToken,
    ConnectedApplication,
    PresentedAccessToken,
    PresentedRefreshToken,
    RefreshToken,
    confirmation_claim,
)
from identity.provider.assertion_claims import AssertionClaims
from identity.provider.assertion_verifier import AssertionVerifier, VerifiedAssertion
from identity.provider.claims import token_claims
from identity.provider.code_redemption import CodeGrantType
from identity.provider.grant_type import (
    Authorization,
    ClientRequirement,
    GrantType,
    OutgoingAssertion,
    PreviewInput,
    RefreshTokenTerms,
    TokenRequest,
)
from identity.provider.resource_indicators import ResourceResolver, join_resources, requested_resources
from identity.provider.response_type import Artifact, ResponseMode, ResponseTransport, ResponseType
from identity.provider.role_claims import RoleScope
from identity.provider.scope import ClaimsScope, GrantedScope, GrantedScopes, Scope
from identity.provider.sender_constraint import SenderConstraint, token_type
from identity.provider.single_use import SingleUseCredential

__all__ = [
    "AccessToken",
    "Artifact",
    "AssertionClaims",
    "AssertionVerifier",
    "AudienceScope",
    "Authorization",
    "AuthorizationCode",
    "ClaimsScope",
    "ClientRequirement",
    "CodeGrantType",
    "ConnectedApplication",
    "GrantType",
    "GrantedScope",
    "GrantedScopes",
    "OutgoingAssertion",
    "PresentedAccessToken",
    "PresentedCode",
    "PresentedRefreshToken",
    "PreviewInput",
    "RefreshToken",
    "RefreshTokenTerms",
    "ResourceResolver",
    "ResponseMode",
    "ResponseTransport",
    "ResponseType",
    "RoleScope",
    "Scope",
    "SenderConstraint",
    "SingleUseCredential",
    "TokenRequest",
    "VerifiedAssertion",
    "confirmation_claim",
    "join_resources",
    "requested_resources",
    "token_claims",
    "token_type",
]

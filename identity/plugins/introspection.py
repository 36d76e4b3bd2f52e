"""The introspection endpoint (service description §4.4, RFC 7662), and its signed responses (RFC 9701)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from identity.api.crypto import sign_jwt
from identity.api.endpoints import Context, Endpoint, EndpointHost, Parameters, ProtocolRequest, ProtocolResponse
from identity.api.entities import ApplicationClient, ServiceUser, Subject
from identity.api.grants import PresentedAccessToken, Scope, confirmation_claim, token_claims, token_type
from identity.api.plugins import hookimpl

_INACTIVE = ProtocolResponse.from_json('{"active": false}', is_negative=True)

_JWT_TYPE = "token-introspection+jwt"
_JWT_CONTENT_TYPE = f"application/{_JWT_TYPE}"


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Respond whether an access token is live and meant for the requesting client; only ``active`` if not. Signed, if
    the request accepts that. Raises OAuthError.
    """
    Parameters.refuse_secrets(request.query)
    parameters = request.parse_form()
    client = context.provider.authenticate_application(request, parameters, context)
    issued = context.services.tokens.find_live_access_token(parameters.require_value("token"))
    if issued is None or not context.services.tokens.is_in_audience(issued, client):
        response = _INACTIVE
    else:
        if client.application.has_pairwise_subjects:
            issued = replace(issued, token=context.services.subject_identifiers.present(issued.token, client))
        response = context.provider.introspection_response(introspection_members(issued, context))
    return _sign(response, client, context) if _accepts_jwt(request) else response


def _accepts_jwt(request: ProtocolRequest) -> bool:
    """True if the Accept header names the type of signed responses: a range such as ``*/*`` does not (RFC 9701 §4)."""
    accepted = request.headers.get("accept", "").lower()
    # Most requests do not name it.
    return _JWT_CONTENT_TYPE in accepted and any(
        item.partition(";")[0].strip() == _JWT_CONTENT_TYPE for item in accepted.split(",")
    )


def _sign(response: ProtocolResponse, client: ApplicationClient, context: Context) -> ProtocolResponse:
    """The response as a JWT of the issuer for the client (RFC 9701 §5). It has neither ``sub`` nor ``exp``, so that
    it is not taken for an access token."""
    application = client.application
    algorithm = application.introspection_signed_response_alg or application.id_token_signed_response_alg
    key_id, key = context.services.signing_keys.current_signing_key(algorithm)
    claims = {
        "iss": context.issuer,
        "aud": client.id,
        "iat": int(context.now.timestamp()),
        "token_introspection": json.loads(response.body),
    }
    text = sign_jwt(claims, key, key_id=key_id, typ=_JWT_TYPE)
    return replace(response, body=text.encode(), content_type=_JWT_CONTENT_TYPE)


def introspection_members(issued: PresentedAccessToken, context: Context) -> dict[str, Any]:
    """Response members for a live token, to a client that it is meant for."""
    token = issued.token
    members: dict[str, Any] = {
        "active": True,
        "scope": " ".join(token.scope),
        "client_id": token.client_id,
        "token_type": token_type(token.confirmation, context),
        "iss": context.issuer,
        "sub": token.subject,
        "aud": list(token.audience),
        "iat": int(token.issued_at.timestamp()),
        "jti": token.id,
        **token.actor_claim(),
        **confirmation_claim(token.confirmation),
    }
    if not token.never_expires:
        members["exp"] = int(token.expires_at.timestamp())
    members |= issued.authentication_claims()
    if issued.subject is not None and _discloses_user_name(issued.subject, token.scope, context):
        members["username"] = issued.subject.login_name
    return members | token_claims(issued, context)


def _discloses_user_name(subject: Subject, scopes: tuple[str, ...], context: Context) -> bool:
    """True for service users, and for people who consented to disclose a name."""
    if isinstance(subject.user, ServiceUser):
        return True
    return (
        Scope.OPENID in scopes and context.protocol.scopes.find_opening_scope("preferred_username", scopes) is not None
    )


ENDPOINT = Endpoint(
    name="introspect",
    path="/oauth/v2/introspect",
    host=EndpointHost.BASE,
    methods=("POST",),
    discovery_member="introspection_endpoint",
    writes=False,
    allows_stale_reads=True,
    authenticates_clients=True,
    refuses_public_clients=True,
    token_claims=introspection_members,
    handle=handle,
)


class IntrospectionPlugin:
    """Token introspection (RFC 7662, RFC 9701) for applications in the token's audience."""

    hookspecs = 1

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        """The introspection endpoint."""
        return [ENDPOINT]

    @hookimpl
    def identity_discovery(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """The algorithms of signed responses (RFC 9701 §7)."""
        return {"introspection_signing_alg_values_supported": document["id_token_signing_alg_values_supported"]}

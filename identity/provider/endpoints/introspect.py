"""The introspection endpoint (service description §4.4, RFC 7662)."""

from dataclasses import replace
from typing import Any

from identity.domain.expirations import NEVER
from identity.domain.tokens import IssuedToken
from identity.domain.users import ServiceUser, Subject
from identity.provider.answers import json_answer
from identity.provider.claims import claims_about
from identity.provider.client_authentication import proven_application
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.formats import acting, proved
from identity.provider.parameters import refuse_secrets
from identity.provider.request import ProtocolRequest, ProtocolResponse
from identity.provider.roles import told_roles
from identity.provider.scope import OPENID, granted_by

_INACTIVE = replace(json_answer('{"active": false}'), denies=True)


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Say whether an access token is live and meant for the asking client; nothing more if not. Raises OAuthError."""
    refuse_secrets(request.query)
    parameters = request.form()
    client = proven_application(context.provider.authenticate(request, parameters, context))
    issued = context.services.tokens.find_live(parameters.required("token"))
    if issued is None or not context.services.tokens.in_audience(issued, client):
        return _INACTIVE
    from identity.provider.messages import TokenIntrospectionResponse

    return json_answer(TokenIntrospectionResponse(**members_of(issued, context)).to_json())


def members_of(issued: IssuedToken, context: Context) -> dict[str, Any]:
    """What is said of a live token to a client that it is meant for."""
    token = issued.token
    members: dict[str, Any] = {
        "active": True,
        "scope": " ".join(token.scope),
        "client_id": token.client_id,
        "token_type": "Bearer",
        "iss": context.issuer,
        "sub": token.subject,
        "aud": list(token.audience),
        "iat": int(token.issued_at.timestamp()),
        "jti": token.id,
        **acting(token),
    }
    if token.expires_at != NEVER:
        members["exp"] = int(token.expires_at.timestamp())
    if issued.methods and issued.authenticated_at is not None:
        members |= {**proved(issued), "auth_time": int(issued.authenticated_at.timestamp())}
    if issued.subject is not None:
        if _is_told_by_name(issued.subject, token.scope, context):
            members["username"] = issued.subject.login_name
        if OPENID in token.scope:
            members |= claims_about(issued.subject.user, token.scope, context)
        members |= told_roles(issued.subject, issued.client, granted_by(token), context)
    return members


def _is_told_by_name(subject: Subject, words: tuple[str, ...], context: Context) -> bool:
    """True for programs, and for people as far as they agreed to be known by a name."""
    if isinstance(subject.user, ServiceUser):
        return True
    return OPENID in words and context.protocol.scopes.opening("preferred_username", words) is not None


ENDPOINT = Endpoint(
    name="introspect",
    path="/oauth/v2/introspect",
    host=Host.BASE,
    methods=("POST",),
    advertised_as="introspection_endpoint",
    writes=False,
    may_lag=True,
    handle=handle,
)

"""Metadata of the management API as a protected resource (RFC 9728).

Clients find the document by the ``resource_metadata`` of a challenge, or at its well-known address.
"""

import json

from identity.api.endpoints import Context, Endpoint, EndpointHost, ProtocolRequest, ProtocolResponse
from identity.domain.audiences import AudienceScope
from identity.provider.cacheable_document import CacheableDocument

#: The path of the resource follows the well-known one (RFC 9728 §3.1).
PATH = f"/.well-known/oauth-protected-resource{AudienceScope.MANAGEMENT_PATH}"
_NAME = "management.resource_metadata"
#: Members that mean the same in the metadata of the authorization server.
_SENDER_CONSTRAINTS = frozenset({"dpop_signing_alg_values_supported", "tls_client_certificate_bound_access_tokens"})


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """The document, or 304 if the client has it."""
    document: CacheableDocument | None = context.protocol.documents.get(_NAME)
    if document is None:
        body = json.dumps(_members(context)).encode()
        document = CacheableDocument.from_bytes(body, max_age=context.settings.jwks_max_age)
        context.protocol.documents[_NAME] = document
    return document.response(request.if_none_match)


def metadata_url(base_url: str) -> str:
    return base_url + PATH


def _members(context: Context) -> dict[str, object]:
    settings = context.settings
    members: dict[str, object] = {
        "resource": settings.base_url + AudienceScope.MANAGEMENT_PATH,
        "authorization_servers": [settings.issuer_url],
        "scopes_supported": ["openid", AudienceScope.build_for_own_project(settings.urn_namespaces[0])],
        "bearer_methods_supported": ["header"],
        "resource_name": "Management API",
    }
    for constraint in context.protocol.sender_constraints.values():
        members |= {name: value for name, value in constraint.discovery_members.items() if name in _SENDER_CONSTRAINTS}
    return members


ENDPOINT = Endpoint(
    name=_NAME,
    path=PATH,
    host=EndpointHost.BASE,
    methods=("GET",),
    discovery_member=None,
    writes=False,
    allows_cors=True,
    uses_storage=False,
    handle=handle,
)

"""Members of the discovery document, derived from the protocol registry and the endpoints."""

import logging
from collections.abc import Mapping
from typing import Any

from identity.domain.applications import SubjectType
from identity.domain.authentication import ACR_VALUES
from identity.domain.messages import LANGUAGES
from identity.provider.authorization_request import PROMPTS
from identity.provider.protocol_registry import ProtocolRegistry
from identity.provider.scope import Scope
from identity.settings import Settings

log = logging.getLogger(__name__)


def discovery_members(protocol: ProtocolRegistry, settings: Settings) -> Mapping[str, Any]:
    """The members besides issuer and endpoints (OpenID Connect Discovery §3); empty lists are left out."""
    scopes = protocol.scopes
    names = [name for scope in scopes.all for name in scope.names]
    fronts_tokens = any(response_type.uses_front_channel for response_type in protocol.response_types.values())
    members: dict[str, Any] = {
        "scopes_supported": sorted(names, key=lambda name: name != Scope.OPENID),
        "response_types_supported": [response_type.value for response_type in protocol.response_types.values()],
        "response_modes_supported": list(protocol.response_modes),
        "grant_types_supported": [*protocol.grant_types, *(["implicit"] if fronts_tokens else [])],
        "subject_types_supported": list(SubjectType),
        "id_token_signing_alg_values_supported": list(settings.signing_algorithms),
        "userinfo_signing_alg_values_supported": list(settings.signing_algorithms),
        **_client_authentication_members(protocol),
        "claim_types_supported": ["normal"],
        "claims_supported": ["iss", "sub", "aud", "exp", "iat", "auth_time", "acr", "amr", *sorted(scopes.claims)],
        "acr_values_supported": list(ACR_VALUES),
        "prompt_values_supported": list(PROMPTS),
        "ui_locales_supported": list(LANGUAGES),
        "authorization_response_iss_parameter_supported": True,
        "claims_parameter_supported": True,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }
    for grant_type in protocol.grant_types.values():
        members = {**grant_type.discovery_members, **members}
    for source in protocol.authorization_request_sources.values():
        members |= source.discovery_members
    for constraint in protocol.sender_constraints.values():
        members |= constraint.discovery_members
    for verifier in protocol.assertion_verifiers.values():
        members |= verifier.discovery_members
    return {name: value for name, value in members.items() if value != []}


def _client_authentication_members(protocol: ProtocolRegistry) -> dict[str, list[str]]:
    """How clients can authenticate at each endpoint (RFC 8414 §2)."""
    methods = protocol.client_authentication_methods.values()
    algorithms = dict.fromkeys(name for method in methods for name in method.signing_algorithms)
    return {
        f"{endpoint.discovery_member}_auth_methods_supported": [
            name
            for name, method in protocol.client_authentication_methods.items()
            if method.is_proof or not endpoint.refuses_public_clients
        ]
        for endpoint in protocol.endpoints
        if endpoint.discovery_member and endpoint.authenticates_clients
    } | {
        f"{endpoint.discovery_member}_auth_signing_alg_values_supported": list(algorithms)
        for endpoint in protocol.endpoints
        if endpoint.discovery_member and endpoint.authenticates_clients
    }


def with_plugin_members(document: Mapping[str, Any], protocol: ProtocolRegistry) -> dict[str, Any]:
    """The document with members of plugins; they cannot change existing ones."""
    completed = dict(document)
    for plugin, hook in protocol.discovery:
        for name, value in (hook(document=dict(completed)) or {}).items():
            if name in completed:
                log.warning("plugin %s sets the discovery member %s, which is set already", plugin, name)
            else:
                completed[name] = value
    return completed

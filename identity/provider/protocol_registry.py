"""The protocol registry: what the plugins offer, collected once and frozen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from identity.provider.client_authentication import ClientAuthenticationMethod
from identity.provider.grant_type import GrantType
from identity.provider.response_type import CORE_RESPONSE_MODES, ResponseMode, ResponseType
from identity.provider.scope import Scopes

if TYPE_CHECKING:
    from identity.provider.assertion_verifier import AssertionVerifier
    from identity.provider.authorization_request_source import AuthorizationRequestSource
    from identity.provider.directory import Directory
    from identity.provider.endpoint import Endpoint
    from identity.provider.factor import Factor
    from identity.provider.interaction import Interaction
    from identity.provider.logout import LogoutHandler
    from identity.provider.resource_indicators import ResourceResolver
    from identity.provider.sender_constraint import SenderConstraint

#: A plugin's name and its implementation of a contribution hook.
NamedHook = tuple[str, Callable[..., Mapping[str, Any] | None]]


@dataclass(frozen=True)
class ProtocolRegistry:
    """The registry used by endpoints; resolved into dicts at startup, because a dict is faster than a hook call."""

    grant_types: Mapping[str, GrantType]
    response_types: Mapping[frozenset[str], ResponseType]
    interactions: Mapping[str, "Interaction"]
    factors: Mapping[str, "Factor"]
    scopes: Scopes
    client_authentication_methods: Mapping[str, ClientAuthenticationMethod]
    #: The service's own response modes, then those of plugins.
    response_modes: Mapping[str, ResponseMode] = field(default_factory=lambda: CORE_RESPONSE_MODES)
    assertion_verifiers: Mapping[str, "AssertionVerifier"] = field(default_factory=dict)
    authorization_request_sources: Mapping[str, "AuthorizationRequestSource"] = field(default_factory=dict)
    sender_constraints: Mapping[str, "SenderConstraint"] = field(default_factory=dict)
    resource_resolvers: Mapping[str, "ResourceResolver"] = field(default_factory=dict)
    directories: Mapping[str, "Directory[Any]"] = field(default_factory=dict)
    logout_handlers: Mapping[str, "LogoutHandler"] = field(default_factory=dict)
    user_claims: tuple[NamedHook, ...] = ()
    token_claims: tuple[NamedHook, ...] = ()
    discovery: tuple[NamedHook, ...] = ()
    #: The service's own endpoints, then those of plugins. No two have the same name, path or discovery member.
    endpoints: tuple["Endpoint", ...] = ()
    #: Documents that do not depend on the request, by endpoint.
    documents: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def token_schemes(self) -> frozenset[str]:
        """The schemes of access tokens in the Authorization header, in lower case."""
        return frozenset({"bearer", *(item.token_type.lower() for item in self.sender_constraints.values())})

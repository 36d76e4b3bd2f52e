"""Protocol: what the plugins offer, collected once and frozen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from identity.provider.client_authentication import ClientAuthentication
from identity.provider.grant import Grant
from identity.provider.response_type import ResponseType
from identity.provider.scope import Scopes

if TYPE_CHECKING:
    from identity.provider.directory import Directory
    from identity.provider.endpoint import Endpoint
    from identity.provider.factor import Factor
    from identity.provider.interaction import Interaction
    from identity.provider.sign_out_way import SignOutWay

#: A plugin's name with its implementation of a contribution hook.
Contribution = tuple[str, Callable[..., Mapping[str, Any] | None]]


@dataclass(frozen=True)
class Protocol:
    """The registry that endpoints consult; resolved into dicts at start, because a dict is faster than a hook call."""

    grants: Mapping[str, Grant]
    response_types: Mapping[frozenset[str], ResponseType]
    interactions: Mapping[str, "Interaction"]
    factors: Mapping[str, "Factor"]
    scopes: Scopes
    client_authentications: Mapping[str, ClientAuthentication]
    directories: Mapping[str, "Directory[Any]"] = field(default_factory=dict)
    sign_out_ways: Mapping[str, "SignOutWay"] = field(default_factory=dict)
    user_claims: tuple[Contribution, ...] = ()
    token_claims: tuple[Contribution, ...] = ()
    discovery: tuple[Contribution, ...] = ()
    #: Those of the service, then those that plugins add while they are configured.
    endpoints: list["Endpoint"] = field(default_factory=list)
    #: Documents that do not depend on the request, by endpoint.
    documents: dict[str, Any] = field(default_factory=dict)

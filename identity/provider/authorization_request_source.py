"""Authorization requests whose parameters are not in the request itself: pushed requests and request objects."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from identity.domain.applications import ApplicationClient
from identity.provider.authorization_request import (
    find_client,
    parse_authorization_request,
    resolve_client_and_redirect_target,
)
from identity.provider.context import Context
from identity.provider.errors import InvalidRequest, UnredirectableError
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest
from identity.provider.resource_indicators import join_resources
from identity.provider.sender_constraint import check_proof_algorithm, confirmation_parameter, find_confirmation

#: The parameters that carry or reference other parameters (OpenID Connect Core §6, RFC 9101 §5).
SOURCE_PARAMETERS = ("request", "request_uri")


class RequestForm(StrEnum):
    """How a client passed its parameters, other than in the address. An application can require each form."""

    PUSHED = "pushed"
    SIGNED = "signed"


@dataclass(frozen=True, slots=True)
class LoadedRequest:
    """The parameters of an authorization request, and the forms in which they were passed."""

    parameters: Parameters
    forms: frozenset[RequestForm] = frozenset()


class AuthorizationRequestSource(ABC):
    """Loads the parameters of authorization requests that only carry or reference them. ``parameter`` is one of
    SOURCE_PARAMETERS. ``discovery_members`` are what it adds to the discovery document."""

    name: ClassVar[str]
    parameter: ClassVar[str]
    discovery_members: ClassVar[Mapping[str, object]] = {}

    @abstractmethod
    def accepts(self, value: str, client: ApplicationClient) -> bool:
        """True if the value of ``parameter`` is for this source, and the client may use it."""

    @abstractmethod
    def load(self, value: str, client: ApplicationClient, context: Context) -> LoadedRequest:
        """The parameters of the client's request; all others in the address are ignored (RFC 9101 §6.3). The caller
        compares ``client_id``. Raises the OAuthError to report."""


def load_request(parameters: Parameters, context: Context) -> LoadedRequest:
    """The parameters of an authorization request from where they are. Without a source for them the request stays as it
    is, and is refused later. Raises OAuthError; UnknownApplication if ``client_id`` names no active application."""
    present = [name for name in SOURCE_PARAMETERS if name in parameters]
    if not present or parameters.repeated:
        return LoadedRequest(parameters)
    if len(present) > 1:
        raise InvalidRequest("use request or request_uri, not both")
    [name] = present
    value = parameters[name]
    sources = [item for item in context.protocol.authorization_request_sources.values() if item.parameter == name]
    if not sources:
        return LoadedRequest(parameters)
    client = find_client(parameters, context)
    source = next((item for item in sources if item.accepts(value, client)), None)
    if source is None:
        return LoadedRequest(parameters)
    loaded = source.load(value, client, context)
    if loaded.parameters.get_value("client_id") != client.id:
        raise InvalidRequest("client_id differs from the one of the request that was passed")
    return loaded


def require_forms(client: ApplicationClient, forms: frozenset[RequestForm]) -> None:
    """Raise InvalidRequest unless the request was passed in the forms that the application requires."""
    application = client.application
    if application.needs_pushed_request and RequestForm.PUSHED not in forms:
        raise InvalidRequest("this application has to push its authorization requests (RFC 9126)")
    if application.needs_signed_request and RequestForm.SIGNED not in forms:
        raise InvalidRequest("this application has to sign its authorization requests (RFC 9101)")


def load_pushed_request(parameters: Parameters, request: ProtocolRequest, context: Context) -> LoadedRequest:
    """A validated authorization request, for later use by its client, bound to the key that the client proves with it
    (RFC 9449 §10.1). Raises OAuthError, also for errors that would be shown in the browser."""
    confirmation = find_confirmation(request, context)
    parameters = join_resources(parameters, context)
    parameters.refuse_repeated()
    loaded = load_request(parameters, context)
    loaded = LoadedRequest(loaded.parameters, loaded.forms | {RequestForm.PUSHED})
    try:
        client, target = resolve_client_and_redirect_target(loaded.parameters, context)
    except UnredirectableError as error:
        raise InvalidRequest(error.description, reason=error.audit_reason) from None
    require_forms(client, loaded.forms)
    authorization = parse_authorization_request(loaded.parameters, client, target, context)
    if confirmation is None:
        return loaded
    check_proof_algorithm(client.application, request, confirmation, context)
    if authorization.confirmation not in (None, confirmation):
        raise InvalidRequest("the request names another key than it proves")
    return replace(
        loaded, parameters=Parameters({**loaded.parameters, **confirmation_parameter(confirmation, context)})
    )

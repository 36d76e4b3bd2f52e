"""Protocol endpoints: requests, responses, errors, and client authentication."""

from identity.domain.clients import Client
from identity.http.endpoint_routes import build_protocol_request, build_response, request_context
from identity.provider.authorization_request_source import (
    AuthorizationRequestSource,
    LoadedRequest,
    RequestForm,
    load_pushed_request,
)
from identity.provider.client_authentication import ClientAssertionMethod, ClientAuthenticationMethod
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.endpoints.metadata import discovery_response
from identity.provider.errors import (
    AccessDenied,
    AccountSelectionRequired,
    ConsentRequired,
    InvalidClient,
    InvalidGrant,
    InvalidRequest,
    InvalidRequestObject,
    InvalidRequestUri,
    InvalidScope,
    InvalidTarget,
    LoginRequired,
    MethodNotAllowed,
    OAuthError,
    RequestTooLarge,
    UnauthorizedClient,
    UnknownApplication,
    UnmetAuthenticationRequirements,
    UnredirectableError,
    UntrustedRedirect,
)
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import BrowserState, Cookie, CookieKind, ProtocolRequest, ProtocolResponse

__all__ = [
    "AccessDenied",
    "AccountSelectionRequired",
    "AuthorizationRequestSource",
    "BrowserState",
    "Client",
    "ClientAssertionMethod",
    "ClientAuthenticationMethod",
    "ConsentRequired",
    "Context",
    "Cookie",
    "CookieKind",
    "Endpoint",
    "EndpointHost",
    "InvalidClient",
    "InvalidGrant",
    "InvalidRequest",
    "InvalidRequestObject",
    "InvalidRequestUri",
    "InvalidScope",
    "InvalidTarget",
    "LoadedRequest",
    "LoginRequired",
    "MethodNotAllowed",
    "OAuthError",
    "Parameters",
    "ProtocolRequest",
    "ProtocolResponse",
    "RequestForm",
    "RequestTooLarge",
    "UnauthorizedClient",
    "UnknownApplication",
    "UnmetAuthenticationRequirements",
    "UnredirectableError",
    "UntrustedRedirect",
    "build_protocol_request",
    "build_response",
    "discovery_response",
    "load_pushed_request",
    "request_context",
]

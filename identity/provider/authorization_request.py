"""AuthorizationRequest: a validated request to the authorization endpoint (service description §4.2).

Validation has two halves. Until client and redirect URI are trusted, errors are UnredirectableError and shown in the
browser; from then on there is a RedirectTarget, and errors are sent to the client.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from identity.crypto.jwt import unverified_claims
from identity.domain.applications import ApplicationClient, is_loopback_uri
from identity.provider.claims_request import ClaimsRequest, parse_claims_request
from identity.provider.context import Context
from identity.provider.errors import (
    InvalidRequest,
    OAuthError,
    RegistrationNotSupported,
    RequestNotSupported,
    RequestUriNotSupported,
    UnauthorizedClient,
    UnavailableClientMetadata,
    UnknownApplication,
    UnsupportedResponseType,
    UntrustedRedirect,
)
from identity.provider.parameters import Parameters, repeated_parameter_error
from identity.provider.redirect_target import RedirectTarget
from identity.provider.resource_indicators import requested_resources
from identity.provider.response_type import CORE_RESPONSE_MODES, Artifact, ResponseMode, ResponseTransport, ResponseType
from identity.provider.scope import Scope
from identity.provider.sender_constraint import meets_requirement, requested_confirmation
from identity.services.client_metadata import ClientMetadataUnavailable

if TYPE_CHECKING:
    from identity.provider.pyoidc_messages import AuthorizationRequestMessage

PROMPTS = ("none", "login", "consent", "select_account", "create")

_LONGEST = 2048
_LIMITED = ("state", "nonce", "login_hint")
_UNSUPPORTED: Mapping[str, Callable[[str], OAuthError]] = {
    "request": RequestNotSupported,
    "request_uri": RequestUriNotSupported,
    "registration": RegistrationNotSupported,
}
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z")
_SECONDS = re.compile(r"[0-9]{1,10}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A validated request. ``is_required_user`` says whether the user with this id is the one that id_token_hint or the
    claims parameter require; ``parameters`` are all that were sent. ``claim_scopes`` are the scopes and those that open
    single claims: what the consent page shows. ``confirmation`` names the key with which the code must be redeemed."""

    client: ApplicationClient
    redirect_target: RedirectTarget
    response_type: ResponseType
    scope: tuple[str, ...]
    claim_scopes: tuple[str, ...]
    prompts: frozenset[str]
    parameters: Mapping[str, str]
    redirect_uri: str
    nonce: str | None = None
    max_age: timedelta | None = None
    acr_values: tuple[str, ...] = ()
    claims: ClaimsRequest = ClaimsRequest()
    is_required_user: Callable[[str], bool] | None = None
    login_hint: str = ""
    ui_locales: str = ""
    code_challenge: str | None = None
    confirmation: str | None = None
    resources: tuple[str, ...] = ()

    @property
    def returns_to_unknown_program(self) -> bool:
        """True if any program on the user's device could have sent the request in the name of this client."""
        return self.client.application.is_dynamic and is_loopback_uri(self.redirect_uri)

    @property
    def unchecked_destination(self) -> str:
        """The host, or private-use scheme, that gets the answer for a client that chose it itself. Empty if a manager
        chose it, for the user's device, and for a client that its host names."""
        application = self.client.application
        if not application.is_dynamic or application.known_host or is_loopback_uri(self.redirect_uri):
            return ""
        target = urlsplit(self.redirect_uri)
        return target.hostname or target.scheme

    @property
    def is_silent(self) -> bool:
        """True if no page may be shown (prompt=none)."""
        return "none" in self.prompts


def resolve_client_and_redirect_target(
    parameters: Parameters, context: Context
) -> tuple[ApplicationClient, RedirectTarget]:
    """The client and its redirect target. Raises UnredirectableError."""
    for name in ("client_id", "redirect_uri"):
        if name in parameters.repeated:
            raise UntrustedRedirect(repeated_parameter_error(name).description)
    client = find_client(parameters, context)
    application, redirect_uri = client.application, parameters.get_value("redirect_uri")
    if redirect_uri is None:
        raise UntrustedRedirect("redirect_uri is missing", application=application)
    if not application.has_redirect_uri(redirect_uri):
        raise UntrustedRedirect(
            "redirect_uri is not registered for this application", application=application, uri=redirect_uri
        )
    error_parameters = _with_unverified_parameters(parameters)
    mode, transport = _mode(error_parameters, context)
    address = RedirectTarget(
        redirect_uri,
        transport,
        error_parameters.get_value("state"),
        context.issuer,
        application.name,
        None if mode.encode is None else partial(mode.encode, client, context),
    )
    return client, address


def find_client(parameters: Parameters, context: Context) -> ApplicationClient:
    """The client that the request names. Raises UnknownApplication, UnavailableClientMetadata."""
    client_id = parameters.get_value("client_id")
    if client_id is None:
        raise UnknownApplication("client_id is missing")
    try:
        return require_active(context.services.applications.find_requesting_client(client_id))
    except ClientMetadataUnavailable as problem:
        raise UnavailableClientMetadata(f"the metadata of the client cannot be used: {problem.reason}") from None


def require_active(client: ApplicationClient | None) -> ApplicationClient:
    """The client, if it may send authorization requests. Raises UnknownApplication."""
    if client is None or not client.is_active:
        raise UnknownApplication("client_id names no active application")
    return client


def parse_authorization_request(
    parameters: Parameters, client: ApplicationClient, address: RedirectTarget, context: Context
) -> AuthorizationRequest:
    """Validate the request. Raises the OAuthError to send to the client."""
    parameters.refuse_repeated()
    for name, unsupported in _UNSUPPORTED.items():
        if name in parameters:
            raise unsupported(f"the parameter {name} is not supported")
    for name in _LIMITED:
        if len(parameters.get(name, "")) > _LONGEST:
            raise InvalidRequest(f"parameter {name} is longer than {_LONGEST} characters")
    message = context.provider.authorization_request(parameters)
    response_type = require_response_type(parameters.require_value("response_type"), client, context)
    _check_mode(parameters, response_type, client, context)
    scope = parameters.get_space_delimited("scope")
    if not scope:
        raise InvalidRequest("parameter scope is missing")
    Scope.require_openid(scope)
    if Artifact.ID_TOKEN in response_type.artifacts and "nonce" not in parameters:
        raise InvalidRequest("parameter nonce is missing: ID tokens that pass through the browser need one")
    claims = parameters.get_value("claims")
    claims_request = ClaimsRequest() if claims is None else parse_claims_request(claims, context)
    confirmation = requested_confirmation(parameters, context)
    if Artifact.ACCESS_TOKEN in response_type.artifacts and not meets_requirement(
        client.application, confirmation, context
    ):
        raise InvalidRequest("this application has to name the key to which its tokens are bound")
    requested_claims, scopes = (*claims_request.userinfo, *claims_request.id_token), context.protocol.scopes
    return AuthorizationRequest(
        client=client,
        redirect_target=address,
        response_type=response_type,
        scope=scope,
        claim_scopes=(
            *scope,
            *(item for item in scopes.scopes_for_claims(requested_claims) if item not in scope),
        ),
        prompts=_prompts(message),
        parameters=dict(parameters),
        redirect_uri=address.uri,
        nonce=parameters.get_value("nonce"),
        max_age=_max_age(parameters),
        acr_values=parameters.get_space_delimited("acr_values"),
        claims=claims_request,
        is_required_user=_user_condition(parameters, claims_request, client, context),
        login_hint=parameters.get("login_hint", ""),
        ui_locales=parameters.get("ui_locales", ""),
        code_challenge=_code_challenge(parameters, client, response_type),
        confirmation=confirmation,
        resources=requested_resources(parameters, context),
    )


def require_response_type(value: str, client: ApplicationClient, context: Context) -> ResponseType:
    """The response type with these values in any order. Raises UnsupportedResponseType; UnauthorizedClient if it is not
    enabled for the client."""
    requested_types = frozenset(value.split())
    known = context.protocol.response_types.get(requested_types)
    if known is None:
        offered = ", ".join(response_type.value for response_type in context.protocol.response_types.values())
        raise UnsupportedResponseType(f"response_type must be one of {offered}")
    if not any(requested_types == frozenset(enabled.split()) for enabled in client.application.response_types):
        raise UnauthorizedClient(f"the response type {known.value} is not enabled for this application")
    return known


def _with_unverified_parameters(parameters: Parameters) -> Parameters:
    """The parameters, completed from an unverified request object as far as they concern the error response. A client
    that sends everything in the object (OpenID Connect Core §6.1) could not read the error otherwise. The object
    decides nothing else, and the redirect URI is a registered one."""
    text = parameters.get_value("request")
    request_object = {} if text is None else unverified_claims(text)
    texts = {
        name: request_object[name] for name in ("response_mode", "state") if isinstance(request_object.get(name), str)
    }
    return Parameters({**texts, **parameters}) if texts and len(texts.get("state", "")) <= _LONGEST else parameters


def _mode(parameters: Parameters, context: Context) -> tuple[ResponseMode, ResponseTransport]:
    """The response mode and its transport, also for errors about the response mode itself."""
    requested_types = frozenset(parameters.get("response_type", "").split())
    known = context.protocol.response_types.get(requested_types)
    fronts = known.uses_front_channel if known is not None else bool(requested_types & {"token", "id_token"})
    default = ResponseTransport.FRAGMENT if fronts else ResponseTransport.QUERY
    mode = context.protocol.response_modes.get(parameters.get("response_mode", ""))
    if mode is None or (fronts and mode.transport is ResponseTransport.QUERY):
        return CORE_RESPONSE_MODES[default], default
    return mode, mode.transport or default


def _check_mode(
    parameters: Parameters, response_type: ResponseType, client: ApplicationClient, context: Context
) -> None:
    requested_mode, known = parameters.get_value("response_mode"), context.protocol.response_modes
    mode = None if requested_mode is None else known.get(requested_mode)
    if client.application.needs_encoded_response and (mode is None or mode.encode is None):
        raise InvalidRequest("this application has to request a signed response: use response_mode jwt")
    if requested_mode is None:
        return
    if mode is None:
        raise InvalidRequest(f"response_mode must be one of {', '.join(known)}")
    if mode.transport is ResponseTransport.QUERY and response_type.uses_front_channel:
        raise InvalidRequest("tokens are not sent in a query: use response_mode fragment or form_post")


def _prompts(message: "AuthorizationRequestMessage") -> frozenset[str]:
    prompts = frozenset(message.get("prompt", ()))
    if not prompts <= frozenset(PROMPTS):
        raise InvalidRequest(f"prompt must be of {', '.join(PROMPTS)}")
    if "none" in prompts and len(prompts) > 1:
        raise InvalidRequest("prompt none cannot be combined with others")
    return prompts


def _user_condition(
    parameters: Parameters, claims_request: ClaimsRequest, client: ApplicationClient, context: Context
) -> Callable[[str], bool] | None:
    """Whether a user is the one that the request names, as the client knows them; None if it names none."""
    text = parameters.get_value("id_token_hint")
    hint = None if text is None else context.services.signing_keys.verify_id_token_hint(text)
    if text is not None and hint is None:
        raise InvalidRequest("id_token_hint is not an ID token of this issuer")
    hinted = None if hint is None else hint.subject
    if None not in (hinted, claims_request.subject) and hinted != claims_request.subject:
        raise InvalidRequest("id_token_hint and claims name two subjects")
    named = hinted or claims_request.subject
    if named is None:
        return None
    return partial(context.services.subject_identifiers.is_known_as, named, client=client)


def _max_age(parameters: Parameters) -> timedelta | None:
    text = parameters.get_value("max_age")
    if text is None:
        return None
    if not _SECONDS.match(text):
        raise InvalidRequest("max_age must be a whole number of seconds")
    return timedelta(seconds=int(text))


def _code_challenge(parameters: Parameters, client: ApplicationClient, response_type: ResponseType) -> str | None:
    """The S256 challenge (RFC 7636 §4.3), only for codes. Public clients must send one."""
    challenge, method = parameters.get_value("code_challenge"), parameters.get_value("code_challenge_method")
    if Artifact.CODE not in response_type.artifacts:
        return None
    if challenge is None and method is not None:
        raise InvalidRequest("parameter code_challenge is missing")
    if challenge is None:
        if client.application.needs_code_challenge:
            raise InvalidRequest("parameter code_challenge is missing: this application needs PKCE")
        return None
    # The default method is plain.
    if method != "S256":
        raise InvalidRequest("code_challenge_method must be S256")
    if not _CHALLENGE.match(challenge):
        raise InvalidRequest("code_challenge must be 43 characters of base64url")
    return challenge

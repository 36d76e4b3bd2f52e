"""Sender-constrained tokens: only the client that has a key can use them (RFC 9449, RFC 8705)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from identity.domain.applications import Application
from identity.domain.security_profiles import PROFILE_ALGORITHMS
from identity.domain.tokens import AccessToken
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant, InvalidRequest, InvalidToken
from identity.provider.grant_type import Authorization
from identity.provider.protocol_request import ProtocolRequest

if TYPE_CHECKING:
    from identity.provider.parameters import Parameters

BEARER = "Bearer"


class SenderConstraint(ABC):
    """A way to prove a key with each request. ``method`` is its member of the claim ``cnf``. ``token_type`` is that of
    its tokens, and their scheme in the Authorization header; a constraint whose scheme is Bearer applies only to
    clients that require it, and to what comes from bound tokens. ``parameter`` is the authorization request parameter
    that names a key, if any."""

    name: ClassVar[str]
    method: ClassVar[str]
    token_type: ClassVar[str]
    parameter: ClassVar[str | None] = None
    discovery_members: ClassVar[Mapping[str, object]] = {}

    @abstractmethod
    def is_used_in(self, request: ProtocolRequest) -> bool:
        """True if the request has a proof, valid or not."""

    @abstractmethod
    def verify(self, request: ProtocolRequest, context: Context, *, access_token: str | None = None) -> str:
        """The thumbprint of the key that the request proves; ``access_token`` is the one that it presents to a
        protected resource. Raises OAuthError."""

    def proof_algorithm(self, request: ProtocolRequest) -> str | None:
        """The algorithm by which the client signed a verified proof; None if the proof is not a signed message."""
        return None

    def thumbprint_from_parameter(self, value: str) -> str:
        """The thumbprint that an authorization request names in ``parameter``. Raises InvalidRequest."""
        raise InvalidRequest(f"parameter {self.parameter} is not supported")

    def confirmation(self, thumbprint: str) -> str:
        return f"{self.method}:{thumbprint}"


def find_confirmation(request: ProtocolRequest, context: Context) -> str | None:
    """The key that a request to the service proves, for the tokens that it may get; None without a proof. Raises
    OAuthError for an invalid proof."""
    for constraint in context.protocol.sender_constraints.values():
        if constraint.token_type != BEARER and constraint.is_used_in(request):
            return constraint.confirmation(constraint.verify(request, context))
    return None


def requested_confirmation(parameters: "Parameters", context: Context) -> str | None:
    """The key that an authorization request names. Raises InvalidRequest."""
    for constraint in context.protocol.sender_constraints.values():
        value = None if constraint.parameter is None else parameters.get_value(constraint.parameter)
        if value is not None:
            return constraint.confirmation(constraint.thumbprint_from_parameter(value))
    return None


def confirmation_parameter(confirmation: str, context: Context) -> dict[str, str]:
    """The authorization request parameter that names the key."""
    method, _, thumbprint = confirmation.partition(":")
    constraint = _find_constraint(method, context)
    return {} if constraint is None or constraint.parameter is None else {constraint.parameter: thumbprint}


def bind_to_sender(
    authorization: Authorization, request: ProtocolRequest, confirmation: str | None, context: Context
) -> Authorization:
    """The authorization, with its tokens bound to the key that the request proves. Raises InvalidGrant if the grant is
    bound to another key, InvalidRequest without the proof that the application requires."""
    application = None if authorization.client is None else authorization.client.application
    if confirmation is None:
        confirmation = _find_bearer_confirmation(authorization, request, context)
    if application is not None and application.needs_bound_tokens:
        _require_constraint(application, request, confirmation, context)
    if authorization.confirmation not in (None, confirmation):
        raise InvalidGrant("the grant is bound to another key than the request proves")
    if authorization.requires_confirmation and confirmation is None:
        raise InvalidRequest("prove a key: what comes from a bound token is bound too")
    return authorization if confirmation is None else replace(authorization, confirmation=confirmation)


def meets_requirement(application: Application, confirmation: str | None, context: Context) -> bool:
    """True if the key was named in the way that the application requires, or in any if its profile requires one."""
    required, offered = application.required_sender_constraint, context.protocol.sender_constraints
    methods = {item.method for name, item in offered.items() if required in (None, name)}
    return not application.needs_bound_tokens or (confirmation or "").partition(":")[0] in methods


def _find_bearer_confirmation(authorization: Authorization, request: ProtocolRequest, context: Context) -> str | None:
    """The key that the request proves by a constraint with the scheme Bearer, if it applies. Raises OAuthError."""
    application = None if authorization.client is None else authorization.client.application
    required = None if application is None else application.required_sender_constraint
    in_any_way = authorization.requires_confirmation or (
        application is not None and application.needs_bound_tokens and required is None
    )
    bound_by = (authorization.confirmation or "").partition(":")[0]
    for name, constraint in context.protocol.sender_constraints.items():
        applies = in_any_way or name == required or constraint.method == bound_by
        if constraint.token_type == BEARER and applies and constraint.is_used_in(request):
            return constraint.confirmation(constraint.verify(request, context))
    return None


def _require_constraint(
    application: Application, request: ProtocolRequest, confirmation: str | None, context: Context
) -> None:
    """Raise InvalidRequest unless the key was proved in the way that the application requires, or in any if its profile
    requires one."""
    required, offered = application.required_sender_constraint, context.protocol.sender_constraints
    if required is not None and required not in offered:
        raise InvalidRequest(f"this application has to use {required}, which is not offered here")
    if confirmation is None or not meets_requirement(application, confirmation, context):
        names = tuple(offered) if required is None else (required,)
        raise InvalidRequest(f"this application has to prove its key with {' or '.join(names)}")
    check_proof_algorithm(application, request, confirmation, context)


def check_proof_algorithm(
    application: Application, request: ProtocolRequest, confirmation: str, context: Context
) -> None:
    """Raise InvalidRequest if the profile of the application does not allow the algorithm of its verified proof."""
    if application.security_profile is None:
        return
    constraint = _find_constraint(confirmation.partition(":")[0], context)
    algorithm = None if constraint is None else constraint.proof_algorithm(request)
    if algorithm is not None and not application.allows_algorithm(algorithm):
        raise InvalidRequest(f"alg of the proof must be one of {', '.join(PROFILE_ALGORITHMS)}")


def prove_sender(request: ProtocolRequest, scheme: str, text: str, context: Context) -> str | None:
    """The key that the sender of a presented access token proves, by the scheme of the Authorization header in lower
    case; None for Bearer. Call it before the token is looked up: it may write. Raises the error of the proof."""
    if scheme == BEARER.lower():
        return None
    for constraint in context.protocol.sender_constraints.values():
        if scheme == constraint.token_type.lower():
            return constraint.confirmation(constraint.verify(request, context, access_token=text))
    raise InvalidToken("the Authorization header has a scheme that is not supported")


def check_sender(token: AccessToken, proved: str | None, request: ProtocolRequest, context: Context) -> None:
    """Raise InvalidToken unless the sender of a live token has its key. ``proved`` is from ``prove_sender``."""
    if token.confirmation is None and proved is None:
        return
    if token.confirmation is not None and proved is None:
        constraint = _find_constraint(token.confirmation.partition(":")[0], context)
        if constraint is not None and constraint.token_type == BEARER and constraint.is_used_in(request):
            proved = constraint.confirmation(constraint.verify(request, context))
    if proved is None or token.confirmation != proved:
        raise InvalidToken("the access token is bound to a key that the request does not prove")


def _find_constraint(method: str, context: Context) -> SenderConstraint | None:
    return next((item for item in context.protocol.sender_constraints.values() if item.method == method), None)


def token_type(confirmation: str | None, context: Context) -> str:
    """The ``token_type`` of a token (RFC 6749 §7.1)."""
    if confirmation is None:
        return BEARER
    constraint = _find_constraint(confirmation.partition(":")[0], context)
    return BEARER if constraint is None else constraint.token_type

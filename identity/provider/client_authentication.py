"""Client authentication, with exactly one method per request."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from identity.crypto.jwt import InvalidTokenSignature, MalformedToken, UnverifiedToken
from identity.crypto.secrets import is_id
from identity.domain.applications import ApplicationClient
from identity.domain.audit import ActorKind
from identity.domain.clients import Client, ServiceUserClient
from identity.domain.hook_results import hook_type_error_text
from identity.key_sets import KeySetUnavailable
from identity.provider.assertion_claims import AssertionClaims
from identity.provider.assertion_verifier import AssertionVerifier
from identity.provider.context import Context
from identity.provider.errors import InvalidClient, InvalidRequest
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest

log = logging.getLogger(__name__)

#: RFC 7523 §2.2.
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_TYPES = frozenset({None, "JWT", "jwt", "client-authentication+jwt"})
_MAX_CLIENT_ID_LENGTH = 200


class ClientAuthenticationMethod(ABC):
    """A client authentication method. ``name`` is its registered name (OpenID Connect Core §9)."""

    #: Credentials in a form, whether or not a loaded plugin reads them.
    CREDENTIAL_PARAMETERS: ClassVar[tuple[str, ...]] = ("client_secret", "client_assertion")

    name: ClassVar[str]
    #: The form parameters that carry its credentials.
    parameters: ClassVar[frozenset[str]] = frozenset()
    #: The algorithms of the assertions that it accepts; empty if it uses none.
    signing_algorithms: ClassVar[tuple[str, ...]] = ()
    #: False if a client only identifies itself: any other method in the request takes precedence.
    is_proof: ClassVar[bool] = True
    #: True if its credential belongs to the connection: any credential in the request takes precedence, and the
    #: registration of the client decides whether it counts.
    is_of_connection: ClassVar[bool] = False

    @abstractmethod
    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True if the request uses this method, correctly or not."""

    @abstractmethod
    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """The authenticated active application or service user. Raises InvalidClient."""

    def authenticate_with_secret(self, client_id: str, secret: str, context: Context) -> Client:
        """The active application with this secret, if it uses this method, or the active service user. The form of the
        id distinguishes the two, so that each takes one query. A service user may use any method. Raises InvalidClient,
        always with the same message."""
        if is_id(client_id):
            service_user = context.services.service_users.authenticate(client_id, secret)
            if service_user is None:
                raise self.error("unknown service user, wrong secret or deactivated", kind="service_user")
            return service_user
        context.activity.name_client(client_id)
        client = context.services.applications.authenticate(client_id, secret)
        if client is None:
            raise self.error("unknown client, wrong secret or deactivated")
        return self._require_own(client)

    def find_public_client(self, client_id: str, context: Context) -> ApplicationClient:
        """The active, unauthenticated client, if it uses this method. Raises InvalidClient as above."""
        context.activity.name_client(client_id)
        client = context.services.applications.find_client(client_id)
        if client is None or not client.is_active:
            raise self.error("unknown client or deactivated")
        return self._require_own(client)

    def _require_own(self, client: ApplicationClient) -> ApplicationClient:
        if client.application.authentication_method != self.name:
            raise self.error("the application uses another authentication method")
        return client

    @staticmethod
    def error(reason: str, *, kind: str = "application") -> InvalidClient:
        """The error for wrong credentials: all failures look the same to clients; the audit trail has the reason."""
        return InvalidClient("client authentication failed", reason=reason, kind=kind)


class ClientAssertionMethod(ClientAuthenticationMethod):
    """Authentication by a client assertion (RFC 7523 §2.2, OpenID Connect Core §9), whose ``exp`` is at most
    ``max_lifetime`` away. Methods differ in ``signing_algorithms``, by which a request chooses one of them, and in the
    keys that verify."""

    parameters = frozenset({"client_assertion", "client_assertion_type"})

    def __init__(self, max_lifetime: timedelta) -> None:
        self._max_lifetime = max_lifetime

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for an assertion, with or without its type."""
        return "client_assertion" in parameters

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> ApplicationClient:
        """The active application that signed the assertion, if it uses this method. Raises InvalidClient.

        The key comes from the application, its algorithm from ``signing_algorithms``. Up to the signature all failures
        have the same message and verify one signature; only the first use of a key set takes longer. After it the
        sender owns the key, and the message says what to fix. An assertion that got this far stays used,
        even if the request fails."""
        try:
            token = _parse_assertion(parameters)
            verifier = _find_verifier(token, parameters, context)
            if verifier is not None:
                return self._authenticate_with_outside_assertion(token, verifier, parameters, context)
            client, claims = self._read_assertion(token, context)
        except (MalformedToken, InvalidTokenSignature, ClientAssertionRefused, KeySetUnavailable) as refusal:
            raise self.error(str(refusal)) from None
        checked = AssertionClaims(
            claims, context, lambda description, reason: InvalidClient(description, reason=reason)
        )
        if claims.get("sub") != client.id:
            checked.refuse("sub must equal iss")
        if client.application.security_profile is None:
            checked.check_audience(_assertion_audiences(context))
        elif claims.get("aud") != context.issuer:
            # FAPI 2.0 Security Profile §5.3.2.1: the issuer, as text.
            checked.refuse(f"aud must be {context.issuer}")
        ends_at = checked.check_times(max_lifetime=self._max_lifetime)
        jti = checked.read_jti()
        if not context.services.assertions.use_once(client.id, str(jti), ends_at):
            checked.refuse("jti was used before; each assertion needs a new one", "jti was used before")
        if client.secret_id is not None:
            context.services.applications.record_secret_use(client.secret_id)
        return client

    def _authenticate_with_outside_assertion(
        self, token: UnverifiedToken, verifier: AssertionVerifier, parameters: Parameters, context: Context
    ) -> ApplicationClient:
        """The application that the request names, if a federated credential of it trusts the assertion. Raises
        InvalidClient."""
        client = self._find_named_client(token, parameters, context)
        verified = verifier.verify_client(token, client, context)
        if client is None or verified.credential is None:
            raise self.error("the assertion authenticates no application")
        if not context.services.assertions.use_once(verified.issuer, verified.single_use_id, verified.ends_at):
            description = "the assertion was used before; each request needs a new one"
            raise InvalidClient(description, reason="the assertion was used before")
        context.services.federated_credentials.record_use(verified.credential)
        return replace(client, federated_credential_id=verified.credential.id)

    def _find_named_client(
        self, token: UnverifiedToken, parameters: Parameters, context: Context
    ) -> ApplicationClient | None:
        """The active application of ``client_id``, if it uses this method and the algorithm that it registered, and has
        no security profile: FAPI 2.0 knows assertions of the client itself alone."""
        client_id = parameters.require_value("client_id")
        if len(client_id) > _MAX_CLIENT_ID_LENGTH:
            return None
        context.activity.name_client(client_id)
        client = context.services.applications.find_client(client_id)
        if client is None or not client.is_active or client.application.authentication_method != self.name:
            return None
        application = client.application
        if application.security_profile is not None:
            return None
        return client if application.token_endpoint_auth_signing_alg in ("", token.header["alg"]) else None

    def _read_assertion(self, token: UnverifiedToken, context: Context) -> tuple[ApplicationClient, Mapping[str, Any]]:
        client_id = token.claims.get("iss")
        if not isinstance(client_id, str) or not 0 < len(client_id) <= _MAX_CLIENT_ID_LENGTH:
            raise ClientAssertionRefused("iss is missing or too long")
        context.activity.name_client(client_id)
        client = context.services.applications.find_client(client_id)
        try:
            return self.verify_assertion(self._check_registration(client, token), token, context)
        except (ClientAssertionRefused, KeySetUnavailable):
            token.verify_with_unknown_key()
            raise

    def _check_registration(self, client: ApplicationClient | None, token: UnverifiedToken) -> ApplicationClient:
        """The client, if it may authenticate with such an assertion. Raises ClientAssertionRefused."""
        if client is None or not client.is_active:
            raise ClientAssertionRefused("unknown client or deactivated")
        application = client.application
        if application.authentication_method != self.name:
            raise ClientAssertionRefused("the application uses another authentication method")
        allowed = application.token_endpoint_auth_signing_alg or token.header["alg"]
        if (
            token.header["alg"] not in self.signing_algorithms
            or token.header["alg"] != allowed
            or not application.allows_algorithm(token.header["alg"])
        ):
            raise ClientAssertionRefused("alg is not accepted")
        if token.header.get("typ") not in _ASSERTION_TYPES:
            raise ClientAssertionRefused("typ is not that of a client assertion")
        return client

    def verify_assertion(
        self, client: ApplicationClient, token: UnverifiedToken, context: Context
    ) -> tuple[ApplicationClient, Mapping[str, Any]]:
        """The client and the verified claims; by default its public keys verify them. Raises InvalidTokenSignature,
        KeySetUnavailable, ClientAssertionRefused."""
        key = context.services.assertions.find_client_key(token.header, client)
        if key is None:
            raise ClientAssertionRefused("no key of this kid and alg")
        return client, token.verify_with_jwk(key, algorithm=token.header["alg"])


class ClientAssertionRefused(Exception):
    """Why an assertion is refused before its signature is verified; for the audit trail only."""


def _parse_assertion(parameters: Parameters) -> UnverifiedToken:
    """Raises ClientAssertionRefused, MalformedToken."""
    if parameters.get_value("client_assertion_type") != ASSERTION_TYPE:
        raise ClientAssertionRefused("client_assertion_type is not that of a JWT")
    return UnverifiedToken.parse(parameters.require_value("client_assertion"))


def _find_verifier(token: UnverifiedToken, parameters: Parameters, context: Context) -> AssertionVerifier | None:
    """Who verifies the assertion of an outside issuer; None for those of the application itself. The request names the
    application, so an assertion never chooses whom it authenticates."""
    if parameters.get_value("client_id") in (None, token.claims.get("iss")):
        return None
    return next((item for item in context.protocol.assertion_verifiers.values() if item.accepts(token)), None)


def _assertion_audiences(context: Context) -> frozenset[str]:
    """The issuer, further values of the settings, and the endpoints that authenticate clients: which of them a client
    calls makes no difference, since an assertion counts once."""
    settings = context.settings
    return frozenset(
        (
            settings.issuer_url,
            *settings.assertion_audiences,
            *(
                settings.base_url + endpoint.path
                for endpoint in context.protocol.endpoints
                if endpoint.authenticates_clients
            ),
        )
    )


def authenticate_client(request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
    """The application, or the service user with a secret, that the request authenticates. Raises InvalidClient for
    none, InvalidRequest for more than one method or a client_id in the body that differs from the credentials (RFC 6749
    §2.3). Every failure is audited."""
    known = context.protocol.client_authentication_methods.values()
    presented = [method for method in known if method.is_used_in(request, parameters)]
    # A client_id or certificate beside credentials is not a second method.
    explicit = [method for method in presented if method.is_proof and not method.is_of_connection]
    methods = _select_by_algorithm(explicit, parameters) or _find_registered_method(presented, parameters, context)
    foreign = [
        name
        for name in ClientAuthenticationMethod.CREDENTIAL_PARAMETERS
        if name in parameters and not any(name in method.parameters for method in methods)
    ]
    if len(methods) > 1 or (methods and foreign):
        raise InvalidRequest("use one client authentication method, not several")
    if not methods:
        raise InvalidClient("client authentication is missing")
    try:
        answer: object = methods[0].authenticate(request, parameters, context)
        if not isinstance(answer, (ApplicationClient, ServiceUserClient)):
            name, text = methods[0].name, hook_type_error_text(answer)
            log.error("the client authentication %s answered with %s", name, text)
            raise methods[0].error("the authentication method answered with no client")
        party: Client = answer
    except InvalidClient as refusal:
        context.services.audit.record_refusal(
            "authentication.refused", kind=refusal.kind, id=None, reason=refusal.audit_reason
        )
        raise
    if isinstance(party, ApplicationClient):
        context.activity.set_client(party)
    if parameters.get_value("client_id") not in (None, party.id):
        raise InvalidRequest("client_id differs from the authenticated client")
    kind = ActorKind.USER if isinstance(party, ServiceUserClient) else ActorKind.CLIENT
    audit = context.services.audit
    audit.actor = audit.actor.authenticated_as(kind, party.id, client_id=party.id)
    return party


def _select_by_algorithm(
    presented: list[ClientAuthenticationMethod], parameters: Parameters
) -> list[ClientAuthenticationMethod]:
    """Of methods that read the same assertion, the one for its algorithm; else the first, which refuses it."""
    if len(presented) < 2 or not all(isinstance(method, ClientAssertionMethod) for method in presented):
        return presented
    try:
        algorithm = UnverifiedToken.parse(parameters.get("client_assertion", "")).header["alg"]
    except MalformedToken:
        algorithm = ""
    return [method for method in presented if algorithm in method.signing_algorithms] or presented[:1]


def _find_registered_method(
    presented: list[ClientAuthenticationMethod], parameters: Parameters, context: Context
) -> list[ClientAuthenticationMethod]:
    """Of methods that only differ in how the client is registered, its own; else the first, which refuses it."""
    if len(presented) < 2:
        return presented
    client = context.services.applications.find_client(parameters.get("client_id", ""))
    name = None if client is None else client.application.authentication_method
    return [method for method in presented if method.name == name] or presented[:1]


def require_application(party: Client) -> ApplicationClient:
    """The client, if it is an authenticated application. Raises InvalidClient."""
    if isinstance(party, ServiceUserClient):
        raise InvalidClient("service users may not ask this: it is for applications")
    if party.application.is_public:
        raise InvalidClient("public clients may not ask this: they cannot prove who they are")
    return party

"""ClientAuthentication, and the rule "exactly one method per request"."""

from abc import ABC, abstractmethod
from typing import ClassVar

from identity.domain.applications import Client
from identity.provider.errors import InvalidClient, InvalidRequest
from identity.provider.parameters import Parameters
from identity.provider.request import Context, ProtocolRequest

#: Credentials in a form, whether or not a loaded plugin reads them.
CREDENTIALS = ("client_secret", "client_assertion")


class ClientAuthentication(ABC):
    """A way in which a client proves who it is. ``name`` is its registered name (OpenID Connect Core §9)."""

    name: ClassVar[str]
    #: The form parameters that carry its credentials.
    parameters: ClassVar[frozenset[str]] = frozenset()
    #: False if a client only names itself: then it gives way to every other method beside it.
    proves: ClassVar[bool] = True

    @abstractmethod
    def presented(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True if the request uses this method, rightly or wrongly."""

    @abstractmethod
    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """The active client that proved itself. Raises InvalidClient."""


def authenticate_client(request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
    """The client that the request authenticates.

    Raises InvalidClient if it authenticates none, InvalidRequest for more than one method or another client_id in the
    body than in the credentials (RFC 6749 §2.3). Every failure is audited.
    """
    presented = [one for one in context.protocol.client_authentications.values() if one.presented(request, parameters)]
    # A client_id beside credentials repeats whose they are, and is no second method.
    methods = [one for one in presented if one.proves] or presented
    foreign = [
        name for name in CREDENTIALS if name in parameters and not any(name in one.parameters for one in methods)
    ]
    if len(methods) > 1 or (methods and foreign):
        raise InvalidRequest("use one client authentication method, not several")
    if not methods:
        raise InvalidClient("client authentication is missing")
    try:
        client = methods[0].authenticate(request, parameters, context)
    except InvalidClient as refusal:
        context.services.audit.refuse("authentication.refused", kind="application", id=None, reason=refusal.reason)
        raise
    if parameters.one("client_id") not in (None, client.id):
        raise InvalidRequest("client_id differs from the authenticated client")
    return client


def client_with_secret(client_id: str, secret: str, method: str, context: Context) -> Client:
    """The active client whose secret this is, if it uses the method. Raises InvalidClient, always in the same words."""
    client = context.services.applications.authenticate(client_id, secret)
    if client is None:
        raise failed("unknown client, wrong secret or deactivated")
    return _using(method, client)


def client_by_name(client_id: str, method: str, context: Context) -> Client:
    """The active client of this id, if it uses the method; it has proved nothing. Raises InvalidClient as above."""
    client = context.services.applications.find_client(client_id)
    if client is None or not client.active:
        raise failed("unknown client or deactivated")
    return _using(method, client)


def _using(method: str, client: Client) -> Client:
    if client.application.authentication_method != method:
        raise failed("the application uses another authentication method")
    return client


def failed(reason: str) -> InvalidClient:
    """The error for wrong credentials: every failure looks the same from outside, the audit trail has the reason."""
    return InvalidClient("client authentication failed", reason=reason)


def refuse_public(client: Client) -> None:
    """Raise InvalidClient for a client that cannot prove who it is."""
    if client.application.public:
        raise InvalidClient("public clients may not ask this: they cannot prove who they are")

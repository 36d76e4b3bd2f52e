"""ClientAuthentication, and the rule "exactly one method per request"."""

from abc import ABC, abstractmethod
from typing import ClassVar

from identity.domain.applications import Client
from identity.provider.errors import InvalidClient, InvalidRequest
from identity.provider.parameters import Parameters
from identity.provider.request import Context, ProtocolRequest

#: Credentials in a form, whether or not a loaded plugin reads them.
_CREDENTIALS = ("client_secret", "client_assertion")


class ClientAuthentication(ABC):
    """A way in which a client proves who it is. ``name`` is its registered name (OpenID Connect Core §9)."""

    name: ClassVar[str]
    #: The form parameters that carry its credentials.
    parameters: ClassVar[frozenset[str]] = frozenset()

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
    methods = [one for one in context.protocol.client_authentications.values() if one.presented(request, parameters)]
    foreign = [
        name for name in _CREDENTIALS if name in parameters and not any(name in one.parameters for one in methods)
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

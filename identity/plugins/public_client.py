"""Client authentication none: a public client names itself (RFC 6749 §2.1, §3.2.1; OpenID Connect Core §9).

A browser or native application can keep no secret. That a code is its own it proves with PKCE, which the authorization
endpoint and the code grant demand of it; its refresh tokens are bound to its client id and rotate.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.domain.applications import Client
from identity.provider.client_authentication import CREDENTIALS, ClientAuthentication, client_by_name
from identity.provider.context import Context
from identity.provider.parameters import Parameters
from identity.provider.request import ProtocolRequest


class PublicClient(ClientAuthentication):
    """Takes the client_id in the form for a name, where nothing else in the request could be meant as a credential."""

    name = "none"
    proves = False

    def presented(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for a client_id alone: no header, no secret, no assertion of the client beside it."""
        return (
            "client_id" in parameters
            and not request.authorization
            and not any(credential in parameters for credential in CREDENTIALS)
        )

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """The public client of this id. Every failure looks the same from outside."""
        return client_by_name(parameters.required("client_id"), self.name, context)


class Plugin:
    """Offers the method none, for public clients."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_client_authentications(self) -> Iterable[ClientAuthentication]:
        """The method none."""
        return [PublicClient()]

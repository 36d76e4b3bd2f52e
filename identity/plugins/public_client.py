"""Client authentication none: a public client names itself (RFC 6749 §2.1, §3.2.1; OpenID Connect Core §9).

A browser or native application can keep no secret. That a code is its own it proves with PKCE, which the authorization
endpoint and the code grant demand of it; its refresh tokens are bound to its client id and rotate.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.domain.applications import ApplicationClient
from identity.provider.client_authentication import (
    CREDENTIAL_PARAMETERS,
    ClientAuthenticationMethod,
    find_public_client,
)
from identity.provider.context import Context
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest


class PublicClientAuthentication(ClientAuthenticationMethod):
    """Takes the client_id in the form for a name, where nothing else in the request could be meant as a credential."""

    name = "none"
    is_proof = False

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for a client_id alone: no header, no secret, no assertion of the client beside it."""
        return (
            "client_id" in parameters
            and not request.authorization
            and not any(credential in parameters for credential in CREDENTIAL_PARAMETERS)
        )

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> ApplicationClient:
        """The public client of this id. Every failure looks the same from outside."""
        return find_public_client(parameters.require_value("client_id"), self.name, context)


class PublicClientPlugin:
    """Offers the method none, for public clients."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_client_authentication_methods(self) -> Iterable[ClientAuthenticationMethod]:
        """The method none."""
        return [PublicClientAuthentication()]

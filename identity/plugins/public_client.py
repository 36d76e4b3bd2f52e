"""Client authentication none: a public client identifies itself (RFC 6749 §2.1, §3.2.1; OpenID Connect Core §9).

A browser or native application cannot keep a secret. The authorization endpoint and the code grant require PKCE of
it; its refresh tokens are bound to its client id and rotate.
"""

from collections.abc import Iterable

from identity.api.endpoints import ClientAuthenticationMethod, Context, Parameters, ProtocolRequest
from identity.api.entities import ApplicationClient
from identity.api.plugins import hookimpl


class PublicClientAuthentication(ClientAuthenticationMethod):
    """Accepts the client_id in the form if the request contains nothing that could be a credential."""

    name = "none"
    is_proof = False

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for a client_id without a header, secret or client assertion."""
        return (
            "client_id" in parameters
            and not request.authorization
            and not any(credential in parameters for credential in ClientAuthenticationMethod.CREDENTIAL_PARAMETERS)
        )

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> ApplicationClient:
        """The public client of this id. Every failure looks the same from outside."""
        return self.find_public_client(parameters.require_value("client_id"), context)


class PublicClientPlugin:
    """Client authentication ``none``, for public clients."""

    hookspecs = 1

    @hookimpl
    def identity_client_authentication_methods(self) -> Iterable[ClientAuthenticationMethod]:
        """The method none."""
        return [PublicClientAuthentication()]

"""Client authentication client_secret_post: id and secret in the form (RFC 6749 §2.3.1).

The RFC advises against it; it is for clients that cannot send a Basic header: applications that are registered with it,
and service users.
"""

from collections.abc import Iterable

from identity.api.endpoints import Client, ClientAuthenticationMethod, Context, Parameters, ProtocolRequest
from identity.api.plugins import hookimpl


class ClientSecretPost(ClientAuthenticationMethod):
    """Accepts the secret in the form, from applications registered with this method and from service users."""

    name = "client_secret_post"
    parameters = frozenset({"client_secret"})

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for a secret in the form, with or without an id."""
        return "client_secret" in parameters

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """The application or service user whose secret this is. Every failure looks the same from outside."""
        client_id = parameters.get_value("client_id")
        if client_id is None:
            raise ClientAuthenticationMethod.error("client_id is missing")
        return self.authenticate_with_secret(client_id, parameters.require_value("client_secret"), context)


class ClientSecretPostPlugin:
    """Client authentication with ``client_secret_post``."""

    hookspecs = 1

    @hookimpl
    def identity_client_authentication_methods(self) -> Iterable[ClientAuthenticationMethod]:
        """client_secret_post."""
        return [ClientSecretPost()]

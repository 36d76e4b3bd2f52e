"""Grant client_credentials: an application, or a service user with a secret, gets a token for itself (RFC 6749 §4.4).

A token request::

    POST /oauth/v2/token
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    grant_type=client_credentials&scope=urn%3Aservice%3Aiam%3Aorg%3Aproject%3Aid%3A…%3Aaud
"""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.provider.errors import UnauthorizedClient
from identity.provider.grant import Authorization, ClientRule, Grant, TokenRequest
from identity.provider.request import Context
from identity.provider.scope import check_form


class ClientCredentials(Grant):
    """Nobody signs in, so neither openid nor an ID token, and no refresh token: whoever asks can ask again.

    An application's token is about no user. A service user's is about the service user, as one for an assertion is,
    and ends with the secret that obtained it.
    """

    grant_type = "client_credentials"
    parameters = frozenset[str]()
    client = ClientRule.OR_SERVICE_USER

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The application or service user itself. Raises UnauthorizedClient, InvalidScope."""
        client, service_user = request.client, request.service_user
        party = client or service_user
        if party is None:
            raise ValueError("the token endpoint authenticates the client first")
        if client is not None and client.application.public:
            raise UnauthorizedClient("a public client has no credentials that could stand for it")
        asked = request.parameters.words("scope")
        check_form(asked)
        return Authorization(
            subject=None if service_user is None else service_user.subject,
            client=client,
            client_id=party.id,
            asked=asked,
            authenticated_at=context.now,
            secret_id=None if service_user is None else service_user.secret_id,
            id_token=False,
        )


class Plugin:
    """Offers the client_credentials grant."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_grant_types(self) -> Iterable[Grant]:
        """The client_credentials grant."""
        return [ClientCredentials()]

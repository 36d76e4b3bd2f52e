"""Client authentication client_secret_jwt: an application signs an assertion with its secret (OpenID Connect Core §9).

Other methods store only the digest of a secret. To verify a signature, the service needs the secret itself: it is
stored in addition, sealed under a master key, for applications with this method alone, when the secret is created.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from identity.api.crypto import InvalidTokenSignature, UnverifiedToken
from identity.api.endpoints import ClientAssertionMethod, ClientAuthenticationMethod, Context
from identity.api.entities import ApplicationClient
from identity.api.plugins import duration, hookimpl


class ClientSecretJwt(ClientAssertionMethod):
    """Accepts assertions with HS256 and a live secret of the application."""

    name = "client_secret_jwt"
    signing_algorithms = ("HS256",)

    def verify_assertion(
        self, client: ApplicationClient, token: UnverifiedToken, context: Context
    ) -> tuple[ApplicationClient, Mapping[str, Any]]:
        """The client, by the secret that signed. Raises InvalidTokenSignature."""
        for authenticated, secret in context.services.applications.list_signing_secrets(client):
            with suppress(InvalidTokenSignature):
                return authenticated, token.verify_with_secret(secret)
        raise InvalidTokenSignature("no secret of the application has signed it")


class ClientSecretJwtPlugin:
    """Client authentication with ``client_secret_jwt``."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """How strict assertions are judged."""

        max_assertion_lifetime: timedelta = duration(
            "How far in the future the exp of a client assertion may be.", "1h", at_most=timedelta(hours=24)
        )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_client_authentication_methods(self) -> Iterable[ClientAuthenticationMethod]:
        """client_secret_jwt."""
        return [ClientSecretJwt(self.settings.max_assertion_lifetime)]

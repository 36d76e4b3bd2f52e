"""Client authentication private_key_jwt: an application signs an assertion (OpenID Connect Core §9, RFC 7523 §2.2).

A token request::

    POST /oauth/v2/token
    Content-Type: application/x-www-form-urlencoded

    grant_type=client_credentials
    &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer
    &client_assertion=eyJ…
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from identity.api.crypto import SignatureAlgorithm
from identity.api.endpoints import ClientAssertionMethod, ClientAuthenticationMethod
from identity.api.plugins import duration, hookimpl


class PrivateKeyJwt(ClientAssertionMethod):
    """Accepts assertions of applications that name their public keys or the address of these."""

    name = "private_key_jwt"
    signing_algorithms = SignatureAlgorithm.names()


class PrivateKeyJwtPlugin:
    """Client authentication with ``private_key_jwt``."""

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
        """private_key_jwt."""
        return [PrivateKeyJwt(self.settings.max_assertion_lifetime)]

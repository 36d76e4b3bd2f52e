"""Signed authorization responses: JWT Secured Authorization Response Mode for OAuth 2.0 (JARM).

A response::

    HTTP/1.1 303 See Other
    Location: https://app.example/callback?response=eyJ…
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from identity.api.crypto import sign_jwt
from identity.api.endpoints import Context
from identity.api.entities import ApplicationClient
from identity.api.grants import ResponseMode, ResponseTransport
from identity.api.plugins import hookimpl

#: JARM §2.1 recommends at most ten minutes.
_LIFETIME = timedelta(minutes=2)


def sign_response(client: ApplicationClient, context: Context, members: Mapping[str, Any]) -> Mapping[str, str]:
    """The members as a JWT of the issuer for the client (JARM §2.1)."""
    application = client.application
    algorithm = application.authorization_signed_response_alg or application.id_token_signed_response_alg
    key_id, key = context.services.signing_keys.current_signing_key(algorithm)
    claims = {
        **members,
        "iss": context.issuer,
        "aud": client.id,
        "exp": int((context.now + _LIFETIME).timestamp()),
    }
    return {"response": sign_jwt(claims, key, key_id=key_id)}


class JarmPlugin:
    """Authorization responses as signed JWTs (JARM)."""

    hookspecs = 1

    @hookimpl
    def identity_response_modes(self) -> Iterable[ResponseMode]:
        """The modes of JARM §2.3."""
        return [
            ResponseMode("jwt", None, sign_response),
            *(ResponseMode(f"{item.value}.jwt", item, sign_response) for item in ResponseTransport),
        ]

    @hookimpl
    def identity_discovery(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """The algorithms of the signatures (JARM §4)."""
        return {"authorization_signing_alg_values_supported": document["id_token_signing_alg_values_supported"]}

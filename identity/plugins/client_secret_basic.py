"""Client authentication client_secret_basic: id and secret in a Basic header (RFC 6749 §2.3.1)."""

import base64
import binascii
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from identity.api.endpoints import Client, ClientAuthenticationMethod, Context, Parameters, ProtocolRequest
from identity.api.plugins import hookimpl

_BASIC = re.compile(r"basic(?: +(?P<credentials>.*))?\Z", re.IGNORECASE | re.DOTALL)


class ClientSecretBasic(ClientAuthenticationMethod):
    """Accepts credentials form-encoded, as the RFC requires, and raw, as many clients send them."""

    name = "client_secret_basic"

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for a Basic header, well-formed or not."""
        return _BASIC.match(request.authorization or "") is not None

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """The application or service user whose secret this is. Every failure looks the same from outside."""
        client_id, secret = _parse_credentials(request.authorization or "")
        return self.authenticate_with_secret(client_id, secret, context)


def _parse_credentials(header: str) -> tuple[str, str]:
    match = _BASIC.match(header)
    encoded = (match["credentials"] or "").strip() if match else ""
    try:
        decoded = base64.b64decode(encoded, validate=True)
        client_id, colon, secret = decoded.partition(b":")
        if not colon:
            raise ValueError("no colon")
        return _decode_credential(client_id), _decode_credential(secret)
    except (binascii.Error, ValueError):
        raise ClientAuthenticationMethod.error("the Basic header is malformed") from None


def _decode_credential(part: bytes) -> str:
    text = unquote_to_bytes(part.replace(b"+", b" ")).decode("utf-8")
    if "\0" in text:
        raise ValueError("NUL")
    return text


class ClientSecretBasicPlugin:
    """Client authentication with ``client_secret_basic``."""

    hookspecs = 1

    @hookimpl
    def identity_client_authentication_methods(self) -> Iterable[ClientAuthenticationMethod]:
        """client_secret_basic."""
        return [ClientSecretBasic()]

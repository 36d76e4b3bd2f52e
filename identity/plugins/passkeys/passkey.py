"""Passkey: a credential record and its stored form."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from identity.api.crypto import decode_base64url, encode_base64url


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """A credential record (WebAuthn Level 3 §4). ``public_key`` is a COSE key. ``user_handle`` is the authenticator's
    opaque identifier of the user, the same for all of their passkeys. ``user_verified`` is True once the authenticator
    has verified the user. ``is_automatic`` if the browser created it after a sign-in with a password, without a
    question."""

    #: Stored only if it is True: older releases do not know it.
    AUTOMATIC_MEMBER: ClassVar[str] = "is_automatic"

    id: bytes
    public_key: bytes
    sign_count: int
    backup_eligible: bool
    backed_up: bool
    transports: tuple[str, ...]
    aaguid: str
    user_handle: bytes
    user_verified: bool
    is_automatic: bool = False

    @property
    def id_text(self) -> str:
        """The id as text, unique in the instance."""
        return encode_base64url(self.id)

    def authentication_methods(self, *, user_verified: bool) -> tuple[str, ...]:
        """The methods that it proves (RFC 8176): a synced software key or a device-bound key; with user verification it
        counts as two factors."""
        key_method = "swk" if self.backup_eligible else "hwk"
        return (key_method, "user", "mfa") if user_verified else (key_method, "user")

    def descriptor(self) -> dict[str, object]:
        """The PublicKeyCredentialDescriptor for browsers."""
        return {"type": "public-key", "id": self.id_text, "transports": list(self.transports)}

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.is_automatic:
            del values[self.AUTOMATIC_MEMBER]
        return {name: encode_base64url(item) if isinstance(item, bytes) else item for name, item in values.items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Passkey":
        values = dict(stored)
        for name in ("id", "public_key", "user_handle"):
            values[name] = decode_base64url(values[name])
        return cls(**{**values, "transports": tuple(values["transports"])})

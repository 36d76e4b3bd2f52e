"""py_webauthn verifies browsers' responses (WebAuthn Level 3 §7); this module checks what it leaves open."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from identity.api.crypto import constant_time_equal, decode_base64url, encode_base64url
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.relying_party import PasskeyRelyingParty

if TYPE_CHECKING:
    from webauthn.registration.verify_registration_response import VerifiedRegistration

#: The certificate extension with the authenticator's model (WebAuthn Level 3 §8.2.1).
_AAGUID_EXTENSION_OID = "1.3.6.1.4.1.45724.1.1.4"
_OCTET_STRING_OF_16 = b"\x04\x10"
#: Known transports of a passkey (AuthenticatorTransport).
_TRANSPORTS = frozenset({"ble", "hybrid", "internal", "nfc", "smart-card", "usb"})
_MAX_CREDENTIAL_ID_LENGTH = 1023


class VerificationFailed(Exception):
    """The response proves nothing; the message is for the log."""


class AuthenticatorNotAllowed(VerificationFailed):
    """The passkey is valid, but its authenticator is not allowed."""


class SignCountRegressed(VerificationFailed):
    """The response is valid, but its counter has not increased: the key was cloned (WebAuthn Level 3 §6.1.1)."""


def credential_id(answer: str) -> str:
    """The credential id in a response; empty if there is none."""
    try:
        credential = json.loads(answer)
        return encode_base64url(decode_base64url(credential["id"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""


def verify_registration(
    answer: str, party: PasskeyRelyingParty, challenge: bytes, user_handle: bytes, *, is_automatic: bool = False
) -> Passkey:
    """The passkey that a browser created; with ``is_automatic`` maybe without the user's presence (WebAuthn Level 3
    §7.1 step 15). Raises VerificationFailed, AuthenticatorNotAllowed."""
    from webauthn import verify_registration_response
    from webauthn.helpers import decode_credential_public_key
    from webauthn.helpers.decoded_public_key_to_cryptography import decoded_public_key_to_cryptography
    from webauthn.helpers.structs import AttestationFormat

    with _parsing_errors():
        _require_same_origin_frame(answer)
        verified = verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=list(party.origins),
            require_user_presence=not is_automatic,
            pem_root_certs_bytes_by_fmt={item: list(party.attestation_roots) for item in AttestationFormat},
        )
        if len(verified.credential_id) > _MAX_CREDENTIAL_ID_LENGTH:
            raise VerificationFailed("an id that is too long")
        # An unreadable key would lock out its user.
        decoded_public_key_to_cryptography(decode_credential_public_key(verified.credential_public_key))
        if party.authenticators:
            _require_allowed_authenticator(verified, party)
        return Passkey(
            id=verified.credential_id,
            public_key=verified.credential_public_key,
            sign_count=verified.sign_count,
            backup_eligible=verified.credential_device_type == "multi_device",
            backed_up=verified.credential_backed_up,
            transports=_transports(answer),
            aaguid=verified.aaguid,
            user_handle=user_handle,
            user_verified=verified.user_verified,
            is_automatic=is_automatic,
        )


def verify_authentication(
    answer: str, party: PasskeyRelyingParty, challenge: bytes, passkey: Passkey, *, is_passwordless: bool
) -> tuple[Passkey, tuple[str, ...]]:
    """The updated passkey, and the authentication methods (RFC 8176) that it proves. ``is_passwordless``: the passkey
    must verify and identify its user. Raises VerificationFailed, SignCountRegressed."""
    from webauthn import verify_authentication_response
    from webauthn.helpers import parse_authentication_credential_json

    with _parsing_errors():
        _require_same_origin_frame(answer)
        credential = parse_authentication_credential_json(answer)
        handle = credential.response.user_handle
        if (handle or is_passwordless) and not constant_time_equal(handle or b"", passkey.user_handle):
            raise VerificationFailed("the user handle of somebody else")
        verified = verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=list(party.origins),
            credential_public_key=passkey.public_key,
            # Checked below, after the signature: the library's error does not distinguish it.
            credential_current_sign_count=0,
            require_user_verification=is_passwordless,
        )
        if (verified.credential_device_type == "multi_device") != passkey.backup_eligible:
            raise VerificationFailed(
                "it cannot be one that is copied to other devices now, and was none before, or the reverse"
            )
        if (verified.new_sign_count or passkey.sign_count) and verified.new_sign_count <= passkey.sign_count:
            raise SignCountRegressed("its counter has not grown")
        after = replace(
            passkey,
            sign_count=verified.new_sign_count,
            backed_up=verified.credential_backed_up,
            user_verified=passkey.user_verified or verified.user_verified,
        )
        return after, after.authentication_methods(user_verified=verified.user_verified)


@contextmanager
def _parsing_errors() -> Iterator[None]:
    """Any error of the library is a failed verification: it parses untrusted input in several formats."""
    try:
        yield
    except VerificationFailed:
        raise
    except Exception as problem:
        raise VerificationFailed(f"{type(problem).__name__}: {problem}") from problem


def _require_same_origin_frame(answer: str) -> None:
    """The service's pages must not be framed by other origins (WebAuthn Level 3 §7.1 step 10, §7.2 step 13)."""
    client_data = json.loads(decode_base64url(json.loads(answer)["response"]["clientDataJSON"]))
    if client_data.get("crossOrigin") not in (None, False) or "topOrigin" in client_data:
        raise VerificationFailed("a page within a page of another origin")


def _transports(answer: str) -> tuple[str, ...]:
    transports: Any = json.loads(answer)["response"].get("transports")
    known = transports if isinstance(transports, list) else []
    return tuple(sorted({item for item in known if isinstance(item, str)} & _TRANSPORTS))


def _require_allowed_authenticator(verified: "VerifiedRegistration", party: PasskeyRelyingParty) -> None:
    """Raise AuthenticatorNotAllowed unless a certificate that chains to the roots names an allowed model. The
    authenticator's own claims do not count."""
    from cryptography.x509 import ExtensionNotFound, ObjectIdentifier, load_der_x509_certificate
    from webauthn.helpers import parse_attestation_object

    statement = parse_attestation_object(verified.attestation_object).att_stmt
    if verified.aaguid not in party.authenticators or not statement.x5c:
        raise AuthenticatorNotAllowed(f"{verified.aaguid}, attested as {verified.fmt}")
    try:
        extensions = load_der_x509_certificate(statement.x5c[0]).extensions
        model = extensions.get_extension_for_oid(ObjectIdentifier(_AAGUID_EXTENSION_OID)).value.public_bytes()
    except ExtensionNotFound:
        return
    if model != _OCTET_STRING_OF_16 + bytes.fromhex(verified.aaguid.replace("-", "")):
        raise AuthenticatorNotAllowed("the certificate is one of another model")

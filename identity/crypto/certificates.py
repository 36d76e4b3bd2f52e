"""X.509 certificates that clients present in TLS (RFC 5280, RFC 8705), and names that they are recognized by."""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from identity.crypto import base64url
from identity.crypto.jwk_sets import JwkPublicKey
from identity.crypto.signature_keys import InvalidKey

_MAX_LENGTH = 16 * 1024
_PEM = re.compile(r"\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*")
_HOST_NAME = re.compile(
    r"(?!.{254})([a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE
)
_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f-\uffff]{1,64}@[A-Za-z0-9.-]{1,253}")
_UNREADABLE = (
    *(ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion),
    *(x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
_SAFE_HASHES = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_CLIENT_USAGES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


def _parse_subject(text: str) -> x509.Name:
    name = x509.Name.from_rfc4514_string(text, {"emailAddress": NameOID.EMAIL_ADDRESS})
    if not name.rdns:
        raise ValueError("empty")
    return name


def _parse_host_name(text: str) -> str:
    return _require_match(_HOST_NAME, text).lower()


def _parse_uri(text: str) -> str:
    if not urlsplit(text).scheme or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("no URI")
    return text


def _require_match(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError("malformed")
    return text


#: How the names that a certificate may be recognized by are written, by the field of an application (RFC 8705 §2.1.2),
#: and the type of general name in the certificate; None for the subject.
_NAMES: Mapping[str, tuple[Callable[[str], object], type[x509.GeneralName] | None]] = {
    "tls_client_auth_subject_dn": (_parse_subject, None),
    "tls_client_auth_san_dns": (_parse_host_name, x509.DNSName),
    "tls_client_auth_san_uri": (_parse_uri, x509.UniformResourceIdentifier),
    "tls_client_auth_san_ip": (ip_address, x509.IPAddress),
    "tls_client_auth_san_email": (lambda text: _require_match(_EMAIL, text), x509.RFC822Name),
}


def is_certificate_name(field: str, text: str) -> bool:
    """True if a certificate can have this name, such as ``CN=app,O=Example`` for ``tls_client_auth_subject_dn``."""
    try:
        _NAMES[field][0](text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, repr=False)
class ClientCertificate:
    """A certificate. Only TLS proves its private key, so it counts only from the proxy that terminated TLS."""

    der: bytes
    native: x509.Certificate

    @classmethod
    def parse(cls, header: str) -> "ClientCertificate":
        """The one certificate in a header of a proxy: DER in base64, alone or between colons (RFC 9440), or PEM with
        percent-encoding. Raises InvalidKey."""
        try:
            if len(header) > _MAX_LENGTH:
                raise ValueError("too long")
            pem = _PEM.fullmatch(unquote(header))
            is_item = len(header) > 1 and header[0] == header[-1] == ":"
            encoded = "".join(pem[1].split()) if pem else header[1:-1] if is_item else header
            der = base64.b64decode(encoded, validate=True)
            return cls(der, x509.load_der_x509_certificate(der))
        except (*_UNREADABLE, binascii.Error):
            raise InvalidKey("no certificate") from None

    @classmethod
    def read_authorities(cls, file: Path) -> "tuple[ClientCertificate, ...]":
        """The certificate authorities in a PEM file. Raises OSError; ValueError without any, or with another one."""
        found = tuple(cls.parse(pem[0]) for pem in _PEM.finditer(file.read_text("ascii", "replace")))
        if not found or not all(certificate.is_authority for certificate in found):
            raise ValueError("must have certificates of authorities, in PEM, and no others")
        return found

    @property
    def is_authority(self) -> bool:
        try:
            return self.native.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (*_UNREADABLE, x509.ExtensionNotFound):
            return False

    @property
    def thumbprint(self) -> str:
        """``x5t#S256`` (RFC 8705 §3.1)."""
        return base64url.encode(hashlib.sha256(self.der).digest())

    def is_valid_at(self, now: datetime) -> bool:
        try:
            return self.native.not_valid_before_utc <= now <= self.native.not_valid_after_utc
        except _UNREADABLE:
            # The year 0 is a date there.
            return False

    def has_name(self, field: str, text: str) -> bool:
        """True if it has exactly this name: no wildcards, and the subject's attributes in this order, with these
        values."""
        parse, kind = _NAMES[field]
        try:
            expected = parse(text)
            if kind is None:
                return self.native.subject == expected
            names = self.native.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            values: Iterable[Any] = names.get_values_for_type(kind)  # type: ignore[arg-type]
            return expected in {value.lower() if kind is x509.DNSName else value for value in values}
        except (*_UNREADABLE, x509.ExtensionNotFound):
            return False

    def has_key(self, key: JwkPublicKey) -> bool:
        """True if it certifies this public key."""
        try:
            return self.native.public_key() == key.native
        except _UNREADABLE:
            return False

    def is_issued_by(self, authorities: "Iterable[ClientCertificate]", now: datetime) -> bool:
        """True if one of these authorities, which is valid now, has signed it for clients."""
        return self._is_for_clients() and any(
            authority.is_valid_at(now) and self._is_signed_by(authority.native) for authority in authorities
        )

    def _is_signed_by(self, authority: x509.Certificate) -> bool:
        try:
            algorithm = self.native.signature_hash_algorithm
            self.native.verify_directly_issued_by(authority)
            # Ed25519 has no separate hash.
            return algorithm is None or isinstance(algorithm, _SAFE_HASHES)
        except (*_UNREADABLE, InvalidSignature):
            return False

    def _is_for_clients(self) -> bool:
        """RFC 5280 §4.2.1.12; True without the extension."""
        try:
            usages = self.native.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        except x509.ExtensionNotFound:
            return True
        except _UNREADABLE:
            return False
        return not _CLIENT_USAGES.isdisjoint(usages)

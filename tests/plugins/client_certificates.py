"""Certificates of clients, and requests through a proxy that passes them (RFC 8705)."""

import base64
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from identity.http.environ_keys import PEER_KEY
from identity.testing.jwt_assertions import base64url
from identity.testing.service_test_client import encode_form
from identity.testing.world import World

PROXY = "10.0.0.2"
HEADER = "X-SSL-Client-Cert"
SUBJECT = "CN=app,O=Example,C=CH"
NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("app.example.com"),
    x509.UniformResourceIdentifier("spiffe://example.com/app"),
    x509.IPAddress(ipaddress.ip_address("192.0.2.7")),
    x509.RFC822Name("app@example.com"),
)


@dataclass(frozen=True)
class IssuedCertificate:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def base64(self) -> str:
        return base64.b64encode(self.der).decode()

    @property
    def headers(self) -> tuple[str, str, str]:
        """As HAProxy and Caddy, RFC 9440, and nginx write it."""
        return self.base64, f":{self.base64}:", quote(self.pem)

    @property
    def jwk(self) -> dict[str, str]:
        numbers = self.key.public_key().public_numbers()
        x, y = (base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def issue(
    now: datetime,
    issuer: IssuedCertificate | None = None,
    *,
    subject: str = SUBJECT,
    names: Iterable[x509.GeneralName] = NAMES,
    is_authority: bool = False,
    usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.CLIENT_AUTH,
    age: int = 1,
) -> IssuedCertificate:
    """A certificate for 30 days from ``age`` days ago, signed by the issuer or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, begins_at = x509.Name.from_rfc4514_string(subject), now - timedelta(days=age)
    builder = (
        x509.CertificateBuilder(name if issuer is None else issuer.certificate.subject, name, key.public_key(), 7)
        .not_valid_before(begins_at)
        .not_valid_after(begins_at + timedelta(days=30))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    )
    if usage is not None and not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if list(names) and not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
    return IssuedCertificate(key, builder.sign(key if issuer is None else issuer.key, hashes.SHA256()))


def ask(
    world: World,
    endpoint: str,
    certificate: str | None = None,
    form: Mapping[str, str] | None = None,
    *,
    peer: str = PROXY,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The response of an endpoint to a form, or to a GET without one, through the proxy."""
    sent = {**(headers or {})} | ({} if certificate is None else {HEADER: certificate})
    url = world.client.discovery.get(endpoint, endpoint)
    if form is None:
        return world.client.request("GET", url, headers=sent, environ={PEER_KEY: peer})
    sent["Content-Type"] = "application/x-www-form-urlencoded"
    return world.client.request("POST", url, headers=sent, body=encode_form(form), environ={PEER_KEY: peer})

"""Attestation: only authenticator models whose certificate chain the operator trusts."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from identity.plugins.passkeys import PasskeysPluginSettings
from identity.settings_parser import InvalidSetting
from identity.testing.fixtures import WorldFactory
from tests.pages.html_checks import check_page
from tests.plugins.passkeys.conftest import PasskeyUser

MODEL, OTHER = "cb69481e-8ff7-4039-93ec-0a2729a154a8", "ee882879-721c-4913-9775-3dfcce97072a"
OF_MODEL = x509.ObjectIdentifier("1.3.6.1.4.1.45724.1.1.4")
Statement = Callable[[bytes, bytes], tuple[str, dict[str, Any]]]


def raw(aaguid: str) -> bytes:
    return bytes.fromhex(aaguid.replace("-", ""))


class Maker:
    """An authenticator vendor with its certificate authority."""

    def __init__(self, name: str = "Maker") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.root = self._signed(self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))

    def pem(self) -> bytes:
        return self.root.public_bytes(serialization.Encoding.PEM)

    def attests(self, model: str | None = MODEL) -> Statement:
        """An attestation statement in the format "packed"; None omits the model from the certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        extension = None if model is None else x509.UnrecognizedExtension(OF_MODEL, b"\x04\x10" + raw(model))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authenticator")])
        certificate = self._signed(name, key, x509.BasicConstraints(ca=False, path_length=None), extension)

        def statement(data: bytes, client: bytes) -> tuple[str, dict[str, Any]]:
            signature = key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
            der = certificate.public_bytes(serialization.Encoding.DER)
            return "packed", {"alg": -7, "sig": signature, "x5c": [der]}

        return statement

    def _signed(self, name: x509.Name, key: Any, *extensions: Any) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(issuer_name=self.name, subject_name=name, public_key=key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        for extension in extensions:
            if extension is not None:
                builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture(scope="module")
def maker() -> Maker:
    return Maker()


@pytest.fixture
def strict(make_world: WorldFactory, maker: Maker, tmp_path: Path) -> PasskeyUser:
    roots = tmp_path / "roots.pem"
    roots.write_bytes(b"Some words.\n" + Maker("Another").pem() + maker.pem())
    prefix = "identity.plugin.passkeys."
    world = make_world(**{f"{prefix}authenticators": MODEL, f"{prefix}attestation_roots": str(roots)})
    return PasskeyUser(world, aaguid=raw(MODEL))


@pytest.mark.thorough
@pytest.mark.parametrize("model", [MODEL, None])
def test_attested_model_is_accepted(strict: PasskeyUser, maker: Maker, model: str | None) -> None:
    assert strict.to_add()["attestation"] == "direct"
    strict.add(statement=maker.attests(model))


def check_refused(person: PasskeyUser, message: str, **otherwise: Any) -> None:
    person.browser.submit({"answer": person.device.create(person.to_add(), **otherwise)})
    check_page(person.browser.page, 422, "Add a passkey")
    assert message in person.browser.page.text
    assert person.passkeys == ()


@pytest.mark.thorough
def test_other_authenticator_models_are_refused(strict: PasskeyUser, maker: Maker) -> None:
    message = f"{strict.organization.name} allows only certain security keys, and this is not one of them."
    check_refused(strict, message)
    check_refused(strict, message, statement=maker.attests(OTHER))
    strict.device.aaguid = raw(OTHER)
    check_refused(strict, message, statement=maker.attests(OTHER))


def test_untrusted_attestation_root_is_refused(strict: PasskeyUser, maker: Maker) -> None:
    failed = "This passkey could not be added. Try again."
    check_refused(strict, failed, statement=Maker().attests())
    right = maker.attests()
    check_refused(strict, failed, statement=lambda data, client: right(data + b"x", client))


@pytest.mark.thorough
def test_self_attestation_is_refused(strict: PasskeyUser) -> None:
    """Self attestation (WebAuthn Level 3 §6.5.4): the passkey's own key signs."""

    def by_itself(data: bytes, client: bytes) -> tuple[str, dict[str, Any]]:
        key = strict.device.credentials[-1].key
        signature = key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return "packed", {"alg": -7, "sig": signature}

    check_refused(strict, "allows only certain security keys", statement=by_itself)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"authenticators": (MODEL,)}, "an AAGUID by itself proves nothing"),
        ({"attestation_roots": Path("/nowhere.pem"), "authenticators": (MODEL,)}, "cannot be read"),
    ],
)
def test_incomplete_attestation_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        PasskeysPluginSettings(**settings)

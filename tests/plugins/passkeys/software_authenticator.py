"""A software authenticator with valid or deliberately invalid responses (WebAuthn Level 3 §6)."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from identity.crypto import base64url

PRESENT, VERIFIED, ELIGIBLE, BACKED_UP, ATTESTED = 1, 4, 8, 16, 64


@dataclass
class SoftwareCredential:
    """A key pair and its user handle."""

    id: bytes
    key: ec.EllipticCurvePrivateKey
    user_handle: bytes
    count: int = 0


@dataclass
class SoftwareAuthenticator:
    """Stores passkeys. Keyword arguments of ``create`` and ``get`` override correct behaviour."""

    origin: str = "https://id.example.com"
    flags: int = PRESENT | VERIFIED
    aaguid: bytes = bytes(16)
    counts: bool = True
    credentials: list[SoftwareCredential] = field(default_factory=list)

    def create(self, options: dict[str, Any], **otherwise: Any) -> str:
        """The response to navigator.credentials.create, as our script serializes it."""
        id_ = otherwise.get("id", os.urandom(32))
        credential = SoftwareCredential(
            id_, ec.generate_private_key(ec.SECP256R1()), base64url.decode(options["user"]["id"])
        )
        self.credentials.append(credential)
        numbers = credential.key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        key = otherwise.get("key", cbor2.dumps(key))
        attested = self.aaguid + len(id_).to_bytes(2, "big") + id_ + key
        data = self._data(options["rp"]["id"], credential, {"flags": self.flags | ATTESTED, **otherwise}) + attested
        client = self._client("webauthn.create", options, otherwise)
        statement = otherwise.get("statement", lambda data, client: ("none", {}))
        fmt, signed = statement(data, client)
        attestation = otherwise.get("attestation", cbor2.dumps({"fmt": fmt, "attStmt": signed, "authData": data}))
        response = {
            "clientDataJSON": base64url.encode(client),
            "attestationObject": base64url.encode(attestation),
            "transports": otherwise.get("transports", ["internal"]),
        }
        return self._credential_json(credential, response)

    def get(self, options: dict[str, Any], **otherwise: Any) -> str:
        """The response to navigator.credentials.get."""
        credential = otherwise.get("credential") or self._chosen(options)
        data = self._data(options["rpId"], credential, otherwise)
        client = self._client("webauthn.get", options, otherwise)
        signature = credential.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        handle = otherwise.get("user_handle", credential.user_handle)
        response = {
            "clientDataJSON": base64url.encode(client),
            "authenticatorData": base64url.encode(data),
            "signature": base64url.encode(otherwise.get("signature", signature)),
        }
        if handle is not None:
            response["userHandle"] = base64url.encode(handle)
        return self._credential_json(credential, response)

    def _chosen(self, options: dict[str, Any]) -> SoftwareCredential:
        allowed = {item["id"] for item in options["allowCredentials"]}
        return next(
            credential for credential in self.credentials if not allowed or base64url.encode(credential.id) in allowed
        )

    def _data(self, rp_id: str, credential: SoftwareCredential, otherwise: dict[str, Any]) -> bytes:
        if self.counts:
            credential.count += 1
        count = otherwise.get("count", credential.count)
        digest = hashlib.sha256(otherwise.get("rp_id", rp_id).encode()).digest()
        return digest + bytes([otherwise.get("flags", self.flags)]) + count.to_bytes(4, "big")

    def _client(self, kind: str, options: dict[str, Any], otherwise: dict[str, Any]) -> bytes:
        members = {
            "type": otherwise.get("type", kind),
            "challenge": otherwise.get("challenge", options["challenge"]),
            "origin": otherwise.get("origin", self.origin),
            **otherwise.get("client", {"crossOrigin": False}),
        }
        return json.dumps(members).encode()

    def _credential_json(self, credential: SoftwareCredential, response: dict[str, Any]) -> str:
        id_ = base64url.encode(credential.id)
        return json.dumps({"id": id_, "rawId": id_, "type": "public-key", "response": response})

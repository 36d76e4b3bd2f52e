"""The signer: one session with the token in each process, opened again after a failure.

PKCS #11 modules are not used by several threads here, because python-pkcs11 initializes them without locks.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pkcs11
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag, ObjectClass
from pkcs11.util.ec import encode_named_curve_parameters

from identity.api.crypto import CreatedKey, ExternalSigner, PublicKey, SignatureAlgorithm, SignerUnavailable
from identity.plugins.pkcs11 import Pkcs11Settings

Result = TypeVar("Result")

_P256 = encode_named_curve_parameters("secp256r1")
#: RFC 8410 §3. Older modules know the curve by this name (PKCS #11 3.0 §2.3.10).
_ED25519 = encode_named_curve_parameters("1.3.101.112")
_KEY_TYPES = {
    SignatureAlgorithm.RS256: KeyType.RSA,
    SignatureAlgorithm.PS256: KeyType.RSA,
    SignatureAlgorithm.ES256: KeyType.EC,
    SignatureAlgorithm.EDDSA: KeyType.EC_EDWARDS,
}
_MECHANISMS: Mapping[SignatureAlgorithm, Mapping[str, Any]] = {
    SignatureAlgorithm.RS256: {"mechanism": Mechanism.SHA256_RSA_PKCS},
    SignatureAlgorithm.PS256: {
        "mechanism": Mechanism.SHA256_RSA_PKCS_PSS,
        "mechanism_param": (Mechanism.SHA256, pkcs11.MGF.SHA256, 32),
    },
    SignatureAlgorithm.ES256: {"mechanism": Mechanism.ECDSA},
    SignatureAlgorithm.EDDSA: {"mechanism": Mechanism.EDDSA},
}
_NOT_EXTRACTABLE = {Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
_MIN_RSA_BITS = 2048
#: The service may not try such a PIN again: after a few attempts, the token is locked.
_PIN_ERRORS = (pkcs11.PinExpired, pkcs11.PinIncorrect, pkcs11.PinInvalid, pkcs11.PinLenRange, pkcs11.PinLocked)


class Pkcs11Signer(ExternalSigner):
    """Finds keys in the token by their CKA_ID, 16 random bytes. Only those that it creates get the label ``identity``
    with the ``kid``; it deletes none."""

    name = "pkcs11"

    def __init__(self, settings: Pkcs11Settings) -> None:
        super().__init__()
        self.signing_timeout = settings.timeout.total_seconds()
        self._settings = settings
        self._session: Any = None
        self._process_id = 0
        self._refused_pin: str | None = None
        self._keys: dict[bytes, Any] = {}

    def generate(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
        label = f"identity {key_id}"
        if self._settings.spare_label:
            return self._use_session(lambda session: self._adopt_spare_key(session, label, algorithm))
        return self._use_session(lambda session: _generate_key(session, label, algorithm, bits))

    def sign(self, reference: bytes, algorithm: SignatureAlgorithm, data: bytes) -> bytes:
        # ECDSA takes a digest, since few modules combine the two.
        signed = hashlib.sha256(data).digest() if algorithm is SignatureAlgorithm.ES256 else data
        return self._use_session(
            lambda session: bytes(self._find_key(session, reference, algorithm).sign(signed, **_MECHANISMS[algorithm]))
        )

    def check(self) -> None:
        self._use_session(lambda session: list(session.get_objects({Attribute.ID: b"none"})))

    def _use_session(self, use: Callable[[Any], Result]) -> Result:
        """The result of ``use``, which is called again with a new session if the old one was lost. Raises
        SignerUnavailable."""
        is_new = self._session is None or self._process_id != os.getpid()
        try:
            session = self._open_session() if is_new else self._session
            try:
                return use(session)
            except pkcs11.PKCS11Error:
                self._session = None
                if is_new:
                    raise
            return use(self._open_session())
        except _PIN_ERRORS as problem:
            raise SignerUnavailable(
                f"The token {self._settings.token} refuses the PIN in {self._settings.pin_file}"
                f" ({type(problem).__name__}). It is not tried again until the file changes."
            ) from None
        except pkcs11.NoSuchToken:
            raise SignerUnavailable(
                f"{self._settings.module} has no token with the label {self._settings.token}."
            ) from None
        except pkcs11.PKCS11Error as problem:
            self._session = None
            reason = f": {problem}" if str(problem) else ""
            raise SignerUnavailable(
                f"The token {self._settings.token} failed with {type(problem).__name__}{reason}."
            ) from None

    def _open_session(self) -> Any:
        pin = self._settings.pin()
        if pin == self._refused_pin:
            raise pkcs11.PinIncorrect
        library: Any = pkcs11.lib(str(self._settings.module))
        # A child process must initialize the module again, and some modules find a token that is back only then.
        try:
            library.reinitialize()
        except pkcs11.PKCS11Error:
            library.initialize()
        self._keys.clear()
        token = library.get_token(token_label=self._settings.token)
        try:
            self._session = token.open(rw=True, user_pin=pin)
        except _PIN_ERRORS:
            self._refused_pin = pin
            raise
        self._process_id = os.getpid()
        return self._session

    def _find_key(self, session: Any, reference: bytes, algorithm: SignatureAlgorithm) -> Any:
        key = self._keys.get(reference)
        if key is None:
            template = _template(ObjectClass.PRIVATE_KEY, algorithm) | {Attribute.ID: bytes.fromhex(reference.decode())}
            found = list(session.get_objects(template))
            if len(found) != 1:
                raise SignerUnavailable(
                    f"The token {self._settings.token} has {len(found) or 'no'} keys for {algorithm} with the id"
                    f" {reference.decode()}."
                )
            key = self._keys[reference] = found[0]
        return key

    def _adopt_spare_key(self, session: Any, label: str, algorithm: SignatureAlgorithm) -> CreatedKey:
        """Take a key by renaming it: it is no spare one any more, also if it is withdrawn later."""
        spare = self._settings.spare_label
        template = _template(ObjectClass.PRIVATE_KEY, algorithm)
        for private_key in list(session.get_objects(template | {Attribute.LABEL: spare})):
            id_ = bytes(private_key[Attribute.ID])
            halves = list(session.get_objects({Attribute.ID: id_}))
            public_keys = [key for key in halves if key[Attribute.CLASS] is ObjectClass.PUBLIC_KEY]
            if not id_ or len(halves) != 2 or len(public_keys) != 1:
                continue
            if private_key[Attribute.EXTRACTABLE] or not private_key[Attribute.SENSITIVE]:
                raise SignerUnavailable(f"The key {id_.hex()} of the token can be extracted: create another one.")
            public_key = _read_public_key(public_keys[0], algorithm)
            for half in halves:
                half[Attribute.LABEL] = label
            return CreatedKey(id_.hex().encode(), public_key)
        raise SignerUnavailable(
            f'The token {self._settings.token} has no key pair with the label "{spare}" for {algorithm} whose halves'
            " have an id of their own. Create one."
        )


def _template(class_: ObjectClass, algorithm: SignatureAlgorithm) -> dict[Attribute, Any]:
    return {Attribute.CLASS: class_, Attribute.KEY_TYPE: _KEY_TYPES[algorithm]}


def _generate_key(session: Any, label: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
    id_ = secrets.token_bytes(16)
    members = {
        "id": id_,
        "label": label,
        "store": True,
        "capabilities": MechanismFlag.SIGN | MechanismFlag.VERIFY,
        "private_template": _NOT_EXTRACTABLE,
    }
    key_type = _KEY_TYPES[algorithm]
    if key_type is KeyType.RSA:
        public_key, _ = session.generate_keypair(key_type, bits, **members)
    else:
        is_edwards = key_type is KeyType.EC_EDWARDS
        parameters = session.create_domain_parameters(
            key_type, {Attribute.EC_PARAMS: _ED25519 if is_edwards else _P256}, local=True
        )
        if is_edwards:
            members["mechanism"] = Mechanism.EC_EDWARDS_KEY_PAIR_GEN
        public_key, _ = parameters.generate_keypair(**members)
    return CreatedKey(id_.hex().encode(), _read_public_key(public_key, algorithm))


def _read_public_key(key: Any, algorithm: SignatureAlgorithm) -> PublicKey:
    """Raises SignerUnavailable for a key that the service does not accept."""
    native: Any
    try:
        if _KEY_TYPES[algorithm] is KeyType.RSA:
            exponent, modulus = (bytes(key[name]) for name in (Attribute.PUBLIC_EXPONENT, Attribute.MODULUS))
            native = rsa.RSAPublicNumbers(int.from_bytes(exponent, "big"), int.from_bytes(modulus, "big")).public_key()
            if native.key_size < _MIN_RSA_BITS:
                raise ValueError
        else:
            # An OCTET STRING in DER (PKCS #11 3.0 §2.3.3): tag and length take two bytes.
            point = bytes(key[Attribute.EC_POINT])[2:]
            if _KEY_TYPES[algorithm] is KeyType.EC:
                native = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
            else:
                native = ed25519.Ed25519PublicKey.from_public_bytes(point)
    except ValueError:
        raise SignerUnavailable(f"The token has a public key that does not fit {algorithm}.") from None
    return PublicKey(native, algorithm)

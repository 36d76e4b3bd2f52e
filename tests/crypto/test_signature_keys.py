import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from identity.crypto import base64url
from identity.crypto.signature_keys import InvalidKey, PrivateKey, PublicKey, parse_public_key
from identity.domain.errors import Invalid
from identity.domain.signature_algorithms import SignatureAlgorithm


def spki(native: Any) -> str:
    return native.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def jwk(n: int, e: int = 65537, **members: Any) -> str:
    def number(value: int) -> str:
        return base64url.encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))

    return json.dumps({"kty": "RSA", "n": number(n), "e": number(e), **members})


def refusal(text: str) -> str:
    with pytest.raises(Invalid) as caught:
        parse_public_key(text)
    assert list(caught.value.fields) == ["public_key"]
    return caught.value.fields["public_key"]


@pytest.fixture(scope="module")
def modulus(key: PrivateKey) -> int:
    return key.public_key().native.public_numbers().n


class TestGenerating:
    @pytest.mark.thorough
    @pytest.mark.parametrize("bits", [2048, 3072])
    def test_length_and_exponent(self, bits: int) -> None:
        key = PrivateKey.generate(bits)
        assert key.bits == key.public_key().bits == bits
        assert key.native.public_key().public_numbers().e == 65537

    @pytest.mark.parametrize("bits", [0, 512, 1024, 2047, 2049, 16384])
    def test_other_lengths_are_refused(self, bits: int) -> None:
        with pytest.raises(ValueError, match="2048, 3072, 4096"):
            PrivateKey.generate(bits)


class TestForms:
    def test_public_der(self, key: PrivateKey, other_key: PrivateKey) -> None:
        public = key.public_key()
        assert PublicKey.from_der(public.to_der()) == public
        assert hash(PublicKey.from_der(public.to_der())) == hash(public)
        assert public != other_key.public_key()
        assert public != "a string"

    def test_private_der(self, key: PrivateKey) -> None:
        assert PrivateKey.from_der(key.to_der()).public_key() == key.public_key()

    def test_pkcs1_pem(self, key: PrivateKey) -> None:
        pem = key.to_pem()
        assert pem.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
        assert PrivateKey.from_pem(pem).public_key() == key.public_key()

    def test_pkcs8_pem_is_read(self, key: PrivateKey) -> None:
        pem = key.native.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        assert PrivateKey.from_pem(pem).public_key() == key.public_key()

    def test_jwk_has_public_members_only(self, key: PrivateKey) -> None:
        members = key.public_key().to_jwk("kid-1")
        assert set(members) == {"kty", "use", "alg", "kid", "n", "e"}
        assert (members["kty"], members["use"], members["alg"], members["kid"]) == ("RSA", "sig", "RS256", "kid-1")
        assert members["e"] == "AQAB"
        assert parse_public_key(json.dumps(members)) == key.public_key()

    def test_encrypted_pem_is_reported(self, key: PrivateKey) -> None:
        pem = key.native.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode()
        with pytest.raises(InvalidKey, match="encrypted"):
            PrivateKey.from_pem(pem)

    def test_doctored_private_pem_is_refused(self, key: PrivateKey) -> None:
        numbers = key.native.private_numbers()
        doctored = rsa.RSAPrivateNumbers(
            p=numbers.p,
            q=numbers.q,
            d=numbers.d,
            dmp1=numbers.dmp1 + 2,
            dmq1=numbers.dmq1,
            iqmp=numbers.iqmp,
            public_numbers=numbers.public_numbers,
        ).private_key(unsafe_skip_rsa_key_validation=True)
        with pytest.raises(InvalidKey):
            PrivateKey.from_pem(PrivateKey(doctored).to_pem())

    @pytest.mark.parametrize("text", ["", "nonsense", "\ud800", "-----BEGIN RSA PRIVATE KEY-----\nAA\n"])
    def test_unreadable_private_pem(self, text: str) -> None:
        with pytest.raises(InvalidKey):
            PrivateKey.from_pem(text)

    def test_other_kinds_are_unreadable(self) -> None:
        curve = ec.generate_private_key(ec.SECP256R1())
        der = curve.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        with pytest.raises(InvalidKey):
            PrivateKey.from_der(der)
        with pytest.raises(InvalidKey):
            PublicKey.from_der(curve.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))

    @given(st.binary(max_size=400))
    def test_junk_der_raises_invalid_key(self, der: bytes) -> None:
        with pytest.raises(InvalidKey):
            PublicKey.from_der(der)
        with pytest.raises(InvalidKey):
            PrivateKey.from_der(der)

    def test_repr_contains_only_algorithm_and_length(self, key: PrivateKey) -> None:
        assert repr(key) == str(key) == "PrivateKey(RS256, bits=2048)"
        assert repr(key.public_key()) == "PublicKey(RS256, bits=2048)"


class TestAlgorithms:
    @pytest.mark.parametrize("algorithm", list(SignatureAlgorithm))
    def test_forms_of_a_generated_key(self, algorithm: SignatureAlgorithm) -> None:
        key = PrivateKey.generate(algorithm=algorithm)
        public = key.public_key()
        assert public.algorithm == algorithm
        assert PublicKey.from_der(public.to_der(), algorithm) == public
        assert PrivateKey.from_der(key.to_der(), algorithm).public_key() == public
        assert PrivateKey.from_pem(key.to_pem(), algorithm).public_key() == public
        members = public.to_jwk("kid-1")
        assert members["alg"] == algorithm.value
        assert "d" not in members
        assert parse_public_key(json.dumps(members)) == public

    def test_usual_algorithm_follows_from_the_type(self, key: PrivateKey) -> None:
        assert parse_public_key(key.public_key().to_pem()).algorithm == "RS256"
        for algorithm in ("ES256", "EdDSA"):
            generated = PrivateKey.generate(algorithm=algorithm)
            assert generated.to_pem().startswith("-----BEGIN PRIVATE KEY-----")
            assert PrivateKey.from_pem(generated.to_pem()).algorithm == algorithm
            assert parse_public_key(generated.public_key().to_pem()).algorithm == algorithm

    def test_chosen_algorithm_must_fit(self, key: PrivateKey, modulus: int) -> None:
        assert parse_public_key(key.public_key().to_pem(), "PS256").algorithm == "PS256"
        assert parse_public_key(jwk(modulus, alg="PS256")).algorithm == "PS256"
        for text, algorithm in (
            (key.public_key().to_pem(), "ES256"),
            (jwk(modulus, alg="PS256"), "RS256"),
            (jwk(modulus, alg="RS256"), "PS256"),
        ):
            with pytest.raises(Invalid) as caught:
                parse_public_key(text, algorithm)
            assert list(caught.value.fields) == ["algorithm"]

    def test_ed25519_is_a_name_of_eddsa(self) -> None:
        """RFC 9864 §2.2."""
        members = PrivateKey.generate(algorithm="EdDSA").public_key().to_jwk("1")
        assert parse_public_key(json.dumps({**members, "alg": "Ed25519"})).algorithm == "EdDSA"
        assert '"alg"' in refusal(json.dumps({**members, "alg": "ES256"}))


class TestUploading:
    def test_spki_pkcs1_and_jwk(self, key: PrivateKey, modulus: int) -> None:
        public = key.public_key()
        pkcs1 = public.native.public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()
        assert pkcs1.startswith("-----BEGIN RSA PUBLIC KEY-----")
        texts = [
            public.to_pem(),
            pkcs1,
            f"\r\n {public.to_pem()}\n",
            jwk(modulus),
            jwk(modulus, use="sig", alg="RS256"),
        ]
        for text in texts:
            assert parse_public_key(text) == public

    def test_private_keys(self, key: PrivateKey, modulus: int) -> None:
        pkcs8 = key.native.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        encrypted = key.native.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode()
        key_file = json.dumps({"type": "serviceaccount", "keyId": "1", "key": key.to_pem(), "userId": "2"})
        both = key.public_key().to_pem() + key.to_pem()
        private_jwk = jwk(modulus, d="AQAB")
        for text in (key.to_pem(), pkcs8, encrypted, key_file, both, private_jwk):
            assert refusal(text).startswith("This is a private key; upload the public half")

    def test_symmetric_key_is_not_echoed(self) -> None:
        assert "c2VjcmV0" not in refusal('{"kty":"oct","k":"c2VjcmV0"}')

    def test_certificate(self) -> None:
        pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        assert "certificate" in refusal(pem)
        assert "certificate" in refusal(pem * 2)

    def test_several_keys(self, key: PrivateKey, modulus: int) -> None:
        assert "exactly one" in refusal(key.public_key().to_pem() * 2)
        assert "JWK set" in refusal(f'{{"keys":[{jwk(modulus)}]}}')

    def test_other_kinds_of_key(self) -> None:
        for native in (ec.generate_private_key(ec.SECP384R1()), ed448.Ed448PrivateKey.generate()):
            assert "not supported" in refusal(spki(native.public_key()))
        for members in ({"kty": "EC", "crv": "P-384"}, {"kty": "OKP", "crv": "X25519"}, {"kty": "EC"}, {"kty": ["EC"]}):
            assert "not supported" in refusal(json.dumps({"x": "AA", "y": "AA", **members}))
        assert "damaged" in refusal('{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}')
        assert "damaged" in refusal('{"kty":"OKP","crv":"Ed25519","x":"AA"}')
        assert "PUBLIC KEY" in refusal("-----BEGIN CERTIFICATION-----".replace("CERTIFICATION", "X9 THING"))
        assert "PUBLIC KEY" in refusal("ssh-rsa AAAAB3NzaC1yc2E me@host")

    def test_lengths(self, modulus: int) -> None:
        assert "1024 bits" in refusal(jwk(2**1023 + 1))
        assert "2047 bits" in refusal(jwk(2**2046 + 1))
        assert "8193 bits" in refusal(jwk(2**8192 + 1))
        assert parse_public_key(jwk(2**8191 + 1)).bits == 8192

    @pytest.mark.parametrize("exponent", [1, 3, 17, 65535, 65536, 65538, 2**64 + 1, 2**256 + 1])
    def test_exponents(self, modulus: int, exponent: int) -> None:
        assert refusal(jwk(modulus, exponent))

    def test_long_but_sound_exponent_is_accepted(self, modulus: int) -> None:
        assert parse_public_key(jwk(modulus, 2**32 + 15)).bits == 2048

    def test_even_modulus(self, modulus: int) -> None:
        assert "even" in refusal(jwk(modulus - 1))

    def test_keys_for_other_purposes(self, modulus: int) -> None:
        assert '"use"' in refusal(jwk(modulus, use="enc"))
        assert '"alg"' in refusal(jwk(modulus, alg="RS512"))

    @pytest.mark.parametrize("members", [{"n": 7}, {"n": None}, {"e": "AQAB="}, {"e": "é"}, {"e": "\ud800"}, {"n": ""}])
    def test_damaged_numbers(self, modulus: int, members: dict[str, Any]) -> None:
        assert "damaged" in refusal(json.dumps(json.loads(jwk(modulus)) | members))

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"a":' * 3000, "x" * 20_000, "-----BEGIN PUBLIC KEY-----", "\ud800"]
    )
    def test_junk(self, text: str) -> None:
        assert refusal(text)

    @given(st.text(max_size=80), st.sampled_from(["{}", "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----"]))
    def test_malformed_pem_raises_only_invalid_key(self, text: str, frame: str) -> None:
        assert refusal(frame.format(text))

    @given(
        st.dictionaries(
            st.sampled_from(["kty", "n", "e", "use", "alg", "keys", "d"]),
            st.sampled_from(["RSA", "AQAB", "", 1, None, [], {}, True, "sig"]),
        )
    )
    def test_malformed_jwk_raises_only_invalid_key(self, members: dict[str, Any]) -> None:
        assert refusal(json.dumps(members))

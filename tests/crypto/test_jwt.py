import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from hypothesis import example, given
from hypothesis import strategies as st

from identity.crypto.jwt import (
    REFUSED_HEADER_PARAMETERS,
    RSA_ALGORITHMS,
    InvalidTokenSignature,
    MalformedToken,
    UnverifiedToken,
    sign,
)
from identity.crypto.signature_keys import InvalidKey, PrivateKey, PublicKey
from identity.domain.signature_algorithms import SignatureAlgorithm

CLAIMS = {"iss": "a", "sub": "a", "aud": "https://issuer", "iat": 1_700_000_000, "exp": 1_700_003_600}
HEADER = '{"alg":"RS256","kid":"k"}'


def b64(data: bytes | str) -> str:
    data = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(header: bytes | str = HEADER, claims: bytes | str = "{}", signature: bytes = b"signature") -> str:
    return f"{b64(header)}.{b64(claims)}.{b64(signature)}"


def forged(header: dict[str, Any], signature: Any = lambda signing_input: b"signature") -> str:
    signing_input = f"{b64(json.dumps(header))}.{b64(json.dumps(CLAIMS))}"
    return f"{signing_input}.{b64(signature(signing_input.encode()))}"


def why(text: str, **options: int) -> str:
    with pytest.raises(MalformedToken) as caught:
        UnverifiedToken.parse(text, **options)
    return caught.value.reason


@pytest.fixture(scope="module")
def public(key: PrivateKey) -> PublicKey:
    return key.public_key()


@pytest.fixture(scope="module")
def good(key: PrivateKey) -> str:
    return sign(CLAIMS, key, key_id="k")


class TestSigning:
    def test_signature_verifies(self, good: str, public: PublicKey) -> None:
        unverified = UnverifiedToken.parse(good)
        assert unverified.header == {"alg": "RS256", "kid": "k"}
        assert unverified.claims == CLAIMS
        assert unverified.verify(public) == CLAIMS

    def test_typ(self, key: PrivateKey) -> None:
        assert UnverifiedToken.parse(sign({}, key, key_id="k", typ="at+jwt")).header["typ"] == "at+jwt"

    @pytest.mark.parametrize("algorithm", RSA_ALGORITHMS)
    def test_algorithms_do_not_verify_each_other(self, key: PrivateKey, algorithm: str) -> None:
        bound = PrivateKey(key.native, algorithm)
        unverified = UnverifiedToken.parse(sign(CLAIMS, bound, key_id="k"))
        assert unverified.verify(bound.public_key()) == CLAIMS
        for other in set(RSA_ALGORITHMS) - {algorithm}:
            with pytest.raises(InvalidTokenSignature):
                unverified.verify(PublicKey(bound.public_key().native, other))

    @pytest.mark.parametrize("algorithm", list(SignatureAlgorithm))
    def test_key_verifies_its_algorithm_alone(self, algorithm: SignatureAlgorithm) -> None:
        bound = PrivateKey.generate(algorithm=algorithm)
        unverified = UnverifiedToken.parse(sign(CLAIMS, bound, key_id="k"))
        assert unverified.header["alg"] == algorithm.value
        assert unverified.verify(bound.public_key()) == CLAIMS
        for other in set(SignatureAlgorithm) - {algorithm}:
            with pytest.raises(InvalidTokenSignature, match="alg is not"):
                unverified.verify(PrivateKey.generate(algorithm=other).public_key())
        with pytest.raises(InvalidTokenSignature, match="does not match"):
            unverified.verify(PrivateKey.generate(algorithm=algorithm).public_key())

    def test_ed25519_is_a_name_of_eddsa(self) -> None:
        """RFC 9864 §2.2."""
        key = PrivateKey.generate(algorithm=SignatureAlgorithm.EDDSA)
        native: Any = key.native
        assert UnverifiedToken.parse(forged({"alg": "Ed25519"}, native.sign)).verify(key.public_key()) == CLAIMS
        for name in ("ed25519", "eddsa", "Ed448", "EDDSA"):
            with pytest.raises(InvalidTokenSignature):
                UnverifiedToken.parse(forged({"alg": name}, native.sign)).verify(key.public_key())

    @pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
    def test_signature_of_wrong_length_does_not_match(self, algorithm: str) -> None:
        key = PrivateKey.generate(algorithm=algorithm)
        for signature in (b"\0", bytes(63), bytes(64), bytes(65), bytes(512)):
            with pytest.raises(InvalidTokenSignature):
                UnverifiedToken.parse(forged({"alg": algorithm}, lambda _, signature=signature: signature)).verify(
                    key.public_key()
                )

    def test_signature_verifies_with_openssl(self, good: str, public: PublicKey) -> None:
        signing_input, _, signature = good.rpartition(".")
        public.native.verify(
            base64.urlsafe_b64decode(signature + "=="), signing_input.encode(), padding.PKCS1v15(), hashes.SHA256()
        )

    @pytest.mark.parametrize("algorithm", ["none", "HS256", "ES256", "rs256", "", "RS1", "EdDSA"])
    def test_other_algorithms_are_not_for_rsa_keys(self, key: PrivateKey, algorithm: str) -> None:
        for call in (
            lambda: PrivateKey(key.native, algorithm),
            lambda: PublicKey(key.public_key().native, algorithm),
            lambda: PublicKey.from_der(key.public_key().to_der(), algorithm),
            lambda: PrivateKey.from_pem(key.to_pem(), algorithm),
        ):
            with pytest.raises(InvalidKey):
                call()

    @pytest.mark.parametrize("algorithm", ["none", "HS256", "rs256", "", "RS1"])
    def test_nor_are_their_hashes(self, algorithm: str) -> None:
        with pytest.raises(ValueError, match="is not one of"):
            UnverifiedToken.left_half_hash("x", algorithm)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"bytes"])
    def test_claims_that_json_cannot_carry(self, key: PrivateKey, value: object) -> None:
        with pytest.raises((ValueError, TypeError)):
            sign({"x": value}, key, key_id="k")

    def test_joserfc_retains_no_private_numbers(self, key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
        from joserfc.jwk import RSAKey

        def export(*_: object) -> None:
            raise AssertionError("the key was exported")

        monkeypatch.setattr(RSAKey.binding, "export_private_key", export)
        monkeypatch.setattr(RSAKey.binding, "export_public_key", export)
        assert UnverifiedToken.parse(sign(CLAIMS, key, key_id="k")).verify(key.public_key()) == CLAIMS


class TestVerifying:
    def test_another_key(self, good: str, other_key: PrivateKey) -> None:
        with pytest.raises(InvalidTokenSignature):
            UnverifiedToken.parse(good).verify(other_key.public_key())

    @pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", ""])
    def test_alg_none_is_refused(self, public: PublicKey, alg: str) -> None:
        with pytest.raises(InvalidTokenSignature):
            UnverifiedToken.parse(forged({"alg": alg})).verify(public)
        assert why(forged({"alg": alg}, lambda _: b""))

    def test_hs256_with_the_public_key_as_secret(self, public: PublicKey) -> None:
        for secret in (public.to_pem().encode(), public.to_pem().strip().encode(), public.to_der(), b""):
            for alg in ("HS256", "RS256"):
                text = forged({"alg": alg}, lambda data, secret=secret: hmac.digest(secret, data, hashlib.sha256))
                with pytest.raises(InvalidTokenSignature):
                    UnverifiedToken.parse(text).verify(public)

    def test_ps256_by_the_right_key(self, key: PrivateKey, public: PublicKey) -> None:
        with pytest.raises(InvalidTokenSignature):
            UnverifiedToken.parse(sign(CLAIMS, PrivateKey(key.native, "PS256"), key_id="k")).verify(public)

    def test_pss_signature_under_the_name_rs256(self, key: PrivateKey, public: PublicKey) -> None:
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        text = forged({"alg": "RS256"}, lambda data: key.native.sign(data, pss, hashes.SHA256()))
        with pytest.raises(InvalidTokenSignature):
            UnverifiedToken.parse(text).verify(public)

    @pytest.mark.parametrize(
        "alg", ["rs256", "Rs256", "RS256 ", " RS256", "RS256\n", "RS384", "RS512", "RSA256", "ＲS256"]
    )
    def test_other_names_and_cases(self, key: PrivateKey, public: PublicKey, alg: str) -> None:
        text = forged({"alg": alg}, lambda data: key.native.sign(data, padding.PKCS1v15(), hashes.SHA256()))
        with pytest.raises(InvalidTokenSignature):
            UnverifiedToken.parse(text).verify(public)

    @pytest.mark.parametrize("alg", [None, 1, True, ["RS256"], {"alg": "RS256"}])
    def test_alg_is_a_string(self, alg: object) -> None:
        assert "alg" in why(forged({"alg": alg}))

    def test_alg_is_required(self) -> None:
        assert "alg" in why(forged({"kid": "k"}))

    @pytest.mark.parametrize("name", sorted(REFUSED_HEADER_PARAMETERS))
    @pytest.mark.parametrize("value", [None, "x", [], True])
    def test_parameters_that_bring_or_point_to_keys(self, public: PublicKey, name: str, value: object) -> None:
        header = {"alg": "RS256", "kid": "k", name: value}
        assert "parameter" in why(forged(header))
        with pytest.raises(MalformedToken):
            UnverifiedToken(forged(header), header, CLAIMS).verify(public)

    def test_unknown_parameters_are_ignored(self, key: PrivateKey, public: PublicKey) -> None:
        header = {"alg": "RS256", "x-tool": "y", "cty": "z"}
        text = forged(header, lambda data: key.native.sign(data, padding.PKCS1v15(), hashes.SHA256()))
        assert UnverifiedToken.parse(text).verify(public) == CLAIMS

    def test_claims_are_those_that_were_signed(self, good: str, public: PublicKey) -> None:
        unverified = UnverifiedToken.parse(good)
        unverified.claims["sub"] = "somebody else"
        assert unverified.verify(public) == CLAIMS

    @pytest.mark.parametrize("text", ["", "a", "..", "a.b", "é.b.AA", "\ud800", "e30.e30.AAAA"])
    def test_token_must_come_from_inspect(self, public: PublicKey, text: str) -> None:
        with pytest.raises((InvalidTokenSignature, MalformedToken)):
            UnverifiedToken(text, {"alg": "RS256"}, CLAIMS).verify(public)

    @given(data=st.data())
    def test_mutated_token_never_verifies(self, good: str, public: PublicKey, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(good)))
        mutations = {
            "flip": good[:at] + data.draw(st.characters()) + good[at + 1 :],
            "insert": good[:at] + data.draw(st.sampled_from("A=.-_ \n\0é")) + good[at:],
            "delete": good[: max(at - 1, 0)] + good[at:],
            "truncate": good[:at],
            "extend": good + data.draw(st.text(min_size=1, max_size=3)),
            "case": good[:at].swapcase() + good[at:],
        }
        mutated = mutations[data.draw(st.sampled_from(sorted(mutations)))]
        if mutated == good:
            return
        with pytest.raises((MalformedToken, InvalidTokenSignature)):
            UnverifiedToken.parse(mutated).verify(public)

    def test_every_flipped_bit_of_the_signature_is_noticed(self, good: str, public: PublicKey) -> None:
        head, _, signature = good.rpartition(".")
        raw = base64.urlsafe_b64decode(signature + "==")
        for bit in range(0, len(raw) * 8, 7):
            flipped = bytearray(raw)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(InvalidTokenSignature):
                UnverifiedToken.parse(f"{head}.{b64(bytes(flipped))}").verify(public)


class TestForm:
    @given(st.text() | st.text(alphabet="eyJ9.-_=A{}\n \0\ud800é"))
    @example("\ud800.\ud800.\ud800")
    @example("..")
    @example("." * 9000)
    def test_any_text_is_malformed_and_raises_nothing_else(self, text: str) -> None:
        with pytest.raises(MalformedToken):
            UnverifiedToken.parse(text)

    @given(header=st.binary(max_size=60), claims=st.binary(max_size=200), signature=st.binary(max_size=8))
    def test_any_bytes_in_the_parts(self, header: bytes, claims: bytes, signature: bytes) -> None:
        for text in (token(header, claims, signature), token(claims=claims)):
            try:
                UnverifiedToken.parse(text)
            except MalformedToken:
                continue
            assert isinstance(json.loads(claims), dict)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
            max_leaves=30,
        )
    )
    def test_any_json_in_the_claims(self, value: object) -> None:
        for claims in (json.dumps(value), json.dumps({"claim": value}), json.dumps(value, ensure_ascii=False)):
            try:
                unverified = UnverifiedToken.parse(token(claims=claims.encode("utf-8", "surrogatepass")))
            except MalformedToken:
                continue
            assert unverified.claims == json.loads(claims)

    @pytest.mark.parametrize(
        "text",
        ["", ".", "..", "...", "a.b", "a.b.c.d", "a.b.c.d.e", f"{token()}.", f".{token()}", "a..c", "..c", "a.b."],
    )
    def test_parts(self, text: str) -> None:
        assert why(text)

    def test_missing_signature(self) -> None:
        assert why(token(signature=b"")) == "not three parts"

    def test_encrypted_token(self) -> None:
        assert why(f"{b64(HEADER)}.AA.AA.AA.AA") == "not three parts"

    def test_length(self) -> None:
        text = token(claims=json.dumps({"a": "x" * 6000}))
        assert len(text) < 8192
        assert UnverifiedToken.parse(text, max_length=len(text))
        assert "longer" in why(text, max_length=len(text) - 1)
        assert "longer" in why("x" * 8193)

    @pytest.mark.parametrize("part", [0, 1, 2])
    @pytest.mark.parametrize("junk", ["=", "==", "\n", " ", "+", "/", "*", "é", "\0", "\ud800"])
    def test_junk_and_padding(self, part: int, junk: str) -> None:
        for at in (0, 2, None):
            parts = token().split(".")
            parts[part] = parts[part][:at] + junk + parts[part][at:] if at is not None else parts[part] + junk
            assert "canonical" in why(".".join(parts))

    def test_stray_bits_in_the_last_character(self) -> None:
        text = token(signature=b"x")  # "eA"
        for last in "BCDEFGHIJKLMNOP":
            assert "canonical" in why(text[:-1] + last)

    @pytest.mark.parametrize("value", ["[]", '"x"', "1", "null", "true", "1.5"])
    def test_claims_must_be_an_object(self, value: str) -> None:
        assert "object" in why(token(claims=value))
        assert "object" in why(token(header=value))

    @pytest.mark.parametrize(
        "value",
        ["", " ", "{", "{}{}", "{} x", "{'a':1}", '{"a":1,}', '{"a":01}', '{"a":"\t"}', "\ufeff{}", '{"a":"\0"}'],
    )
    def test_claims_must_be_json(self, value: str) -> None:
        assert why(token(claims=value))
        assert why(token(header=value))

    @pytest.mark.parametrize("value", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
    def test_claims_must_be_utf_8(self, value: bytes) -> None:
        assert "UTF-8" in why(token(claims=b'{"a":"' + value + b'"}'))

    @pytest.mark.parametrize(
        "claims",
        [
            '{"sub":"a","sub":"b"}',
            '{"sub":"a","sub":"a"}',
            '{"sub":"a","\\u0073ub":"b"}',
            '{"x":{"y":1,"y":2}}',
            '{"x":[[{"y":1,"y":2}]]}',
        ],
    )
    def test_repeated_names(self, claims: str) -> None:
        assert "repeats" in why(token(claims=claims))

    def test_repeated_names_in_the_header(self) -> None:
        assert "repeats" in why(token(header='{"alg":"none","alg":"RS256"}'))

    def test_depth(self) -> None:
        def nested(depth: int) -> str:
            return '{"a":' * depth + "1" + "}" * depth

        assert UnverifiedToken.parse(token(claims=nested(8)))
        assert "levels" in why(token(claims=nested(9)))
        assert "levels" in why(token(claims='{"a":' + "[" * 8 + "]" * 8 + "}"))
        assert UnverifiedToken.parse(token(claims='{"a":' + "[" * 7 + "]" * 7 + "}"))
        assert UnverifiedToken.parse(token(claims='{"a":[' + ",".join(["{}"] * 100) + "]}"))
        assert UnverifiedToken.parse(token(claims=json.dumps({"a": '[[[[[[[[[[{"' * 5, '\\"[{': "[" * 20})))

    @pytest.mark.parametrize(
        "claims",
        [
            "[" * 6000,
            "{" * 6000,
            '{"a":' * 1200,
            '{"a":[' * 1000,
            '"' * 3000 + "[" * 3000,
            "[[[[[[[[[" + '"' + '\\"' * 2900,
            "[" * 3000 + "]" * 3000,
        ],
    )
    def test_bombs(self, claims: str) -> None:
        assert why(token(claims=claims))

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
    def test_invalid_numbers_are_refused(self, number: str) -> None:
        assert why(token(claims=f'{{"exp":{number}}}'))
        assert why(token(claims=f'{{"a":[{{"b":{number}}}]}}'))

    @pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**18 * 10**50])
    def test_integers_beyond_64_bits(self, number: int) -> None:
        assert "64 bits" in why(token(claims=f'{{"exp":{number}}}'))

    def test_integer_of_thousands_of_digits(self) -> None:
        assert "64 bits" in why(token(claims=f'{{"exp":{"9" * 5000}}}'))

    @pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0, -1])
    def test_integers_of_64_bits(self, number: int) -> None:
        assert UnverifiedToken.parse(token(claims=f'{{"n":{number}}}')).claims == {"n": number}

    @pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\uDFFF", "\\udfff\\ud800", "x\\u0000"])
    def test_nul_and_lone_surrogates(self, escape: str) -> None:
        for claims in (f'{{"sub":"{escape}"}}', f'{{"{escape}":1}}', f'{{"a":[{{"b":["{escape}"]}}]}}'):
            assert "surrogate" in why(token(claims=claims))
        assert "surrogate" in why(token(header=f'{{"alg":"RS256","kid":"{escape}"}}'))

    def test_other_escapes(self) -> None:
        assert UnverifiedToken.parse(token(claims='{"a":"\\ud83d\\udd11\\u00e9\\n\\\\u0000"}')).claims == {
            "a": "\U0001f511é\n\\u0000"
        }

    @pytest.mark.parametrize("name", ["kid", "typ"])
    @pytest.mark.parametrize("value", ["1", "null", "[]", "{}", "true"])
    def test_key_id_and_type_are_strings(self, name: str, value: str) -> None:
        assert name in why(token(header=f'{{"alg":"RS256","{name}":{value}}}'))

    def test_error_messages_do_not_quote_the_token(self) -> None:
        assert "s3cret" not in why(token(claims='{"s3cret":1,"s3cret":2}'))
        assert "s3cret" not in why(token(claims="s3cret"))


def test_repr_hides_the_token(good: str) -> None:
    assert repr(UnverifiedToken.parse(good)) == "UnverifiedToken()"


def test_half_hash() -> None:
    # OpenID Connect Core, appendix A.3 and A.4: the at_hash and c_hash of its examples.
    assert (
        UnverifiedToken.left_half_hash("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y", "RS256")
        == "77QmUPtjPfzWtF2AnpK9RQ"
    )
    assert (
        UnverifiedToken.left_half_hash("Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk", "RS256")
        == "LDktKdoQak3Pk0cnXxCltA"
    )
    expected = base64.urlsafe_b64encode(hashlib.sha512(b"x").digest()[:32]).rstrip(b"=").decode()
    assert UnverifiedToken.left_half_hash("x", "PS512") == expected


def test_secret_verifies_its_algorithm_alone() -> None:
    """The header does not choose: a token with another name for the same signature is refused."""
    for algorithm, accepted in (("HS256", "secret"), ("HS512", None), ("RS256", None), ("none", None)):
        text = forged({"alg": algorithm}, lambda signing_input: hmac.digest(b"secret", signing_input, "sha256"))
        unverified = UnverifiedToken.parse(text)
        unverified.verify_with_unknown_key()
        assert accepted is None or unverified.verify_with_secret(accepted) == CLAIMS
        with pytest.raises(InvalidTokenSignature):
            unverified.verify_with_secret("secret" if accepted is None else "other")

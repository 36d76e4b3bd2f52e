"""Signature algorithms of keys."""

from enum import StrEnum


class SignatureAlgorithm(StrEnum):
    """An algorithm to which a key is bound (RFC 7518 §3.1; ``EdDSA`` is Ed25519, RFC 8037 §3.1)."""

    RS256 = "RS256"
    PS256 = "PS256"
    ES256 = "ES256"
    EDDSA = "EdDSA"

    @classmethod
    def from_name(cls, name: str) -> "SignatureAlgorithm | None":
        """The algorithm that a header or JWK names; ``Ed25519`` is another name of EdDSA (RFC 9864 §2.2)."""
        return _BY_NAME.get(name)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What ``alg`` of a JWT or JWK may be."""
        return tuple(_BY_NAME)


_BY_NAME = {**{algorithm.value: algorithm for algorithm in SignatureAlgorithm}, "Ed25519": SignatureAlgorithm.EDDSA}

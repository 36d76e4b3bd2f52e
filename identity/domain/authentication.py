"""Proofs of identity, their authentication methods (amr) and context classes (acr)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar


class Acr:
    """Authentication context classes, each stronger than the one before."""

    ONE_FACTOR = "urn:service:iam:acr:1"
    #: Two factors of different kinds.
    TWO_FACTORS = "urn:service:iam:acr:2"
    #: Two factors of which one resists phishing.
    PHISHING_RESISTANT = "urn:service:iam:acr:phr"


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof of identity: the factor, its RFC 8176 methods, and when it was given."""

    #: The authentication method of a password (RFC 8176) and its factor name.
    PASSWORD_METHOD: ClassVar[str] = "pwd"  # noqa: S105 - a name
    PASSWORD_FACTOR: ClassVar[str] = "password"  # noqa: S105
    #: The factor of a remembered browser, where the second factor is skipped for some time.
    REMEMBERED_FACTOR: ClassVar[str] = "remembered"
    #: The method of a sign-in at an upstream provider whose methods are unknown or not trusted.
    FEDERATED_METHOD: ClassVar[str] = "federated"
    #: Added to a sign-in at an upstream provider that does not say when the user authenticated; a session there may
    #: be days old.
    UNDATED_METHOD: ClassVar[str] = "undated"

    factor: str
    methods: tuple[str, ...]
    at: datetime

    @property
    def is_dated(self) -> bool:
        """True if its time is known."""
        return self.factor != self.REMEMBERED_FACTOR and self.UNDATED_METHOD not in self.methods


ACR_VALUES = (Acr.ONE_FACTOR, Acr.TWO_FACTORS, Acr.PHISHING_RESISTANT)

_KNOWLEDGE, _POSSESSION, _INHERENCE = "something known", "something held", "something one is"
_VOUCHED_FOR = "asserted by a provider"

#: The kind of factor of each method (RFC 8176 §2); methods that are no factor, such as user and mfa, are left out.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("kba", "pin", "pwd"), _KNOWLEDGE),
    **dict.fromkeys(("hwk", "otp", "pop", "sc", "sms", "swk", "tel"), _POSSESSION),
    Proof.FEDERATED_METHOD: _VOUCHED_FOR,
    **dict.fromkeys(("face", "fpt", "iris", "retina", "vbm"), _INHERENCE),
}
_RESISTANT = frozenset({"hwk", "sc", "swk"})
_MFA = "mfa"
#: Internal methods that RFC 8176 does not define.
_OURS = frozenset({Proof.REMEMBERED_FACTOR, Proof.FEDERATED_METHOD, Proof.UNDATED_METHOD})


def proof_methods(proofs: Iterable[Proof]) -> tuple[str, ...]:
    """The distinct methods of all proofs, in order."""
    return tuple(dict.fromkeys(method for proof in proofs for method in proof.methods))


def amr_claim(methods: Iterable[str]) -> list[str]:
    """The amr claim: distinct methods, plus mfa for more than one kind of factor (RFC 8176)."""
    known = tuple(dict.fromkeys(methods))
    once = [method for method in known if method not in _OURS]
    return [*once, _MFA] if _kinds(known) > 1 and _MFA not in once else once


def authentication_claims(
    methods: Iterable[str], acr: str = "", authenticated_at: datetime | None = None
) -> dict[str, object]:
    """How and when the user authenticated: ``amr``, ``acr`` and ``auth_time`` (OpenID Connect Core §2, RFC 9068
    §2.2.1)."""
    amr = amr_claim(methods)
    claims: dict[str, object] = {"amr": amr} if amr else {}
    claims["acr"] = acr or acr_claim(methods)
    if authenticated_at is not None:
        claims["auth_time"] = int(authenticated_at.timestamp())
    return claims


def acr_claim(methods: Iterable[str], requested: Iterable[str] = ()) -> str:
    """The acr claim: the first of ``requested`` that the methods satisfy, else the strongest class they reach."""
    known = frozenset(methods)
    reached = _reached(known)
    return next(
        (item for item in requested if item in ACR_VALUES and ACR_VALUES.index(item) <= reached), ACR_VALUES[reached]
    )


def satisfies_acr(methods: Iterable[str], acr: str) -> bool:
    """True if the methods reach this class of ACR_VALUES or a stronger one."""
    return _reached(frozenset(methods)) >= ACR_VALUES.index(acr)


def _reached(methods: frozenset[str]) -> int:
    if _MFA not in methods and _kinds(methods) < 2:
        return 0
    return 2 if methods & _RESISTANT else 1


def _kinds(methods: Iterable[str]) -> int:
    return len({_KINDS[method] for method in methods if method in _KINDS})

"""How somebody proved to be who they are: proofs, their methods, and what they amount to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

#: How a password counts among authentication methods (RFC 8176), and the factor that it is.
PASSWORD_METHOD, PASSWORD_FACTOR = "pwd", "password"
#: The factor that stands for a browser at which a second one was asked once and need not be again for some time.
REMEMBERED_FACTOR = "remembered"
#: The method of whoever signed in elsewhere, where that is not believed or does not say by which methods.
FEDERATED_METHOD = "federated"
#: The further method of whoever signed in elsewhere, where that does not say that it was just now: it may have been
#: days ago, by a session there.
UNDATED_METHOD = "undated"

#: Authentication context classes, each more than the one before: one factor; two of different kinds; two of which one
#: cannot be given away to a site that looks like ours.
ACR_ONE_FACTOR, ACR_TWO_FACTORS, ACR_PHISHING_RESISTANT = (
    "urn:service:iam:acr:1",
    "urn:service:iam:acr:2",
    "urn:service:iam:acr:phr",
)
ACR_VALUES = (ACR_ONE_FACTOR, ACR_TWO_FACTORS, ACR_PHISHING_RESISTANT)

_KNOWLEDGE, _POSSESSION, _INHERENCE = "something known", "something held", "something one is"
_VOUCHED_FOR = "somebody else's word"

#: What kind of factor a method is (RFC 8176 §2); those that are none, such as user and mfa, are left out.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("kba", "pin", "pwd"), _KNOWLEDGE),
    **dict.fromkeys(("hwk", "otp", "pop", "sc", "sms", "swk", "tel"), _POSSESSION),
    FEDERATED_METHOD: _VOUCHED_FOR,
    **dict.fromkeys(("face", "fpt", "iris", "retina", "vbm"), _INHERENCE),
}
_RESISTANT = frozenset({"hwk", "sc", "swk"})
_MFA = "mfa"
#: What counts here and is no word of RFC 8176.
_OURS = frozenset({REMEMBERED_FACTOR, FEDERATED_METHOD, UNDATED_METHOD})


@dataclass(frozen=True, slots=True)
class Proof:
    """That somebody proved to be who they are: by which factor, what that says in RFC 8176's words, and when."""

    factor: str
    methods: tuple[str, ...]
    at: datetime


def dated_proofs(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """Those by which somebody proved who they are at the moment that they tell."""
    return tuple(proof for proof in proofs if proof.factor != REMEMBERED_FACTOR and UNDATED_METHOD not in proof.methods)


def proof_methods(proofs: Iterable[Proof]) -> tuple[str, ...]:
    """The methods of all of them, each once, in the order in which they were given."""
    return tuple(dict.fromkeys(method for proof in proofs for method in proof.methods))


def amr_claim(methods: Iterable[str]) -> list[str]:
    """What an ID token says as amr: the methods, each once, and mfa for more than one kind of factor (RFC 8176)."""
    known = tuple(dict.fromkeys(methods))
    once = [method for method in known if method not in _OURS]
    return [*once, _MFA] if _kinds(known) > 1 and _MFA not in once else once


def acr_claim(methods: Iterable[str], requested: Iterable[str] = ()) -> str:
    """The authentication context class that the methods reach; the first of ``requested`` that they reach, if there is
    one: whoever asked for two factors is told so, also where there is more."""
    known = frozenset(methods)
    reached = _reached(known)
    return next(
        (item for item in requested if item in ACR_VALUES and ACR_VALUES.index(item) <= reached), ACR_VALUES[reached]
    )


def satisfies_acr(methods: Iterable[str], acr: str) -> bool:
    """True if the methods amount to this class, of ACR_VALUES, or to more."""
    return _reached(frozenset(methods)) >= ACR_VALUES.index(acr)


def _reached(methods: frozenset[str]) -> int:
    if _MFA not in methods and _kinds(methods) < 2:
        return 0
    return 2 if methods & _RESISTANT else 1


def _kinds(methods: Iterable[str]) -> int:
    return len({_KINDS[method] for method in methods if method in _KINDS})

"""How somebody proved to be who they are: methods, and what they amount to."""

from collections.abc import Iterable, Mapping

#: How a password counts among authentication methods (RFC 8176).
BY_PASSWORD = "pwd"  # noqa: S105 - the name of a method

#: Authentication context classes: one factor; two of different kinds.
ONE_FACTOR, TWO_FACTORS = "urn:service:iam:acr:1", "urn:service:iam:acr:2"
ACR_VALUES = (ONE_FACTOR, TWO_FACTORS)

_KNOWN, _HELD, _BORN_WITH = "something known", "something held", "something one is"

#: What kind of factor a method is (RFC 8176 §2); those that are none, such as user and mfa, are left out.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("kba", "pin", "pwd"), _KNOWN),
    **dict.fromkeys(("hwk", "otp", "pop", "sc", "sms", "swk", "tel"), _HELD),
    **dict.fromkeys(("face", "fpt", "iris", "retina", "vbm"), _BORN_WITH),
}


def amr_of(methods: Iterable[str]) -> list[str]:
    """What an ID token says as amr: the methods, each once, and mfa for more than one kind of factor (RFC 8176)."""
    once = list(dict.fromkeys(methods))
    return [*once, "mfa"] if _kinds(once) > 1 and "mfa" not in once else once


def acr_of(methods: Iterable[str]) -> str:
    """The authentication context class that the methods reach, of ACR_VALUES."""
    return TWO_FACTORS if _kinds(methods) > 1 else ONE_FACTOR


def _kinds(methods: Iterable[str]) -> int:
    return len({_KINDS[method] for method in methods if method in _KINDS})

"""Authentication method references (RFC 8176) and the acr values that they amount to."""

import pytest

from identity.domain.authentication import ACR_ONE_FACTOR, ACR_PHISHING_RESISTANT, ACR_TWO_FACTORS, acr_claim, amr_claim


@pytest.mark.parametrize(
    ("methods", "amr", "acr"),
    [
        (("pwd",), ["pwd"], ACR_ONE_FACTOR),
        (("pwd", "pwd"), ["pwd"], ACR_ONE_FACTOR),
        (("pwd", "pin"), ["pwd", "pin"], ACR_ONE_FACTOR),
        (("pwd", "user"), ["pwd", "user"], ACR_ONE_FACTOR),
        (("pwd", "a plugin's own"), ["pwd", "a plugin's own"], ACR_ONE_FACTOR),
        (("pwd", "otp"), ["pwd", "otp", "mfa"], ACR_TWO_FACTORS),
        (("hwk", "fpt", "mfa"), ["hwk", "fpt", "mfa"], ACR_PHISHING_RESISTANT),
        (("pwd", "swk", "user"), ["pwd", "swk", "user", "mfa"], ACR_PHISHING_RESISTANT),
        (("swk", "user"), ["swk", "user"], ACR_ONE_FACTOR),
        (("pwd", "remembered"), ["pwd"], ACR_ONE_FACTOR),
        (("federated",), [], ACR_ONE_FACTOR),
        (("federated", "otp"), ["otp", "mfa"], ACR_TWO_FACTORS),
        (("sms", "otp"), ["sms", "otp"], ACR_ONE_FACTOR),
        ((), [], ACR_ONE_FACTOR),
    ],
)
def test_two_kinds_of_factors_are_more_than_two_of_one_kind(methods: tuple[str, ...], amr: list[str], acr: str) -> None:
    assert (amr_claim(methods), acr_claim(methods)) == (amr, acr)


def test_requested_acr_is_returned_if_reached() -> None:
    for requested, reported in (
        ((), ACR_PHISHING_RESISTANT),
        ((ACR_ONE_FACTOR,), ACR_ONE_FACTOR),
        ((ACR_TWO_FACTORS, ACR_ONE_FACTOR), ACR_TWO_FACTORS),
        (("urn:example:gold",), ACR_PHISHING_RESISTANT),
    ):
        assert acr_claim(("pwd", "hwk"), requested) == reported
    assert acr_claim(("pwd",), (ACR_TWO_FACTORS,)) == ACR_ONE_FACTOR

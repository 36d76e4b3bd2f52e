"""Authentication method references (RFC 8176) and the acr values derived from them."""

import pytest

from identity.domain.authentication import Acr, acr_claim, amr_claim


@pytest.mark.parametrize(
    ("methods", "amr", "acr"),
    [
        (("pwd",), ["pwd"], Acr.ONE_FACTOR),
        (("pwd", "pwd"), ["pwd"], Acr.ONE_FACTOR),
        (("pwd", "pin"), ["pwd", "pin"], Acr.ONE_FACTOR),
        (("pwd", "user"), ["pwd", "user"], Acr.ONE_FACTOR),
        (("pwd", "a plugin's own"), ["pwd", "a plugin's own"], Acr.ONE_FACTOR),
        (("pwd", "otp"), ["pwd", "otp", "mfa"], Acr.TWO_FACTORS),
        (("hwk", "fpt", "mfa"), ["hwk", "fpt", "mfa"], Acr.PHISHING_RESISTANT),
        (("pwd", "swk", "user"), ["pwd", "swk", "user", "mfa"], Acr.PHISHING_RESISTANT),
        (("swk", "user"), ["swk", "user"], Acr.ONE_FACTOR),
        (("pwd", "remembered"), ["pwd"], Acr.ONE_FACTOR),
        (("federated",), [], Acr.ONE_FACTOR),
        (("federated", "otp"), ["otp", "mfa"], Acr.TWO_FACTORS),
        (("sms", "otp"), ["sms", "otp"], Acr.ONE_FACTOR),
        ((), [], Acr.ONE_FACTOR),
    ],
)
def test_two_kinds_of_factors_are_more_than_two_of_one_kind(methods: tuple[str, ...], amr: list[str], acr: str) -> None:
    assert (amr_claim(methods), acr_claim(methods)) == (amr, acr)


def test_requested_acr_is_returned_if_reached() -> None:
    for requested, reported in (
        ((), Acr.PHISHING_RESISTANT),
        ((Acr.ONE_FACTOR,), Acr.ONE_FACTOR),
        ((Acr.TWO_FACTORS, Acr.ONE_FACTOR), Acr.TWO_FACTORS),
        (("urn:example:gold",), Acr.PHISHING_RESISTANT),
    ):
        assert acr_claim(("pwd", "hwk"), requested) == reported
    assert acr_claim(("pwd",), (Acr.TWO_FACTORS,)) == Acr.ONE_FACTOR

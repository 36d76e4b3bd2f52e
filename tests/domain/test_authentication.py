"""How methods of authentication are told (RFC 8176), and what they amount to."""

import pytest

from identity.domain.authentication import ONE_FACTOR, PHISHING_RESISTANT, TWO_FACTORS, acr_of, amr_of


@pytest.mark.parametrize(
    ("methods", "amr", "acr"),
    [
        (("pwd",), ["pwd"], ONE_FACTOR),
        (("pwd", "pwd"), ["pwd"], ONE_FACTOR),
        (("pwd", "pin"), ["pwd", "pin"], ONE_FACTOR),
        (("pwd", "user"), ["pwd", "user"], ONE_FACTOR),
        (("pwd", "a plugin's own"), ["pwd", "a plugin's own"], ONE_FACTOR),
        (("pwd", "otp"), ["pwd", "otp", "mfa"], TWO_FACTORS),
        (("hwk", "fpt", "mfa"), ["hwk", "fpt", "mfa"], PHISHING_RESISTANT),
        (("pwd", "swk", "user"), ["pwd", "swk", "user", "mfa"], PHISHING_RESISTANT),
        (("swk", "user"), ["swk", "user"], ONE_FACTOR),
        (("pwd", "remembered"), ["pwd"], ONE_FACTOR),
        (("federated",), [], ONE_FACTOR),
        (("federated", "otp"), ["otp", "mfa"], TWO_FACTORS),
        (("sms", "otp"), ["sms", "otp"], ONE_FACTOR),
        ((), [], ONE_FACTOR),
    ],
)
def test_two_kinds_of_factors_are_more_than_two_of_one_kind(methods: tuple[str, ...], amr: list[str], acr: str) -> None:
    assert (amr_of(methods), acr_of(methods)) == (amr, acr)


def test_a_class_that_is_asked_for_is_told_if_it_is_reached() -> None:
    for wanted, told in (
        ((), PHISHING_RESISTANT),
        ((ONE_FACTOR,), ONE_FACTOR),
        ((TWO_FACTORS, ONE_FACTOR), TWO_FACTORS),
        (("urn:example:gold",), PHISHING_RESISTANT),
    ):
        assert acr_of(("pwd", "hwk"), wanted) == told
    assert acr_of(("pwd",), (TWO_FACTORS,)) == ONE_FACTOR

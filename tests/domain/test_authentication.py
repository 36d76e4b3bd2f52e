"""How methods of authentication are told (RFC 8176), and what they amount to."""

import pytest

from identity.domain.authentication import ONE_FACTOR, TWO_FACTORS, acr_of, amr_of


@pytest.mark.parametrize(
    ("methods", "amr", "acr"),
    [
        (("pwd",), ["pwd"], ONE_FACTOR),
        (("pwd", "pwd"), ["pwd"], ONE_FACTOR),
        (("pwd", "pin"), ["pwd", "pin"], ONE_FACTOR),
        (("pwd", "user"), ["pwd", "user"], ONE_FACTOR),
        (("pwd", "a plugin's own"), ["pwd", "a plugin's own"], ONE_FACTOR),
        (("pwd", "otp"), ["pwd", "otp", "mfa"], TWO_FACTORS),
        (("hwk", "fpt", "mfa"), ["hwk", "fpt", "mfa"], TWO_FACTORS),
        (("sms", "otp"), ["sms", "otp"], ONE_FACTOR),
        ((), [], ONE_FACTOR),
    ],
)
def test_two_kinds_of_factors_are_more_than_two_of_one_kind(methods: tuple[str, ...], amr: list[str], acr: str) -> None:
    assert (amr_of(methods), acr_of(methods)) == (amr, acr)

"""The factor totp, and what its codes are: RFC 6238 with SHA-1, six digits and 30 seconds, which every app knows."""

from datetime import datetime
from typing import ClassVar
from urllib.parse import quote, urlencode

from identity.crypto.secrets import constant_time_equal
from identity.domain.messages import gettext_lazy
from identity.provider.factor import Factor

#: How many steps the clocks of app and service may differ.
_ALLOWED_DRIFT_STEPS = 1
#: How much of the organization's name, and of the login name, apps are shown: more would not fit into the picture.
_LONGEST_ISSUER, _LONGEST_NAME = 40, 100


class TotpFactor(Factor):
    """What is kept of an app: its secret, and the last step of which a code was used."""

    name: ClassVar[str] = "totp"
    label: ClassVar[str] = gettext_lazy("Authenticator app")
    hint: ClassVar[str] = gettext_lazy("Six digits that an app on your phone shows.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "phone"


def new_secret() -> str:
    """A secret of 160 random bits in Base32, as many as the hash has (RFC 4226 §4)."""
    import pyotp

    return pyotp.random_base32()


def otpauth_uri(secret: str, login_name: str, issuer: str) -> str:
    """The ``otpauth:`` address by which apps take the secret over, under these names."""
    name, issuer = _truncate_label(login_name, _LONGEST_NAME), _truncate_label(issuer, _LONGEST_ISSUER)
    told = {"secret": secret, "issuer": issuer} if issuer else {"secret": secret}
    # The one colon ends the issuer. Slashes are encoded, too: some apps take them for parts of the path.
    label = ":".join(quote(item, safe="") for item in (issuer, name) if item)
    return f"otpauth://totp/{label}?{urlencode(told, quote_via=quote)}"


def _truncate_label(name: str, longest: int) -> str:
    """As much of the name as is shown, without colons."""
    return " ".join(name.replace(":", " ").split())[:longest].rstrip()


def verify_code(secret: str, code: str, now: datetime, *, last_used_step: int = -1) -> int | None:
    """The step whose code this is, around the present one and later than ``last_used_step``; None for any other text.

    The time that it takes tells nothing of the code.
    """
    import pyotp

    totp, given = pyotp.TOTP(secret), _normalize_code(code)
    present = totp.timecode(now)
    found = None
    for step in range(max(0, present - _ALLOWED_DRIFT_STEPS), present + _ALLOWED_DRIFT_STEPS + 1):
        if constant_time_equal(totp.generate_otp(step).encode(), given) and step > last_used_step:
            found = step
    return found


def _normalize_code(code: str) -> bytes:
    """The code without the spaces in which people and apps group it."""
    return "".join(code.split()).encode("utf-8", "surrogatepass")

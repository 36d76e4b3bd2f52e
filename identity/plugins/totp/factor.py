"""The factor totp and its codes: RFC 6238 with SHA-1, six digits and 30 seconds, which every app supports."""

from datetime import datetime
from typing import ClassVar
from urllib.parse import quote, urlencode

from identity.api.crypto import constant_time_equal
from identity.api.pages import gettext_lazy
from identity.api.sign_in import Factor

#: Allowed clock difference between app and service, in steps.
_ALLOWED_DRIFT_STEPS = 1
#: Maximum lengths of the organization's name and the login name in apps: more would not fit into the QR code.
_LONGEST_ISSUER, _LONGEST_NAME = 40, 100


class TotpFactor(Factor):
    """An enrolment stores the secret and the last used time step."""

    name: ClassVar[str] = "totp"
    label: ClassVar[str] = gettext_lazy("Authenticator app")
    hint: ClassVar[str] = gettext_lazy("Six digits that an app on your phone shows.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "phone"


def new_secret() -> str:
    """160 random bits in Base32, the length of the hash (RFC 4226 §4)."""
    import pyotp

    return pyotp.random_base32()


def otpauth_uri(secret: str, login_name: str, issuer: str) -> str:
    """The ``otpauth:`` URI that apps import, with these names."""
    name, issuer = _truncate_label(login_name, _LONGEST_NAME), _truncate_label(issuer, _LONGEST_ISSUER)
    parameters = {"secret": secret, "issuer": issuer} if issuer else {"secret": secret}
    # The only colon ends the issuer. Slashes are encoded, too: some apps treat them as path separators.
    label = ":".join(quote(item, safe="") for item in (issuer, name) if item)
    return f"otpauth://totp/{label}?{urlencode(parameters, quote_via=quote)}"


def _truncate_label(name: str, longest: int) -> str:
    """The name without colons, shortened."""
    return " ".join(name.replace(":", " ").split())[:longest].rstrip()


def verify_code(secret: str, code: str, now: datetime, *, last_used_step: int = -1) -> int | None:
    """The time step of the code, near the current one and later than ``last_used_step``; None for any other text.

    Runs in constant time.
    """
    import pyotp

    totp, normalized_code = pyotp.TOTP(secret), _normalize_code(code)
    present = totp.timecode(now)
    found = None
    for step in range(max(0, present - _ALLOWED_DRIFT_STEPS), present + _ALLOWED_DRIFT_STEPS + 1):
        if constant_time_equal(totp.generate_otp(step).encode(), normalized_code) and step > last_used_step:
            found = step
    return found


def _normalize_code(code: str) -> bytes:
    """The code without grouping spaces."""
    return "".join(code.split()).encode("utf-8", "surrogatepass")

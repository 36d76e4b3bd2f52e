"""The factor totp, and what its codes are: RFC 6238 with SHA-1, six digits and 30 seconds, which every app knows."""

from datetime import datetime
from typing import ClassVar
from urllib.parse import quote, urlencode

from identity.crypto.secrets import same
from identity.domain.words import say
from identity.provider.factor import Factor

#: How many steps the clocks of app and service may differ.
_DRIFT = 1
#: How much of the organization's name, and of the login name, apps are shown: more would not fit into the picture.
_LONGEST_ISSUER, _LONGEST_NAME = 40, 100


class Totp(Factor):
    """What is kept of an app: its secret, and the last step of which a code was used."""

    name: ClassVar[str] = "totp"
    label: ClassVar[str] = say("Authenticator app")
    hint: ClassVar[str] = say("Six digits that an app on your phone shows.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "phone"


def new_secret() -> str:
    """A secret of 160 random bits in Base32, as many as the hash has (RFC 4226 §4)."""
    import pyotp

    return pyotp.random_base32()


def address_of(secret: str, login_name: str, issuer: str) -> str:
    """The ``otpauth:`` address by which apps take the secret over, under these names."""
    name, issuer = _shown(login_name, _LONGEST_NAME), _shown(issuer, _LONGEST_ISSUER)
    told = {"secret": secret, "issuer": issuer} if issuer else {"secret": secret}
    # The one colon ends the issuer. Slashes are encoded, too: some apps take them for parts of the path.
    label = ":".join(quote(one, safe="") for one in (issuer, name) if one)
    return f"otpauth://totp/{label}?{urlencode(told, quote_via=quote)}"


def _shown(name: str, longest: int) -> str:
    """As much of the name as is shown, without colons."""
    return " ".join(name.replace(":", " ").split())[:longest].rstrip()


def step_of(secret: str, code: str, now: datetime, *, after: int = -1) -> int | None:
    """The step whose code this is, around the present one and later than ``after``; None for any other text.

    The time that it takes tells nothing of the code.
    """
    import pyotp

    totp, given = pyotp.TOTP(secret), _digits(code)
    present = totp.timecode(now)
    found = None
    for step in range(max(0, present - _DRIFT), present + _DRIFT + 1):
        if same(totp.generate_otp(step).encode(), given) and step > after:
            found = step
    return found


def _digits(code: str) -> bytes:
    """The code without the spaces in which people and apps group it."""
    return "".join(code.split()).encode("utf-8", "surrogatepass")

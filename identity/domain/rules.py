"""Rules about values that people and programs set: each tells what is wrong, as a sentence, or None."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, wraps
from zoneinfo import available_timezones

from identity.domain.names import can_be_compared, is_printable
from identity.domain.words import say

DESCRIPTION_LENGTH = 2000
_TEXT_LENGTH = 200
_ADDRESS_LENGTH = 254
_SCOPE_LENGTH = 2000

#: No access token or ID token lives longer, whatever an application asks for: a retired signing key has to stay
#: published for as long.
LONGEST_TOKEN_LIFETIME = timedelta(hours=12)

#: Good enough to catch slips; whether mail arrives is proved by sending one (RFC 5321 §4.5.3.1.3 for the length).
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]+\.[^\s@<>()\[\],;:\\\".]{2,}\Z")
_PHONE = re.compile(r"\+?[0-9 ()/.-]{3,40}\Z")
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*\Z")
_BIRTH_DATE = re.compile(r"([0-9]{4}|0000-[0-9]{2}-[0-9]{2})\Z")
_NO_ADDRESS = say("Enter an email address such as anna@example.com.")


def email_problem(text: str) -> str | None:
    """An email address."""
    # "=?" begins an encoded word (RFC 2047 §2), which the header of a mail could turn into another address.
    if len(text) > _ADDRESS_LENGTH or not _EMAIL.match(text) or "=?" in text or not is_printable(text):
        return _NO_ADDRESS
    return None if can_be_compared(text) else _NO_ADDRESS


def text_problem(text: str) -> str | None:
    """A line of text, or none."""
    if len(text) > _TEXT_LENGTH:
        return say("Use at most {length} characters.", length=_TEXT_LENGTH)
    return None if is_printable(text) else say("Use printable characters only.")


def lines_problem(text: str) -> str | None:
    """A few lines of text, or none."""
    return text_problem(text.replace("\r\n", " ").replace("\n", " "))


def phone_problem(text: str) -> str | None:
    """A phone number."""
    return None if _PHONE.match(text) else say("Enter a phone number such as +49 30 1234567.")


def web_address_problem(text: str) -> str | None:
    """An address in the web."""
    if text.startswith(("https://", "http://")) and len(text) <= 2000 and is_printable(text) and " " not in text:
        return None
    return say("Enter an address that starts with https://.")


def locale_problem(text: str) -> str | None:
    """A language (BCP 47), with - or _."""
    return None if _LOCALE.match(text) else say("Enter a language such as en or de-CH.")


#: Looking for them takes 20 ms.
_time_zones = cache(available_timezones)


def zone_problem(text: str) -> str | None:
    """A time zone of the tz database."""
    return None if text in _time_zones() else say("Enter a time zone such as Europe/Berlin.")


def birth_date_problem(text: str) -> str | None:
    """A date, or a year alone (OpenID Connect Core §5.1)."""
    if _BIRTH_DATE.match(text):
        return None
    try:
        date.fromisoformat(text)
    except ValueError:
        return say("Enter a date such as 1990-12-31.")
    return None


def scope_problem(text: str) -> str | None:
    """Scopes, with the characters of RFC 6749 §3.3."""
    if len(text) <= _SCOPE_LENGTH and all(c in " !" or "#" <= c <= "[" or "]" <= c <= "~" for c in text):
        return None
    return say("Enter scopes with a space in between, such as openid profile.")


def unless_empty(problem: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The same rule for what need not be given; ``inspect.unwrap`` finds that one."""

    @wraps(problem)
    def unless_empty(text: str) -> str | None:
        return problem(text) if text else None

    return unless_empty


def description_problem(text: str) -> str | None:
    """A paragraph, or none."""
    if len(text) > DESCRIPTION_LENGTH:
        return say("Use at most {length} characters.", length=DESCRIPTION_LENGTH)
    return None if is_printable(text.replace("\n", " ")) else say("Use printable characters only.")


def lifetime_problem(span: timedelta) -> str | None:
    """How long a token may live."""
    fits = timedelta(seconds=1) <= span <= LONGEST_TOKEN_LIFETIME
    return None if fits else say("Choose between 1 second and 12 hours.")

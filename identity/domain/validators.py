"""Validators of values: each returns what is wrong, as a sentence, or None."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, wraps
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from identity.domain.messages import gettext_lazy
from identity.domain.names import can_be_compared, is_printable

MAX_DESCRIPTION_LENGTH = 2000
_TEXT_LENGTH = 200
_ADDRESS_LENGTH = 254
_SCOPE_LENGTH = 2000

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})

#: Maximum lifetime of access tokens and ID tokens: retired signing keys must stay published as long.
MAX_TOKEN_LIFETIME = timedelta(hours=12)

#: Catches typing errors; only sending mail proves an address (RFC 5321 §4.5.3.1.3 for the length).
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]+\.[^\s@<>()\[\],;:\\\".]{2,}\Z")
_PHONE = re.compile(r"\+?[0-9 ()/.-]{3,40}\Z")
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*\Z")
_BIRTH_DATE = re.compile(r"([0-9]{4}|0000-[0-9]{2}-[0-9]{2})\Z")
_NO_ADDRESS = gettext_lazy("Enter an email address such as anna@example.com.")


def email_problem(text: str) -> str | None:
    # "=?" begins an encoded word (RFC 2047 §2), which a mail header could turn into another address.
    if len(text) > _ADDRESS_LENGTH or not _EMAIL.match(text) or "=?" in text or not is_printable(text):
        return _NO_ADDRESS
    return None if can_be_compared(text) else _NO_ADDRESS


def text_problem(text: str) -> str | None:
    """A line of text, possibly empty."""
    if len(text) > _TEXT_LENGTH:
        return gettext_lazy("Use at most {length} characters.", length=_TEXT_LENGTH)
    return None if is_printable(text) else gettext_lazy("Use printable characters only.")


def multiline_text_error(text: str) -> str | None:
    """A few lines of text, possibly empty."""
    return text_problem(text.replace("\r\n", " ").replace("\n", " "))


def phone_problem(text: str) -> str | None:
    return None if _PHONE.match(text) else gettext_lazy("Enter a phone number such as +49 30 1234567.")


def url_error(text: str) -> str | None:
    """A web URL."""
    if text.startswith(("https://", "http://")) and len(text) <= 2000 and is_printable(text) and " " not in text:
        return None
    return gettext_lazy("Enter an address that starts with https://.")


def is_https_url(text: str, *, max_length: int, forbidden: str) -> bool:
    """True for an https URL, or an http URL of this machine, without any of the forbidden characters."""
    if len(text) > max_length or not is_printable(text) or set(text) & set(forbidden):
        return False
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK_HOSTS))


def locale_problem(text: str) -> str | None:
    """A language tag (BCP 47), with - or _."""
    return None if _LOCALE.match(text) else gettext_lazy("Enter a language such as en or de-CH.")


#: Loading them takes 20 ms.
_time_zones = cache(available_timezones)


def time_zone_error(text: str) -> str | None:
    """A time zone of the tz database."""
    return None if text in _time_zones() else gettext_lazy("Enter a time zone such as Europe/Berlin.")


def birth_date_problem(text: str) -> str | None:
    """A date or a year (OpenID Connect Core §5.1)."""
    if _BIRTH_DATE.match(text):
        return None
    try:
        date.fromisoformat(text)
    except ValueError:
        return gettext_lazy("Enter a date such as 1990-12-31.")
    return None


def scope_problem(text: str) -> str | None:
    """Scopes, with the characters of RFC 6749 §3.3."""
    if len(text) <= _SCOPE_LENGTH and all(c in " !" or "#" <= c <= "[" or "]" <= c <= "~" for c in text):
        return None
    return gettext_lazy("Enter scopes with a space in between, such as openid profile.")


def allow_empty(problem: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The validator for an optional value; ``inspect.unwrap`` returns the original."""

    @wraps(problem)
    def unless_empty(text: str) -> str | None:
        return problem(text) if text else None

    return unless_empty


def description_problem(text: str) -> str | None:
    """A paragraph, possibly empty."""
    if len(text) > MAX_DESCRIPTION_LENGTH:
        return gettext_lazy("Use at most {length} characters.", length=MAX_DESCRIPTION_LENGTH)
    return None if is_printable(text.replace("\n", " ")) else gettext_lazy("Use printable characters only.")


def lifetime_problem(span: timedelta) -> str | None:
    fits = timedelta(seconds=1) <= span <= MAX_TOKEN_LIFETIME
    return None if fits else gettext_lazy("Choose between 1 second and 12 hours.")

"""Field types that several commands share."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, WithJsonSchema, WrapValidator

from identity.domain.applications import LONGEST_TOKEN_LIFETIME
from identity.domain.expirations import NEVER, NEVER_WORD
from identity.domain.names import can_be_compared, domain_problem, is_printable, name_problem, user_name_problem
from identity.domain.words import say

DESCRIPTION_LENGTH = 2000

#: Date and time (RFC 3339 §5.6); a missing zone is complained about by its own sentence.
_RFC_3339 = re.compile(r"\s*\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?\s*\Z")


_NO_MOMENT = say("Enter a moment such as 2027-01-31T23:59:59Z.")


def _rule(problem: Callable[[str], str | None]) -> AfterValidator:
    def check(value: str) -> str:
        sentence = problem(value)
        if sentence is not None:
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


def _description_problem(text: str) -> str | None:
    if len(text) > DESCRIPTION_LENGTH:
        return say("Use at most {length} characters.", length=DESCRIPTION_LENGTH)
    return None if is_printable(text.replace("\n", " ")) else say("Use printable characters only.")


def _rfc_3339(value: object) -> object:
    """The library would also read numbers, as seconds or milliseconds since 1970."""
    if not isinstance(value, datetime) and not (isinstance(value, str) and _RFC_3339.match(value)):
        raise ValueError(_NO_MOMENT)
    return value


def _or_never(value: object, moment: Callable[[object], datetime]) -> datetime:
    return NEVER if value == NEVER_WORD else moment(value)


def _whole_seconds(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        # In UTC it lies before the year 1 or after the year 9999.
        raise ValueError(_NO_MOMENT) from None


def _lifetime(span: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= span <= LONGEST_TOKEN_LIFETIME:
        raise ValueError(say("Choose between 1 second and 12 hours."))
    return span


#: Good enough to catch slips; whether mail arrives is proved by sending one (RFC 5321 §4.5.3.1.3 for the length).
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]+\.[^\s@<>()\[\],;:\\\".]{2,}\Z")
_PHONE = re.compile(r"\+?[0-9 ()/.-]{3,40}\Z")
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*\Z")
_BIRTH_DATE = re.compile(r"([0-9]{4}|0000-[0-9]{2}-[0-9]{2})\Z")
_TEXT_LENGTH = 200
_ADDRESS_LENGTH = 254
_SCOPE_LENGTH = 2000


_NO_ADDRESS = say("Enter an email address such as anna@example.com.")


def _email_problem(text: str) -> str | None:
    # "=?" begins an encoded word (RFC 2047 §2), which the header of a mail could turn into another address.
    if len(text) > _ADDRESS_LENGTH or not _EMAIL.match(text) or "=?" in text or not is_printable(text):
        return _NO_ADDRESS
    return None if can_be_compared(text) else _NO_ADDRESS


def _text_problem(text: str) -> str | None:
    if len(text) > _TEXT_LENGTH:
        return say("Use at most {length} characters.", length=_TEXT_LENGTH)
    return None if is_printable(text) else say("Use printable characters only.")


def _lines_problem(text: str) -> str | None:
    return _text_problem(text.replace("\r\n", " ").replace("\n", " "))


def _phone_problem(text: str) -> str | None:
    return None if _PHONE.match(text) else say("Enter a phone number such as +49 30 1234567.")


def _web_address_problem(text: str) -> str | None:
    if text.startswith(("https://", "http://")) and len(text) <= 2000 and is_printable(text) and " " not in text:
        return None
    return say("Enter an address that starts with https://.")


def _locale_problem(text: str) -> str | None:
    return None if _LOCALE.match(text) else say("Enter a language such as en or de-CH.")


#: Looking for them takes 20 ms.
_time_zones = cache(available_timezones)


def _zone_problem(text: str) -> str | None:
    return None if text in _time_zones() else say("Enter a time zone such as Europe/Berlin.")


def _birth_date_problem(text: str) -> str | None:
    if _BIRTH_DATE.match(text):
        return None
    try:
        date.fromisoformat(text)
    except ValueError:
        return say("Enter a date such as 1990-12-31.")
    return None


def _scope_problem(text: str) -> str | None:
    # The characters of RFC 6749 §3.3.
    if len(text) <= _SCOPE_LENGTH and all(c in " !" or "#" <= c <= "[" or "]" <= c <= "~" for c in text):
        return None
    return say("Enter scopes with a space in between, such as openid profile.")


def _unless_empty(problem: Callable[[str], str | None]) -> AfterValidator:
    return _rule(lambda text: problem(text) if text else None)


Email = Annotated[str, _rule(_email_problem)]
OptionalEmail = Annotated[str, _unless_empty(_email_problem)]
OptionalText = Annotated[str, _rule(_text_problem)]
OptionalLines = Annotated[str, _rule(_lines_problem)]
Phone = Annotated[str, _unless_empty(_phone_problem)]
WebAddress = Annotated[str, _unless_empty(_web_address_problem)]
Locale = Annotated[str, _unless_empty(_locale_problem)]
ZoneInfo = Annotated[str, _unless_empty(_zone_problem)]
BirthDate = Annotated[str, _unless_empty(_birth_date_problem)]
Name = Annotated[str, _rule(name_problem)]
UserName = Annotated[str, _rule(user_name_problem)]
Domain = Annotated[str, _rule(domain_problem)]
ScopeWords = Annotated[str, _rule(_scope_problem)]
Description = Annotated[str, _rule(_description_problem)]
TokenLifetime = Annotated[timedelta, AfterValidator(_lifetime)]
Moment = Annotated[AwareDatetime, BeforeValidator(_rfc_3339), AfterValidator(_whole_seconds)]
#: A moment, or "never", which is decoded into NEVER.
Expiration = Annotated[
    Moment,
    WrapValidator(_or_never),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "const": NEVER_WORD}]}),
]

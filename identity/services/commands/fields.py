"""Field types that several commands share."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

from identity.domain.applications import LONGEST_TOKEN_LIFETIME
from identity.domain.names import domain_problem, is_printable, name_problem, user_name_problem

DESCRIPTION_LENGTH = 2000

#: Date and time (RFC 3339 §5.6); a missing zone is complained about by its own sentence.
_RFC_3339 = re.compile(r"\s*\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?\s*\Z")


def _rule(problem: Callable[[str], str | None]) -> AfterValidator:
    def check(value: str) -> str:
        sentence = problem(value)
        if sentence is not None:
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


def _description_problem(text: str) -> str | None:
    if len(text) > DESCRIPTION_LENGTH:
        return f"Use at most {DESCRIPTION_LENGTH} characters."
    return None if is_printable(text.replace("\n", " ")) else "Use printable characters only."


def _rfc_3339(value: object) -> object:
    """The library would also read numbers, as seconds or milliseconds since 1970."""
    if not isinstance(value, datetime) and not (isinstance(value, str) and _RFC_3339.match(value)):
        raise ValueError("Enter a moment such as 2027-01-31T23:59:59Z.")
    return value


def _whole_seconds(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


def _lifetime(span: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= span <= LONGEST_TOKEN_LIFETIME:
        raise ValueError("Choose between 1 second and 12 hours.")
    return span


Name = Annotated[str, _rule(name_problem)]
UserName = Annotated[str, _rule(user_name_problem)]
Domain = Annotated[str, _rule(domain_problem)]
Description = Annotated[str, _rule(_description_problem)]
TokenLifetime = Annotated[timedelta, AfterValidator(_lifetime)]
Moment = Annotated[AwareDatetime, BeforeValidator(_rfc_3339), AfterValidator(_whole_seconds)]

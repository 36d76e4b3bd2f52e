"""Field types of commands that are about no entity, or say more than its fields do."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, WithJsonSchema, WrapValidator

from identity.domain.expirations import NEVER, NEVER_WORD
from identity.domain.names import domain_problem, name_problem, user_name_problem
from identity.domain.projects import role_key_problem
from identity.domain.rules import email_problem, phone_problem, scope_problem, unless_empty
from identity.domain.words import say
from identity.services.commands.derived import checked

#: Date and time (RFC 3339 §5.6); a missing zone is complained about by its own sentence.
_RFC_3339 = re.compile(r"\s*\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?\s*\Z")


_NO_MOMENT = say("Enter a moment such as 2027-01-31T23:59:59Z.")


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


Email = Annotated[str, checked(email_problem)]
OptionalEmail = Annotated[str, checked(unless_empty(email_problem))]
OptionalPhone = Annotated[str, checked(unless_empty(phone_problem))]
Name = Annotated[str, checked(name_problem)]
UserName = Annotated[str, checked(user_name_problem)]
Domain = Annotated[str, checked(domain_problem)]
RoleKey = Annotated[str, checked(role_key_problem)]
ScopeWords = Annotated[str, checked(scope_problem)]
Moment = Annotated[AwareDatetime, BeforeValidator(_rfc_3339), AfterValidator(_whole_seconds)]
#: A moment, or "never", which is decoded into NEVER.
Expiration = Annotated[
    Moment,
    WrapValidator(_or_never),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "const": NEVER_WORD}]}),
]

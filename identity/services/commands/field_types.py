"""Field types of commands that no entity declares, or that extend an entity's field."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, WithJsonSchema, WrapValidator

from identity.domain.expirations import NEVER, NEVER_TEXT
from identity.domain.group_mappings import claim_path_error, claim_value_error
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, domain_name_error, user_name_error
from identity.domain.projects import role_key_error
from identity.domain.validators import allow_empty, email_problem, phone_problem, scope_problem
from identity.services.commands.entity_fields import field_validator

#: Date and time (RFC 3339 §5.6); a missing zone has its own message.
_RFC_3339 = re.compile(r"\s*\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?\s*\Z")


_NO_MOMENT = gettext_lazy("Enter a date and time such as 2027-01-31T23:59:59Z.")


def _rfc_3339(value: object) -> object:
    """pydantic would also accept numbers, as seconds or milliseconds since 1970."""
    if not isinstance(value, datetime) and not (isinstance(value, str) and _RFC_3339.match(value)):
        raise ValueError(_NO_MOMENT)
    return value


def _or_never(value: object, moment: Callable[[object], datetime]) -> datetime:
    return NEVER if value == NEVER_TEXT else moment(value)


def _whole_seconds(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        # In UTC it is before the year 1 or after the year 9999.
        raise ValueError(_NO_MOMENT) from None


Email = Annotated[str, field_validator(email_problem)]
OptionalEmail = Annotated[str, field_validator(allow_empty(email_problem))]
OptionalPhone = Annotated[str, field_validator(allow_empty(phone_problem))]
Name = Annotated[str, field_validator(display_name_error)]
OptionalName = Annotated[str, field_validator(allow_empty(display_name_error))]
UserName = Annotated[str, field_validator(user_name_error)]
Domain = Annotated[str, field_validator(domain_name_error)]
RoleKey = Annotated[str, field_validator(role_key_error)]
ClaimPath = Annotated[str, field_validator(claim_path_error)]
ClaimValue = Annotated[str, field_validator(claim_value_error)]
ScopeString = Annotated[str, field_validator(scope_problem)]
Timestamp = Annotated[AwareDatetime, BeforeValidator(_rfc_3339), AfterValidator(_whole_seconds)]
#: A time, or "never", which is decoded into NEVER.
Expiration = Annotated[
    Timestamp,
    WrapValidator(_or_never),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "const": NEVER_TEXT}]}),
]

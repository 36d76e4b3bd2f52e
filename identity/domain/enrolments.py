"""Factors that a user has enrolled besides the password."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from identity.domain.records import Record

#: The kind of the records that enrolments are stored as.
FACTOR_RECORD_KIND = "factor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """An enrolled factor of a user, such as an authenticator app or a passkey. ``name`` is the user's label. ``value``
    belongs to the factor and is never displayed. ``record`` identifies its storage record."""

    id: str
    factor: str
    user_id: str
    name: str
    added_at: datetime
    last_used_at: datetime | None = None
    value: Mapping[str, Any] = field(default_factory=dict, repr=False)
    record: Record = field(repr=False, compare=False)

"""Enrolment: what a person has set up to prove who they are by, besides a password."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from identity.domain.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """One thing that a factor knows of a person: an authenticator app, a passkey.

    ``name`` is what they call it. ``value`` is the factor's own, and shown to nobody. ``record`` is where it is kept.
    """

    id: str
    factor: str
    user_id: str
    name: str
    added_at: datetime
    last_used_at: datetime | None = None
    value: Mapping[str, Any] = field(default_factory=dict, repr=False)
    record: Record = field(repr=False, compare=False)

"""Consent: what a person has agreed that an application gets."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """All scopes that a person has agreed to for one application; ``given_at`` is when they did so last."""

    user_id: str
    application_id: str
    scope: tuple[str, ...]
    given_at: datetime

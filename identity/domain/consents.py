"""Consents that users have given to applications."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """All scopes that a user has granted to an application; ``given_at`` is the last time."""

    user_id: str
    application_id: str
    scope: tuple[str, ...]
    given_at: datetime

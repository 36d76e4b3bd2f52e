"""Organization: who owns users and projects."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.search import search_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """A tenant. ``primary_domain`` is unique in the instance and part of every login name.

    ``registration`` says whether people may make an account of it for themselves.
    """

    id: str
    name: str
    primary_domain: str
    created_at: datetime
    changed_at: datetime
    registration: bool = False
    active: bool = True
    version: int = 1

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name, self.primary_domain)

"""Legal holds: who or what is not to go, as long as somebody says so."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from identity.domain.rules import description_problem
from identity.domain.words import say

#: In place of an id: everything there is.
EVERYTHING = "*"


class Held(StrEnum):
    """What can be held."""

    USER = "user"
    ORGANIZATION = "organization"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold: on what, since when, and why.

    ``held`` is the id of a person or an organization, or EVERYTHING; ``organization_id`` that of the organization, or
    of the person's.
    """

    id: str
    held: str
    organization_id: str | None
    since: datetime
    reason: str

    @property
    def kind(self) -> Held:
        """What is held."""
        if self.organization_id is None:
            return Held.INSTANCE
        return Held.ORGANIZATION if self.held == self.organization_id else Held.USER


def reason_problem(text: str) -> str | None:
    """What is wrong with a reason: a paragraph."""
    return description_problem(text) if text else say("Say why.")

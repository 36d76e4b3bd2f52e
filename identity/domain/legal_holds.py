"""Legal holds: protection of users and organizations against deletion."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from identity.domain.messages import gettext_lazy
from identity.domain.validators import description_problem

#: In place of an id: everything.
ALL_TARGETS = "*"


class LegalHoldKind(StrEnum):
    USER = "user"
    ORGANIZATION = "organization"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalHold:
    """A legal hold: its target, since when, and why. ``target_id`` is the id of a user or an organization, or
    ALL_TARGETS; ``organization_id`` is the organization, or that of the user."""

    id: str
    target_id: str
    organization_id: str | None
    since: datetime
    reason: str

    @property
    def kind(self) -> LegalHoldKind:
        if self.organization_id is None:
            return LegalHoldKind.INSTANCE
        return LegalHoldKind.ORGANIZATION if self.target_id == self.organization_id else LegalHoldKind.USER


def reason_error(text: str) -> str | None:
    """What is wrong with a reason, which must be a paragraph of text."""
    return description_problem(text) if text else gettext_lazy("Give a reason.")

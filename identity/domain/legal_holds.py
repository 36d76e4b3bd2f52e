"""Legal holds: who or what is not to go, as long as somebody says so."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from identity.domain.messages import gettext_lazy
from identity.domain.validators import description_problem

#: In place of an id: everything there is.
ALL_TARGETS = "*"


class LegalHoldKind(StrEnum):
    """What can be held."""

    USER = "user"
    ORGANIZATION = "organization"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalHold:
    """One hold: on what, since when, and why.

    ``target_id`` is the id of a person or an organization, or EVERYTHING; ``organization_id`` that of the organization,
    or of the person's.
    """

    id: str
    target_id: str
    organization_id: str | None
    since: datetime
    reason: str

    @property
    def kind(self) -> LegalHoldKind:
        """What is held."""
        if self.organization_id is None:
            return LegalHoldKind.INSTANCE
        return LegalHoldKind.ORGANIZATION if self.target_id == self.organization_id else LegalHoldKind.USER


def reason_error(text: str) -> str | None:
    """What is wrong with a reason: a paragraph."""
    return description_problem(text) if text else gettext_lazy("Say why.")

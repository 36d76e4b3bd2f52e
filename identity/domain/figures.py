"""Figures: what is counted per organization and day."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum

#: In place of an organization's id: the whole instance, including what belongs to no organization.
WHOLE_INSTANCE = ""


class FigureKind(StrEnum):
    """What is counted. The last three are levels: the number of people at the last count of the day. ACTIVE_PEOPLE
    signed in within ACTIVE_DAYS days."""

    SIGN_INS = "sign_ins"
    REFUSED_SIGN_INS = "refused_sign_ins"
    NEW_PEOPLE = "new_people"
    TOKENS = "tokens"
    PEOPLE = "people"
    ACTIVE_PEOPLE = "active_people"
    PROTECTED_PEOPLE = "people_with_second_factor"


ACTIVE_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class FigureKey:
    """What a number is about. ``organization_id`` may be WHOLE_INSTANCE. ``object_id`` is the application or service
    user that got tokens, and otherwise empty. Days are UTC."""

    organization_id: str
    kind: FigureKind
    day: date
    object_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleCount:
    """The people of an organization who are active, those of them who signed in lately, and those with a factor besides
    the password."""

    organization_id: str
    people: int
    active: int
    protected: int


def utc_day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()

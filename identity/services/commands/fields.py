"""Field types that several commands share."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

from identity.domain.names import domain_problem, is_printable, name_problem, user_name_problem

DESCRIPTION_LENGTH = 2000


def _rule(problem: Callable[[str], str | None]) -> AfterValidator:
    def check(value: str) -> str:
        sentence = problem(value)
        if sentence is not None:
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


def _description_problem(text: str) -> str | None:
    if len(text) > DESCRIPTION_LENGTH:
        return f"Use at most {DESCRIPTION_LENGTH} characters."
    return None if is_printable(text.replace("\n", " ")) else "Use printable characters only."


def _whole_seconds(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


Name = Annotated[str, _rule(name_problem)]
UserName = Annotated[str, _rule(user_name_problem)]
Domain = Annotated[str, _rule(domain_problem)]
Description = Annotated[str, _rule(_description_problem)]
Moment = Annotated[AwareDatetime, AfterValidator(_whole_seconds)]

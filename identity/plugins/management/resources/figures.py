"""Figures: sign-ins, refusals, new people and tokens per day."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field

from identity.domain.applications import Application
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE, ORGANIZATION
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation
from identity.services.commands import Command
from identity.services.figures import MAX_DAYS


class DailyFiguresRepresentation(Representation):
    """The figures of one day in UTC. `people` and the members after it are null on days on which people were not
    counted. `active_people` signed in within 30 days."""

    day: date
    sign_ins: int
    refused_sign_ins: int
    new_people: int
    tokens: int
    people: int | None
    active_people: int | None
    people_with_second_factor: int | None


class ClientTokensRepresentation(Representation):
    """How often an application or a service user got tokens."""

    client_kind: Literal["application", "service_user"]
    client_id: str
    name: str
    tokens: int


class FiguresRepresentation(Representation):
    """The figures of each day, oldest first, and the clients that got the most tokens in these days, at most 100."""

    has_volatile_members = True

    days: list[DailyFiguresRepresentation]
    clients: list[ClientTokensRepresentation]


class FigurePeriod(Command):
    """How many days, today included."""

    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30


def _represent(call: OperationCall[Any], organization_id: str | None) -> FiguresRepresentation:
    days, figures = call.filters_as(FigurePeriod).days, call.services.figures
    return FiguresRepresentation(
        days=[DailyFiguresRepresentation.from_value(item) for item in figures.list_daily(organization_id, days)],
        clients=[
            ClientTokensRepresentation.from_value(
                item, client_kind="application" if isinstance(item.client, Application) else "service_user"
            )
            for item in figures.list_tokens_by_client(organization_id, days, principal=call.principal)
        ],
    )


_FIGURES = ApiResource[None]("figure", FiguresRepresentation)
_DESCRIPTION = "Figures are up to ten seconds old, numbers of people a few minutes. They are kept for 400 days."

OPERATIONS = (
    _FIGURES.get(
        ORGANIZATION / "figures",
        "Shows what happened per day in an organization.",
        lambda call: _represent(call, call.entity.id),
        name="show_organization_figures",
        permission="organization.read",
        filters=FigurePeriod,
        description=_DESCRIPTION,
    ),
    _FIGURES.get(
        INSTANCE / "instance/figures",
        "Shows what happened per day in the whole instance.",
        lambda call: _represent(call, None),
        name="show_instance_figures",
        permission="instance.read",
        filters=FigurePeriod,
        description=_DESCRIPTION,
    ),
)

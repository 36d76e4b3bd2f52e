"""The operation of the management API with which a manager awards a badge."""

from badges.records import Badges
from identity.api.entities import HumanUser
from identity.plugins.management.api import (
    Command,
    Operation,
    OperationCall,
    OperationGroup,
    Representation,
    user_context,
)


class GiveBadge(Command):
    """The text of the badge."""

    text: str


class BadgeRepresentation(Representation):
    """The badge of a person."""

    text: str


def badge_operations(badges: Badges) -> OperationGroup:
    """``POST /users/{user}/badge``."""

    def give(call: OperationCall[HumanUser], command: GiveBadge) -> BadgeRepresentation:
        return BadgeRepresentation(text=badges.give(call.services, call.entity.id, command.text))

    operation = Operation(
        name="give_badge",
        method="POST",
        path="/users/{user}/badge",
        summary="Gives a badge to a person, in place of the one before.",
        permission="user.write",
        context_factory=user_context,
        handler=give,
        command=GiveBadge,
        representation=BadgeRepresentation,
    )
    return OperationGroup("Badges", "What people wear.", (operation,))

"""Changes to managers."""

from typing import Annotated

from pydantic import AfterValidator

from identity.domain.words import say
from identity.services.commands import Command


def _at_least_one(roles: frozenset[str]) -> frozenset[str]:
    if not roles:
        raise ValueError(say("Choose at least one role."))
    return roles


Roles = Annotated[frozenset[str], AfterValidator(_at_least_one)]


class AddManager(Command):
    """Give a user manager roles at a resource."""

    user_id: str
    roles: Roles


class ChangeManager(Command):
    """Replace the roles a manager holds."""

    roles: Roles

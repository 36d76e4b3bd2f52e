"""Commands that change managers."""

from typing import Annotated

from pydantic import AfterValidator

from identity.domain.messages import gettext_lazy
from identity.services.commands import Command


def _at_least_one(roles: frozenset[str]) -> frozenset[str]:
    if not roles:
        raise ValueError(gettext_lazy("Choose at least one role."))
    return roles


ManagerRoleNames = Annotated[frozenset[str], AfterValidator(_at_least_one)]


class AddManager(Command):
    """Grant a user manager roles at a resource."""

    user_id: str
    roles: ManagerRoleNames


class ChangeManager(Command):
    """Replace the roles of a manager."""

    roles: ManagerRoleNames

"""Commands that change managers."""

from typing import Annotated

from pydantic import AfterValidator

from identity.domain.messages import gettext_lazy
from identity.services.commands import Command
from identity.services.commands.field_types import Timestamp


def _at_least_one(roles: frozenset[str]) -> frozenset[str]:
    if not roles:
        raise ValueError(gettext_lazy("Choose at least one role."))
    return roles


ManagerRoleNames = Annotated[frozenset[str], AfterValidator(_at_least_one)]


class AddManager(Command):
    """Grant a user manager roles at a resource."""

    user_id: str
    roles: ManagerRoleNames
    until: Timestamp | None = None


class ChangeManager(Command):
    """Replace the roles of a manager, or their end, as far as they are set."""

    roles: ManagerRoleNames | None = None
    until: Timestamp | None = None

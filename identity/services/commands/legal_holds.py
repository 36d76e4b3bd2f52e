"""Placing legal holds."""

from typing import Annotated

from identity.domain.legal_holds import Held, reason_problem
from identity.services.commands import Command
from identity.services.commands.derived import checked


class PlaceLegalHold(Command):
    """Hold a person or an organization by its id, or with `instance` and no id everything there is."""

    kind: Held
    held_id: str | None = None
    reason: Annotated[str, checked(reason_problem)]

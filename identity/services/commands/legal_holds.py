"""Commands that place legal holds."""

from typing import Annotated

from identity.domain.legal_holds import LegalHoldKind, reason_error
from identity.services.commands import Command
from identity.services.commands.entity_fields import field_validator


class CreateLegalHold(Command):
    """Place a hold on a user or an organization by its id, or with `instance` and no id on the whole instance."""

    kind: LegalHoldKind
    held_id: str | None = None
    reason: Annotated[str, field_validator(reason_error)]

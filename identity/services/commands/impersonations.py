"""Commands that sign a manager in as a person."""

from typing import Annotated

from identity.domain.sessions import impersonation_reason_problem
from identity.services.commands import Command
from identity.services.commands.entity_fields import field_validator


class StartImpersonation(Command):
    """Sign in as a person, for a reason that they get by mail."""

    reason: Annotated[str, field_validator(impersonation_reason_problem)]

"""Commands that change the mail server."""

from typing import Annotated

from pydantic import Field

from identity.domain.mail_server import MailServer
from identity.domain.validators import text_problem
from identity.services.commands import Command
from identity.services.commands.entity_fields import field_validator, with_update_fields

_Password = Annotated[str, field_validator(text_problem)]


@with_update_fields(MailServer)
class ChangeMailServer(Command):
    """Change the values that are set. A password that is set replaces the stored one. It belongs to host, port,
    encryption and user: if one of them changes without a new password, it is deleted."""

    password: _Password | None = Field(default=None, repr=False)

"""Commands that change the texts of mails."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from identity.domain.mail_texts import MailKind
from identity.services.commands import Command

_Text = Annotated[str, Field(max_length=5000)]


class OwnMailText(Command):
    """Subject, text before and text after that of the service; what is empty is the service's own."""

    subject: _Text = ""
    intro: _Text = ""
    closing: _Text = ""


class ChangeMailTexts(Command):
    """Replace texts by mail and language; others stay. An empty text, or null, brings the service's own back."""

    texts: Mapping[MailKind, Mapping[Literal["en", "de", "fr", "es", "it", "zh"], OwnMailText | None]]

"""Commands that change branding."""

from typing import Annotated

from pydantic import Field

from identity.domain.branding import Branding
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_update_fields


@with_update_fields(Branding)
class ChangeBranding(Command):
    """Change the fields that are set; an empty one inherits from the organization or the service.

    ``logo`` is a PNG, WebP or SVG picture in base64, ``logo_dark`` one for dark mode."""

    logo: Annotated[str, Field(max_length=1_000_000)] | None = None
    logo_dark: Annotated[str, Field(max_length=1_000_000)] | None = None

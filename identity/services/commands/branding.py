"""Changes to how pages and mails look, and what they say."""

from typing import Annotated

from pydantic import Field

from identity.domain.branding import Branding
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_update_fields


@with_update_fields(Branding)
class ChangeBranding(Command):
    """Change what is given; what is given empty is the organization's again, or else the service's.

    ``logo`` is a PNG, WebP or SVG picture in base64, ``logo_dark`` one for dark pages.
    """

    logo: Annotated[str, Field(max_length=1_000_000)] | None = None
    logo_dark: Annotated[str, Field(max_length=1_000_000)] | None = None

"""Commands that change webhooks."""

from typing import Annotated

from pydantic import Field

from identity.crypto.webhook_signatures import webhook_secret_error
from identity.domain.messages import gettext_lazy
from identity.domain.webhooks import Webhook
from identity.services.commands import Command
from identity.services.commands.entity_fields import field_validator, with_create_fields, with_update_fields
from identity.services.commands.field_types import Name

#: How long a rotated secret can stay valid.
MAX_OVERLAP_HOURS = 7 * 24


def _overlap_error(hours: int) -> str | None:
    if 0 <= hours <= MAX_OVERLAP_HOURS:
        return None
    return gettext_lazy("Enter a number of hours from 0 to {number}.", number=MAX_OVERLAP_HOURS)


#: A signing secret that the caller chose; it is write-only.
WebhookSecretText = Annotated[str, field_validator(webhook_secret_error)]


@with_create_fields(Webhook)
class CreateWebhook(Command):
    """Add a receiver of events."""

    name: Name


@with_update_fields(Webhook)
class ChangeWebhook(Command):
    """Change the fields that are set."""


class RotateWebhookSecret(Command):
    """Replace the signing secret. For ``overlap_hours`` messages are also signed with the one before."""

    overlap_hours: Annotated[int, field_validator(_overlap_error)] = Field(default=24, strict=True)

"""Fields of webhooks."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.webhooks import Webhook
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

WEBHOOK_FIELDS = labelled_fields(
    Webhook,
    {
        "name": FieldLabel(_("Name"), _("Only shown here. For example {example}", example="HR system")),
        "url": FieldLabel(
            _("Address"),
            _(
                "Messages are sent there by POST. For example {example}. Put no secret into it: the signature proves"
                " who sends.",
                example="https://hooks.example.com/identity",
            ),
        ),
        "events": FieldLabel(
            _("Events"),
            _(
                "Names or patterns, one per line. For example {example}. A * alone stands for all events.",
                example="user.created, user.*, *.removed",
            ),
        ),
    },
)

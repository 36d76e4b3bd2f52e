"""Fields of service users."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.users import ServiceUser, TokenFormat
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

ACCESS_TOKEN_TYPE_LABEL = FieldLabel(
    _("Access token type"),
    _("An opaque token can be checked only by introspection. A JWT can also be checked locally."),
    value_labels={TokenFormat.OPAQUE: _("Opaque"), TokenFormat.JWT: _("JWT")},
)

SERVICE_USER_FIELDS = labelled_fields(
    ServiceUser,
    {
        "user_name": FieldLabel(
            _("User name"), _("Unique in the organization, without spaces. For example {example}", example="ci-runner")
        ),
        "display_name": FieldLabel(
            _("Display name"), _("Shown in lists and in audit events."), required_message=_("Enter a display name.")
        ),
        "description": FieldLabel(_("Description"), _("What the program does, and whom to ask about it.")),
        "access_token_type": ACCESS_TOKEN_TYPE_LABEL,
    },
)

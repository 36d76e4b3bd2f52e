"""Fields of service users."""

from identity.domain.messages import gettext_lazy
from identity.domain.users import ServiceUser, TokenFormat
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

ACCESS_TOKEN_TYPE_LABEL = FieldLabel(
    gettext_lazy("Access token type"),
    gettext_lazy("An opaque token can be checked only by introspection. A JWT can also be checked locally."),
    value_labels={TokenFormat.OPAQUE: gettext_lazy("Opaque"), TokenFormat.JWT: gettext_lazy("JWT")},
)

SERVICE_USER_FIELDS = labelled_fields(
    ServiceUser,
    {
        "user_name": FieldLabel(
            gettext_lazy("User name"),
            gettext_lazy("Unique in the organization, without spaces. For example {example}", example="ci-runner"),
        ),
        "display_name": FieldLabel(
            gettext_lazy("Display name"),
            gettext_lazy("Shown in lists and in audit events."),
            required_message=gettext_lazy("Enter a display name."),
        ),
        "description": FieldLabel(
            gettext_lazy("Description"), gettext_lazy("What the program does, and whom to ask about it.")
        ),
        "access_token_type": ACCESS_TOKEN_TYPE_LABEL,
    },
)

"""Fields of personal access tokens."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

PERSONAL_ACCESS_TOKEN_FIELDS = labelled_fields(
    PersonalAccessToken,
    {
        "name": FieldLabel(
            _("Name"),
            _("What the token is for. For example {example}", example="Nightly backup"),
            required_message=_("Enter a name that says what the token is for."),
        )
    },
)

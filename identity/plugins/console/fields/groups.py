"""Fields of groups."""

from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

GROUP_FIELDS = labelled_fields(
    Group,
    {
        "name": FieldLabel(
            _("Name"),
            _("Unique in the organization. For example {example}", example="Sales"),
            required_message=_("Enter a name."),
        ),
        "description": FieldLabel(_("Description"), _("Who belongs to the group, and what for.")),
    },
)

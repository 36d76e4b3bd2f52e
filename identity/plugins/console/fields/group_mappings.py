"""Fields of group mappings."""

from identity.domain.group_mappings import GroupMapping
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

CLAIM_LABEL = FieldLabel(
    _("Claim"),
    _(
        "A claim that the provider controls, or a path into nested objects. For example {example}",
        example="groups, realm_access.roles",
    ),
    required_message=_("Enter the name of a claim, such as {example}.", example="groups"),
)

GROUP_MAPPING_FIELDS = labelled_fields(
    GroupMapping,
    {
        "claim": CLAIM_LABEL,
        "value": FieldLabel(
            _("Value"),
            _("The claim must be this text, or a list that contains it."),
            required_message=_("Enter a value."),
        ),
        "group_id": FieldLabel(_("Group"), required_message=_("Choose a group.")),
    },
)

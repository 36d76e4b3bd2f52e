"""Fields of attribute mappings."""

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields
from identity.plugins.console.fields.group_mappings import CLAIM_LABEL

ATTRIBUTE_MAPPING_FIELDS = labelled_fields(
    AttributeMapping,
    {
        "claim": CLAIM_LABEL,
        "attribute_id": FieldLabel(
            _("Attribute"),
            _("A value that does not fit its type is ignored."),
            required_message=_("Choose an attribute."),
        ),
    },
)

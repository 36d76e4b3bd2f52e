"""Fields of attributes that organizations define for their people."""

from identity.domain.attributes import AttributeAccess, AttributeDefinition, AttributeType
from identity.domain.messages import gettext_lazy as _
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

_ACCESS = {AttributeAccess.MANAGERS: _("Managers"), AttributeAccess.PERSON: _("Managers and the person")}
_TOKENS = _("In tokens")

ATTRIBUTE_FIELDS = labelled_fields(
    AttributeDefinition,
    {
        "label": FieldLabel(
            _("Label"),
            _("The name of the field on pages. For example {example}", example="Department"),
            required_message=_("Enter a label."),
        ),
        "key": FieldLabel(
            _("Key"),
            _(
                "The name in the API, in documents and in tokens. It cannot be changed later. For example {example}",
                example="department",
            ),
            required_message=_("Enter a key."),
        ),
        "hint": FieldLabel(_("Hint"), _("A sentence that explains what to enter.")),
        "type": FieldLabel(
            _("Type"),
            value_labels={
                AttributeType.TEXT: _("Text"),
                AttributeType.NUMBER: _("Number"),
                AttributeType.DATE: _("Date"),
                AttributeType.CHOICE: _("Choice from a list"),
                AttributeType.BOOLEAN: _("Yes or no"),
            },
        ),
        "choices": FieldLabel(_("Choices"), _("For the type “Choice from a list”, one per line.")),
        "required": FieldLabel(
            _("Required"), _("New users need a value, and it cannot be emptied. Existing users stay as they are.")
        ),
        "visible_to": FieldLabel(_("Seen by"), value_labels=_ACCESS),
        "editable_by": FieldLabel(_("Changed by"), value_labels=_ACCESS),
        "confidential": FieldLabel(
            _("Confidential"), _("The audit trail says that the value changed, and does not contain it.")
        ),
        "in_tokens": FieldLabel(
            _("Release to applications"),
            _("Applications get the value with the scope {scope}.", scope="urn:service:iam:user:metadata"),
            section=_TOKENS,
        ),
        "claim": FieldLabel(
            _("Claim"),
            _("A further name of the value in tokens, for applications that expect one. Leave empty for none."),
            section=_TOKENS,
        ),
    },
)

"""Commands that define attributes, and attributes as members of other commands."""

from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition, attribute_key_error
from identity.domain.messages import gettext_lazy
from identity.services.commands import Command
from identity.services.commands.entity_fields import field_validator, with_create_fields, with_update_fields
from identity.services.commands.field_types import ClaimPath, Name


def _plain_value(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(gettext_lazy("Each attribute is a text, a number, true, false or null."))


_AttributeInput = Annotated[
    Any, AfterValidator(_plain_value), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
#: Values by key; null empties one. The organization's definitions validate them.
AttributeValues = dict[str, _AttributeInput]


@with_create_fields(AttributeDefinition)
class CreateAttribute(Command):
    """Define an attribute of an organization's people."""

    key: Annotated[str, field_validator(attribute_key_error)]
    label: Name


@with_update_fields(AttributeDefinition)
class ChangeAttribute(Command):
    """Change the fields that are set; the key stays."""


class AddAttributeMapping(Command):
    """Store the value of a claim of the identity provider in an attribute of the people who sign in with it."""

    claim: ClaimPath
    attribute_id: str


@with_update_fields(AttributeMapping)
class ChangeAttributeMapping(Command):
    """Change the fields that are set. From then on the mapping acts with the rights of the caller."""

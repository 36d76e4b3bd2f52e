"""Attribute mappings: who saves them, and what they do at each sign-in.

A mapping changes an attribute of people without a manager, so it acts with the rights that its last editor has at that
moment, never as the operator. Saving one takes the rights to change the identity provider, or control of the
directory, and to change the people of its organization. People of other organizations are not affected.

The claim wins at every sign-in. Without the claim the value stays.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from identity.crypto.secrets import derive_id
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition, AttributeValue, encode_attribute, parse_attribute
from identity.domain.errors import Invalid
from identity.domain.group_mappings import find_claim
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser, Subject
from identity.services.access_control import Principal
from identity.services.attributes import AttributeService
from identity.services.commands.attributes import AddAttributeMapping, ChangeAttributeMapping
from identity.services.provider_mappings import MappingSource, ProviderMappingService, Refusal, source_fields
from identity.services.users import UserService


@dataclass(eq=False, repr=False)
class AttributeMappingService(ProviderMappingService[AttributeMapping]):
    """Claims of identity providers that are values of attributes, one per provider and attribute."""

    kind = "attribute_mapping"
    store = "attribute_mappings"
    duplicate_messages: ClassVar = {"attribute_id": gettext_lazy("This attribute is mapped already.")}

    _attributes: AttributeService
    _users: UserService

    def add(self, source: MappingSource, command: AddAttributeMapping, *, principal: Principal) -> AttributeMapping:
        """Raises NotFound; Invalid for an attribute of another organization, or one that is mapped; Denied without the
        rights over provider and people."""
        definition = self._storage.attributes.find(command.attribute_id)
        if definition is None or definition.organization_id != source.organization_id:
            raise Invalid({"attribute_id": gettext_lazy("There is no such attribute in this organization.")})
        mapping = self._new_entity(
            AttributeMapping,
            command,
            **source_fields(source),
            editor_id=principal.id,
        )
        self._require_saving(mapping, principal)
        self._add("attribute_mapping.added", mapping, mapping.organization_id, parent=("attribute", definition.id))
        return mapping

    def change(
        self,
        mapping_id: str,
        command: ChangeAttributeMapping,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> AttributeMapping:
        """Change the claim, or only make the principal the editor. Raises NotFound, Invalid, Denied, Conflict."""
        before = self.get(mapping_id)
        self._require_saving(before, principal)
        after = self._next_version(before, command, expected_version=expected_version, editor_id=principal.id)
        return self._update("attribute_mapping.changed", before, after)

    def apply(self, subject: Subject, source: MappingSource, claims: Mapping[str, Any]) -> Subject:
        """Store the values in these claims, which must all come from the source, as those of the person who signs in
        with it. What does not fit the attribute is left out. Returns the changed person."""
        mappings, user = self.list_of_source(source), subject.user
        if not mappings or subject.organization.id != source.organization_id or not isinstance(user, HumanUser):
            return subject
        definitions = {item.id: item for item in self._attributes.list_definitions(user.organization_id)}
        present = self._attributes.user_values([user])[user.id]
        values: dict[str, AttributeValue] = {}
        refused: list[Refusal[AttributeMapping]] = []
        for mapping in mappings:
            found, definition = find_claim(claims, mapping.claim), definitions.get(mapping.attribute_id)
            if found is None or definition is None:
                continue
            try:
                value = claim_as_attribute(definition, found)
            except ValueError:
                cause = derive_id("claim", repr(found))
                refused.append(Refusal(mapping, "the value does not fit the attribute", cause))
                continue
            if value is None or present.get(definition.key) == value:
                continue
            reason = self.refusal_reason(mapping)
            if reason is None:
                values[definition.key] = value
            else:
                refused.append(Refusal(mapping, reason))
        with self._audit.acting_as(user.id):
            if values:
                user = self._users.change_attributes(user.id, values)
            self._record_refusals(subject, source, refused)
        return replace(subject, user=user)

    def _require_target(self, mapping: AttributeMapping, principal: Principal) -> None:
        """Raise Denied unless the principal may change people."""
        self._access.require(principal, "user.write", Resource.of_organization(mapping.organization_id))


def claim_as_attribute(definition: AttributeDefinition, found: object) -> AttributeValue | None:
    """The value of a claim as one of the attribute; None if it is empty. A list of one value is that value. Raises
    ValueError."""
    if isinstance(found, list) and len(found) == 1:
        [found] = found
    if isinstance(found, bool | int | float):
        found = json.dumps(found)
    if not isinstance(found, str):
        raise ValueError("neither a text, a number nor a boolean")
    value = parse_attribute(definition, found)
    encode_attribute(definition, value)
    return value

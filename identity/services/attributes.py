"""Attributes of people: what organizations define, and the values of each person."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from identity.domain.attributes import (
    MAX_ATTRIBUTES,
    AttributeDefinition,
    AttributeType,
    AttributeValue,
    attribute_fits,
    decode_attribute,
    encode_attribute,
)
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.base import translate_storage_errors
from identity.services.commands.attributes import ChangeAttribute, CreateAttribute
from identity.services.crud import EntityService

#: The member of commands, representations and documents that holds the values by key.
ATTRIBUTES_MEMBER = "attributes"


def attribute_path(key: str) -> str:
    """Where errors about an attribute's value are, and the member name of form fields."""
    return f"{ATTRIBUTES_MEMBER}.{key}"


#: Different values that a change of the type looks at.
_MAX_CHECKED_VALUES = 1000


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """New values of one person as stored, by the id of the definition, and what the audit event says about them."""

    stored: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, object] = field(default_factory=dict)


#: Changes nothing.
NO_ATTRIBUTE_CHANGE = AttributeChange()


@dataclass(eq=False, repr=False)
class AttributeService(EntityService[AttributeDefinition]):
    """Definitions, and values of people. Values change with the version of their user: the services of users call this
    one."""

    kind = "attribute"
    store = "attributes"
    duplicate_messages: ClassVar[Mapping[str, str]] = {
        "key": gettext_lazy("The organization already has an attribute with this key.")
    }

    # --- definitions -----------------------------------------------------------------------------------------------

    def list_definitions(self, organization_id: str) -> tuple[AttributeDefinition, ...]:
        """The organization's attributes by key."""
        return self._storage.attributes.list_definitions(organization_id)

    def create(
        self, organization_id: str, command: CreateAttribute, *, principal: Principal, id: str | None = None
    ) -> AttributeDefinition:
        """Raises NotFound; Invalid for a key or claim that is taken, and for too many attributes."""
        definition = self._new_entity(AttributeDefinition, command, id=id, organization_id=organization_id)
        existing = self._storage.attributes.list_definitions(organization_id, locked=True)
        if len(existing) >= MAX_ATTRIBUTES:
            raise Invalid({"key": gettext_lazy("An organization can have {n} attributes.", n=MAX_ATTRIBUTES)})
        definition = _normalized(definition, existing)
        self._add("attribute.created", definition, organization_id, parent=("organization", organization_id))
        return definition

    def change(
        self,
        definition_id: str,
        command: ChangeAttribute,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> AttributeDefinition:
        """Change the definition; values stay as they are. Raises NotFound, Conflict; Invalid if a value would not fit
        the new type or choices."""
        before = self.get(definition_id)
        existing = self._storage.attributes.list_definitions(before.organization_id, locked=True)
        after = self._next_version(before, command, expected_version=expected_version)
        after = _normalized(after, [item for item in existing if item.id != before.id])
        self._refuse_unfit_values(before, after)
        return self._update("attribute.changed", before, after)

    def count_values(self, definition_id: str) -> int:
        """The number of people with a value."""
        return self._storage.attributes.count_values(definition_id)

    def _refuse_unfit_values(self, before: AttributeDefinition, after: AttributeDefinition) -> None:
        removed = set(before.choices) - set(after.choices)
        if after.type is before.type is AttributeType.CHOICE and removed:
            count = self._storage.attributes.count_values(before.id, sorted(removed))
            if count:
                raise Invalid(
                    {
                        "choices": ngettext_lazy(
                            "{n} person has a choice that you removed: {names}. Change the value first.",
                            "{n} people have a choice that you removed: {names}. Change their values first.",
                            count,
                            names=", ".join(sorted(removed)),
                        )
                    }
                )
        if after.type is before.type:
            return
        values = self._storage.attributes.list_distinct_values(before.id, _MAX_CHECKED_VALUES + 1)
        if len(values) > _MAX_CHECKED_VALUES or not all(attribute_fits(after, value) for value in values):
            count = self.count_values(before.id)
            raise Invalid(
                {
                    "type": ngettext_lazy(
                        "{n} person has a value, and not every value fits this type.",
                        "{n} people have a value, and not every value fits this type.",
                        count,
                    )
                }
            )

    # --- values ----------------------------------------------------------------------------------------------------

    def user_values(self, users: Sequence[HumanUser]) -> Mapping[str, Mapping[str, AttributeValue]]:
        """The values of people of one organization by user id and key, in the order of the keys."""
        if not users:
            return {}
        definitions = self.list_definitions(users[0].organization_id)
        stored = self._storage.attributes.find_values([user.id for user in users]) if definitions else {}
        return {user.id: _decoded(definitions, stored.get(user.id, {})) for user in users}

    def prepare_change(
        self, user: HumanUser, values: Mapping[str, object] | None, *, by_person: bool = False
    ) -> AttributeChange:
        """Validate new values of a person; what is left out stays. ``by_person`` allows only what they may change
        themselves. Raises Invalid with a message at ``attributes.{key}`` for each wrong one."""
        if not values:
            return NO_ATTRIBUTE_CHANGE
        encoded = _encode(self.list_definitions(user.organization_id), values, by_person=by_person)
        before = self._storage.attributes.find_values([user.id]).get(user.id, {})
        return _describe_change(
            {item: text for item, text in encoded.items() if text != before.get(item.id, "")}, before
        )

    def prepare_creation(
        self,
        definitions: Sequence[AttributeDefinition],
        values: Mapping[str, object] | None,
        *,
        by_person: bool = False,
        is_complete: bool = True,
    ) -> AttributeChange:
        """Validate the values of a new person; ``is_complete`` refuses to leave out what is required. Raises Invalid as
        ``prepare_change`` does."""
        complete = dict(values or {})
        if is_complete:
            requested = (item for item in definitions if item.is_editable_by_person or not by_person)
            complete |= {item.key: None for item in requested if item.required and item.key not in complete}
        return _describe_creation(_encode(definitions, complete, by_person=by_person))

    def drop_unfit(
        self, definitions: Sequence[AttributeDefinition], values: Mapping[str, object], *, by_person: bool = False
    ) -> dict[str, object]:
        """Those of the values that the definitions accept now, for values that were accepted earlier."""
        try:
            _encode(definitions, values, by_person=by_person)
        except Invalid as refused:
            return {key: value for key, value in values.items() if attribute_path(key) not in refused.fields}
        return dict(values)

    def store_values(self, user_id: str, change: AttributeChange) -> None:
        """Store prepared values. Raises NotFound if the user or a definition is gone."""
        self.store_many({user_id: change})

    def store_many(self, changes: Mapping[str, AttributeChange]) -> None:
        """The same for several people, by user id."""
        stored = {user_id: change.stored for user_id, change in changes.items() if change.stored}
        if stored:
            with translate_storage_errors("attribute", ", ".join(stored)):
                self._storage.attributes.set_values(stored)


def _normalized(definition: AttributeDefinition, existing: Iterable[AttributeDefinition]) -> AttributeDefinition:
    """The definition without what its type does not use. Raises Invalid."""
    if definition.type is not AttributeType.CHOICE:
        definition = replace(definition, choices=())
    elif not definition.choices:
        raise Invalid({"choices": gettext_lazy("Enter at least one choice.")})
    if definition.is_editable_by_person is not (definition.editable_by == "person"):
        raise Invalid({"editable_by": gettext_lazy("People can only change what they see.")})
    if definition.claim and not definition.in_tokens:
        raise Invalid({"claim": gettext_lazy("Only attributes in tokens have a claim.")})
    if definition.claim and any(item.claim == definition.claim for item in existing):
        raise Invalid({"claim": gettext_lazy("Another attribute has this claim.")})
    return definition


def _encode(
    definitions: Iterable[AttributeDefinition], values: Mapping[str, object], *, by_person: bool
) -> dict[AttributeDefinition, str]:
    known = {item.key: item for item in definitions if item.is_visible_to_person or not by_person}
    encoded: dict[AttributeDefinition, str] = {}
    problems: dict[str, str] = {}
    for key, value in values.items():
        try:
            if key not in known:
                raise ValueError(gettext_lazy("This is not known here."))
            if by_person and not known[key].is_editable_by_person:
                raise ValueError(gettext_lazy("Only managers can change this."))
            text = encode_attribute(known[key], value)
            if known[key].required and not text:
                raise ValueError(gettext_lazy("This is required."))
            encoded[known[key]] = text
        except ValueError as refusal:
            problems[attribute_path(key)] = refusal.args[0]
    if problems:
        raise Invalid(problems)
    return encoded


def _describe_change(changed: Mapping[AttributeDefinition, str], before: Mapping[str, str]) -> AttributeChange:
    was = {item: before.get(item.id, "") for item in changed}
    public_values = {"before": _public_values(was), "after": _public_values(changed)}
    return _described(changed, public_values if public_values["after"] else None)


def _describe_creation(encoded: Mapping[AttributeDefinition, str]) -> AttributeChange:
    present = {item: text for item, text in encoded.items() if text}
    return _described(present, _public_values(present) or None)


def _described(changed: Mapping[AttributeDefinition, str], public_values: object) -> AttributeChange:
    """The change with the detail of its event, which names confidential attributes without their values."""
    confidential = sorted(item.key for item in changed if item.confidential)
    detail: dict[str, object] = {} if public_values is None else {ATTRIBUTES_MEMBER: public_values}
    if confidential:
        detail["confidential_attributes"] = confidential
    return AttributeChange({item.id: text for item, text in changed.items()}, detail)


def _public_values(values: Mapping[AttributeDefinition, str]) -> dict[str, AttributeValue | None]:
    return {item.key: decode_attribute(item, text) for item, text in values.items() if not item.confidential}


def _decoded(definitions: Iterable[AttributeDefinition], stored: Mapping[str, str]) -> dict[str, AttributeValue]:
    values = ((item.key, decode_attribute(item, stored[item.id])) for item in definitions if item.id in stored)
    return {key: value for key, value in values if value is not None}

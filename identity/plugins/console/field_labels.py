"""Labels of entity fields for forms and pages. The files in ``fields`` declare them, one file per entity."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from identity.domain.entity import EntityField, entity_fields
from identity.services.capabilities import Capabilities

#: Makes the choices of a field for a page: value, label and, for radio buttons, an explanation.
Options = Callable[[Any], Sequence[Sequence[object]]]
#: Whether a page has a field: False if it is for a feature that no listed plugin offers.
Condition = Callable[[Any], bool]


def always(page: Any) -> bool:
    """The condition of fields that need no plugin."""
    return True


def has_discovery_member(*names: str) -> Condition:
    """The condition of fields for what these members of the discovery document announce, or one of them."""
    return lambda page: any(page.discovery_document.get(name) for name in names)


def has_capability(offered: Callable[[Capabilities], object]) -> Condition:
    return lambda page: bool(offered(page.services.capabilities))


@dataclass(frozen=True)
class FieldLabel:
    """``section`` is the heading of the collapsible group of the form that holds the field, ``required_message`` the
    error for an empty required field. ``value_labels`` describe single values, ``options`` are choices that depend on
    the page. Without ``is_available`` neither forms nor pages have the field: see ``available_fields``.
    """

    label: str
    hint: str = ""
    _: KW_ONLY
    section: str = ""
    required_message: str = ""
    value_labels: Mapping[Any, str] = field(default_factory=dict)
    options: Options | None = None
    is_available: Condition = always


def available_fields(conditions: Mapping[str, Condition], page: Any, stored: Any) -> Collection[str]:
    """The names of the fields whose conditions hold. A value that was ``stored`` while a plugin was listed may still
    have an effect, such as a refusal, so all fields with the condition of such a field are available."""
    fields = {} if stored is None else entity_fields(type(stored))
    holding = {
        condition
        for name, condition in conditions.items()
        if condition(page) or (name in fields and getattr(stored, name) != fields[name].default)
    }
    return [name for name, condition in conditions.items() if condition in holding]


def labelled_fields(
    entity: type, labels: Mapping[str, FieldLabel], *, hidden: Collection[str] = ()
) -> Mapping[str, FieldLabel]:
    """The labels of the entity's settable fields by name, in the order of forms and pages, without ``hidden`` ones.

    A field without a label is named after itself and comes last, in the last section.
    """
    *_, section = "", *dict.fromkeys(label.section for label in labels.values() if label.section)
    unlabelled = {
        name: FieldLabel(name.replace("_", " ").capitalize(), section=section)
        for name, field in entity_fields(entity).items()
        if field.is_settable and name not in labels and name not in hidden
    }
    return {**labels, **unlabelled}


def labelled_values(entity: Any, labels: Mapping[str, FieldLabel]) -> Iterator[tuple[EntityField, str, Any]]:
    """Each field that the entity's type uses, its label, and its value or the label of that."""
    fields, kind = entity_fields(type(entity)), getattr(entity, "type", None)
    for name, label in labels.items():
        if fields[name].applies_to(kind):
            value = getattr(entity, name)
            yield fields[name], label.label, label.value_labels.get(value, value)

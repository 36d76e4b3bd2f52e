"""Labels of entity fields for forms and pages. The files in ``fields`` declare them, one file per entity."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from identity.domain.entity import EntityField, entity_fields

#: Makes the choices of a field for a page: value, label and, for radio buttons, an explanation.
Options = Callable[[Any], Sequence[Sequence[object]]]


@dataclass(frozen=True)
class FieldLabel:
    """``section`` is the heading of the collapsible group of the form that holds the field, ``required_message`` the
    error for an empty required field. ``value_labels`` describe single values, ``options`` are choices that depend on
    the page.
    """

    label: str
    hint: str = ""
    _: KW_ONLY
    section: str = ""
    required_message: str = ""
    value_labels: Mapping[Any, str] = field(default_factory=dict)
    options: Options | None = None


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

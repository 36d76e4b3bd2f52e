"""Field: what a form asks for, declared: its words, the macro that draws it, and how a stored value looks in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from inspect import unwrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from identity.domain.entity import Member, members
from identity.domain.names import domain_problem, user_name_problem
from identity.domain.projects import role_key_problem
from identity.domain.rules import description_problem, email_problem, locale_problem, phone_problem
from identity.pages.forms import Form, Value
from identity.pages.translation import LANGUAGE_NAMES

if TYPE_CHECKING:
    from identity.plugins.console.console_page import ConsolePage

#: The value of a ticked checkbox.
YES = "yes"
#: For names and addresses, which no browser is to mend.
LITERAL: Mapping[str, str] = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}

#: The options of a choice: value, words and, in groups of buttons, a sentence.
Options = Callable[[Any], Sequence[Sequence[object]]]


@dataclass(frozen=True)
class Field:
    """A line of text.

    ``called`` is what commands and things call it, if that is not ``name``. ``missing`` is said of it where it is empty
    and must not be. ``part`` is the heading under which it is folded away.
    """

    macro: ClassVar[str] = "field"
    several: ClassVar[bool] = False

    name: str
    label: str
    hint: str = ""
    _: KW_ONLY
    missing: str = ""
    required: bool = True
    autofocus: bool = False
    part: str = ""
    called: str = ""
    attributes: Mapping[str, object] = field(default_factory=lambda: {"autocomplete": "off"})

    @property
    def member(self) -> str:
        """The name in commands and things."""
        return self.called or self.name

    def shown(self, value: Any) -> Value:
        """What stands in the field for a stored value."""
        return "" if value is None else str(value)

    def typed(self, form: Form) -> object:
        """What was typed, as commands take it."""
        return form.one(self.name)

    def is_told(self, form: Form) -> bool:
        """True unless commands are better told nothing of it."""
        return True

    def arguments(self, page: "ConsolePage") -> dict[str, object]:
        """What the macro takes beside name and label."""
        hint = {"hint": page.said(self.hint)} if self.hint else {}
        return {**hint, "required": self.required, "autofocus": self.autofocus, **self.attributes}

    def drawn_for(self, page: "ConsolePage") -> tuple[str, str, object, Mapping[str, object]]:
        """Macro, name, label and arguments."""
        return self.macro, self.name, page.said(self.label), self.arguments(page)


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """Several lines of text."""

    macro = "text_area"
    attributes: Mapping[str, object] = field(default_factory=lambda: {"rows": 3})


@dataclass(frozen=True, kw_only=True)
class Lines(Text):
    """One thing a line."""

    attributes: Mapping[str, object] = field(default_factory=lambda: {"rows": 3, **LITERAL})

    def shown(self, value: Any) -> Value:
        return "\n".join(value)

    def typed(self, form: Form) -> object:
        return lines(form.one(self.name))


@dataclass(frozen=True, kw_only=True)
class Tick(Field):
    """A checkbox."""

    macro = "check"

    def shown(self, value: Any) -> Value:
        return YES if value else ""

    def typed(self, form: Form) -> object:
        return bool(form.one(self.name))

    def arguments(self, page: "ConsolePage") -> dict[str, object]:
        return {"hint": page.said(self.hint)}


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """One of several. Of none chosen nothing is told."""

    macro = "select_field"
    options: Options = field(default=lambda _: ())

    def is_told(self, form: Form) -> bool:
        return self.several or bool(form.one(self.name))

    def arguments(self, page: "ConsolePage") -> dict[str, object]:
        return {"options": self.options(page), "hint": page.said(self.hint)}


@dataclass(frozen=True, kw_only=True)
class Radio(Choice):
    """The same as buttons, with a sentence for each."""

    macro = "check_group"

    def arguments(self, page: "ConsolePage") -> dict[str, object]:
        return {**super().arguments(page), "type": "radio"}


@dataclass(frozen=True, kw_only=True)
class Ticks(Choice):
    """Any number of several."""

    macro = "check_group"
    several = True

    def shown(self, value: Any) -> Value:
        return tuple(sorted(value))

    def typed(self, form: Form) -> object:
        return frozenset(form.several(self.name))


@dataclass(frozen=True, kw_only=True)
class Minutes(Field):
    """How long something lasts; empty: as long as elsewhere."""

    required: bool = False
    attributes: Mapping[str, object] = field(
        default_factory=lambda: {"variant": "date", "inputmode": "numeric", "autocomplete": "off"}
    )

    def shown(self, value: timedelta | None) -> Value:
        return "" if value is None else minutes(value)


def settings_of(entity: type, *first: str) -> Sequence[Member]:
    """What people can set of such a thing: these first, the others as the entity has them."""
    told = [one for one in members(entity).values() if one.settable and one.declared.label]
    return sorted(told, key=lambda one: first.index(one.name) if one.name in first else len(first))


def fields_of(entity: type, *first: str, options: Mapping[str, Options] = MappingProxyType({})) -> tuple[Field, ...]:
    """A field for each of them; those of a part of the form come last. ``options`` say what some can be, by name."""
    fields = [field_of(one, options.get(one.name)) for one in settings_of(entity, *first)]
    return tuple(sorted(fields, key=lambda one: bool(one.part)))


def field_of(setting: Member, options: Options | None = None) -> Field:
    """The field that asks for a setting of an entity, as its type and its rule want it."""
    said, kind = setting.declared, setting.type
    told: dict[str, Any] = {"part": said.section, "called": setting.name, "missing": said.missing}
    rule = said.rule and unwrap(said.rule)
    if options is not None or (said.words and kind is not bool):
        # Forms name one of what commands name all.
        name = setting.name.removesuffix("s") if kind == frozenset[str] else setting.name
        return _CHOICES.get(kind, Choice)(name, said.label, said.hint, options=options or in_words(setting), **told)
    if kind is str and rule in _ATTRIBUTES:
        told["attributes"] = _ATTRIBUTES[rule]
    made = Text if rule is description_problem else _WIDGETS.get(kind, Field)
    return made(setting.name, said.label, said.hint, required=not _may_be_empty(setting), **told)


def in_words(setting: Member) -> Options:
    """The values of a setting that has words for each."""
    return lambda page: [(str(value), page.said(words)) for value, words in setting.declared.words.items()]


def _may_be_empty(setting: Member) -> bool:
    rule = setting.declared.rule
    return setting.type is not str or rule is None or rule("") is None


#: How one chooses among names of the protocol, one or several; and how other values are asked for.
_CHOICES: Mapping[Any, type[Choice]] = {frozenset[str]: Ticks, str: Radio}
_WIDGETS: Mapping[Any, type[Field]] = {bool: Tick, timedelta: Minutes, tuple[str, ...]: Lines}
#: What browsers are told of texts for which there is such a rule.
_ATTRIBUTES: Mapping[Any, Mapping[str, object]] = {
    user_name_problem: LITERAL,
    role_key_problem: LITERAL,
    domain_problem: LITERAL,
    email_problem: {"type": "email", "autocomplete": "off"},
    phone_problem: {"type": "tel", "autocomplete": "off"},
    locale_problem: {"autocomplete": "off", "suggestions": tuple(LANGUAGE_NAMES.items())},
}


def minutes(span: timedelta) -> str:
    """A lifetime as a form has it."""
    return f"{span / timedelta(minutes=1):.2f}".rstrip("0").rstrip(".")


def lines(text: str) -> tuple[str, ...]:
    """What stands in a field with one thing a line."""
    return tuple(line.strip() for line in text.split("\n") if line.strip())

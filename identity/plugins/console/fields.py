"""Field: what a form asks for, declared: its words, the macro that draws it, and how a stored value looks in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from identity.domain.entity import Member
from identity.pages.forms import Form, Value

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
    """One of several; none chosen means ``usual``, where that is given."""

    macro = "select_field"
    options: Options = field(default=lambda _: ())
    usual: str = ""

    def typed(self, form: Form) -> object:
        return form.one(self.name) or self.usual

    def is_told(self, form: Form) -> bool:
        return bool(self.typed(form)) or self.several

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


def field_of(setting: Member, name: str, options: Options | None) -> Field:
    """The field that asks for a setting of an entity, as its type wants it; ``options`` are its values in words."""
    said = setting.declared
    told: dict[str, Any] = {"part": said.section, "called": setting.name}
    if options is not None:
        kind = _CHOICES.get(setting.type, Choice)
        return kind(name, said.label, said.hint, options=options, **told)
    if setting.type == tuple[str, ...]:
        return Lines(name, said.label, said.hint, required=False, **told)
    return {bool: Tick, timedelta: Minutes}.get(setting.type, Field)(name, said.label, said.hint, **told)


#: How one chooses among names of the protocol, one or several.
_CHOICES: Mapping[Any, type[Choice]] = {frozenset[str]: Ticks, str: Radio}


def minutes(span: timedelta) -> str:
    """A lifetime as a form has it."""
    return f"{span / timedelta(minutes=1):.2f}".rstrip("0").rstrip(".")


def lines(text: str) -> tuple[str, ...]:
    """What stands in a field with one thing a line."""
    return tuple(line.strip() for line in text.split("\n") if line.strip())

"""ConsoleForm: a page of the console with declared fields. NewPage, ChangePage: what most of them do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.pages.forms import VERSION, Form, Value
from identity.pages.page import FormPage
from identity.pages.signed_in_page import version_of
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.fields import Choice, Field
from identity.plugins.console.things import OfThing
from identity.services.commands import Command, Decoded, decode


class ConsoleForm(ConsolePage, FormPage):
    """A page of the console with a form."""

    template = "console/form.html"
    #: What can be filled in, in the order of the page. Templates of one's own draw what they want of it.
    inputs: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(cls) -> None:
        if "inputs" in cls.__dict__:
            first, *others = cls.inputs
            cls.inputs = (replace(first, autofocus=True), *others)
            cls.fields = tuple(one.name for one in cls.inputs)
            cls.repeated_fields = frozenset(one.name for one in cls.inputs if one.several)
            cls.renamed = {one.member: one.name for one in cls.inputs if one.member != one.name}

    #: The field, and its value, with which all parts are open.
    opened_by: ClassVar[tuple[str, str]] = ("", "")

    @property
    def about(self) -> str:
        """What is said above the fields."""
        return ""

    @property
    def label(self) -> str:
        """The button."""
        return say("Save")

    @property
    def back(self) -> str:
        """Where Cancel leads."""
        return self.trail[-1][1]

    @property
    def done_at(self) -> str:
        """Where one gets to once it is done."""
        return self.back

    def drawn(self) -> Sequence[Field]:
        """The fields that there are for whoever looks."""
        return self.inputs

    def show(self) -> Mapping[str, object]:
        drawn = self.drawn()
        parts = dict.fromkeys(one.part for one in drawn)
        return {
            "inputs": [(self.said(part), [one.drawn_for(self) for one in drawn if one.part == part]) for part in parts],
            "opened_by": self.opened_by,
            "about": self.said(self.about),
            "label": self.said(self.label),
            "back": self.back,
        }

    def stored(self, thing: Any) -> dict[str, Value]:
        """What stands in the fields for a thing that is stored, and its version."""
        held = {one.name: one.shown(getattr(thing, one.member)) for one in self.drawn()}
        return {**held, VERSION: str(thing.version)}

    def typed(self, form: Form) -> dict[str, object]:
        """What was typed, as commands take it."""
        return {one.member: one.typed(form) for one in self.drawn() if one.is_told(form)}

    def decoded(self, command: type[Decoded], values: Mapping[str, object]) -> Decoded:
        """The command made from what was typed. Raises Invalid; of an empty field it tells which one it is."""
        try:
            return decode(command, values)
        except Invalid as refused:
            missing = {one.member: one.missing for one in self.inputs if one.missing}
            empty = {name: missing[name] for name in refused.fields if name in missing and not values.get(name)}
            raise Invalid({**refused.fields, **empty}) from None

    def command_from(self, kind: type[Decoded], form: Form, **known: object) -> Decoded:
        """The command made from what was typed, and what is known otherwise. Raises Invalid."""
        return self.decoded(kind, {**self.typed(form), **known})


class NewPage(ConsoleForm):
    """Makes something, and leads to its page."""

    creates = True
    command: ClassVar[type[Command]]
    label = say("Create")
    #: The addresses of the pages of what is made, without the id.
    pages_at: ClassVar[str]

    def make(self, command: Any) -> Any:
        """Make it."""
        raise NotImplementedError

    def values(self) -> Mapping[str, Value]:
        """Of each choice, what the command takes by itself."""
        usual = {name: one.default for name, one in self.command.model_fields.items()}
        return {one.name: one.shown(usual[one.member]) for one in self.inputs if isinstance(one, Choice)}

    def submit(self, form: Form) -> Response:
        command = self.command_from(self.command, form)
        self.use_once(form)
        return self.redirect(self.done(f"{CONSOLE}/{self.pages_at}/{self.make(command).id}"))


class ChangePage(OfThing[Any], ConsoleForm):
    """Changes a thing, and leads back to its page."""

    at, action = "/edit", "write"
    command: ClassVar[type[Command]]
    title = say("Change {name}")

    def values(self) -> Mapping[str, Value]:
        return self.stored(self.thing)

    def submit(self, form: Form) -> Response:
        command = self.command_from(self.command, form)
        version = version_of(form.one(VERSION))
        self.use_case.change(self.thing.id, command, expected_version=version, by=self.principal)
        return self.redirect(self.done(self.done_at))

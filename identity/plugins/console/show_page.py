"""ShowPage: all about one thing: facts, sections, and what can be done with it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup

from identity.domain.entity import Member
from identity.domain.words import say
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.confirm_page import ConfirmThing
from identity.plugins.console.console_page import Trail
from identity.plugins.console.fields import settings_of
from identity.plugins.console.sections import Facts, Note, Panel, Section
from identity.plugins.console.things import OfThing


class ShowPage(OfThing[Any]):
    """The page of a thing. Each kind declares what stands on it."""

    template = "console/show.html"
    #: What can be done with the thing, below all else, and the heading of that.
    deeds: ClassVar[tuple[type[ConfirmThing], ...]] = ()
    deeds_title: ClassVar[str] = say("Deactivate or delete")

    @property
    def title(self) -> str:
        return self.name

    @property
    def trail(self) -> Trail:
        return self.above

    @property
    def lead(self) -> Sequence[str]:
        """Of what kind it is, and what places it."""
        return ()

    @property
    def badges(self) -> Sequence[Badge]:
        """How it stands."""
        return [state_badge(self.context.value.active, self.words)]

    @property
    def actions(self) -> Sequence[Markup]:
        """The buttons beside the heading."""
        change = self.link(say("Change"), f"{self.href}/edit", what=self.name)
        return [change, *self._actions_of_plugins()] if self.may(f"{self.subject_of}.write") else []

    def _actions_of_plugins(self) -> Iterator[Markup]:
        return self.from_plugins("console_actions", lambda one: self.link(*one), thing=self.context.value)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return ()

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        """What hangs on it."""
        return ()

    #: Settings that stand elsewhere on the page.
    told_elsewhere: ClassVar[Collection[str]] = ("name", "display_name")
    #: Settings that the page calls otherwise than the form.
    called: ClassVar[Mapping[str, str]] = {}

    def settings(self, thing: Any, *first: str) -> Facts:
        """What people have set of a thing, in the order of its form."""
        return [
            (self.called.get(one.name, one.declared.label), self.shown(one, getattr(thing, one.name)))
            for one in settings_of(type(thing), *first)
            if one.is_for(getattr(thing, "type", None)) and one.name not in self.told_elsewhere
        ]

    def shown(self, setting: Member, value: Any) -> object:
        """A value of a setting, as its type is shown; nothing where there is nothing to tell."""
        words = setting.declared.words
        if words:
            return words[value]
        if isinstance(value, bool):
            return say("Yes") if value else say("No")
        if isinstance(value, frozenset):
            return self.roles(value) or self.faint(say("None"))
        return value

    def last_section(self) -> Section | Note | None:
        """What can be done with it, for whoever may."""
        rows = list(self.to_do(*self.deeds))
        return Panel("danger", self.deeds_title, rows=rows) if rows else None

    def to_do(self, *deeds: type[ConfirmThing]) -> Iterator[tuple[str, str, Markup]]:
        """Those that whoever looks may do, as rows of a panel."""
        for kind in deeds:
            page = kind(self.context, self.request)
            page.organization = self.organization
            if page.offered and self.may(kind.permission()):
                title, button = kind.way
                yield title, page.offer, self.link(button, f"{self.href}{kind.at}")

    def show(self) -> Mapping[str, object]:
        return {
            "lead": [self.said(one) for one in self.lead],
            "badges": self.badges,
            "actions": self.actions,
            "facts": self.facts,
            "sections_of": [*self.sections, self.last_section()],
            "said": self.said,
        }

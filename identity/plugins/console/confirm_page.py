"""ConfirmPage: asks before something is done that is not undone by a click; deactivate, reactivate, delete a thing."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pyramid.response import Response

from identity.domain.effects import Removed
from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.pages.forms import Form
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.effect_words import effect_words
from identity.plugins.console.things import OfThing

#: What many of them say.
LATER = say("You can reactivate it later.")


class ConfirmPage(ConsoleForm):
    """Asks before something is done that is not undone by a click: what it hits, and what falls with it.

    The title is a question with kind and name, the label verb and kind.
    """

    template = "console/confirm.html"
    #: False for what can be taken back; then the button is an ordinary one.
    danger: ClassVar[bool] = True

    @property
    def effects(self) -> Sequence[str]:
        """What falls with it, one sentence each, in numbers."""
        return ()

    @property
    def keep(self) -> str:
        """The link that leads back."""
        return say("Keep it")

    @property
    def name_to_type(self) -> str:
        """What has to be typed to confirm; empty if nothing has to be."""
        return ""

    def act(self) -> str | None:
        """Do it; returns the address of the page to go to, if that is not where Keep leads."""
        raise NotImplementedError

    def show(self) -> Mapping[str, object]:
        return {
            **super().show(),
            "effects": [self.said(one) for one in self.effects if one],
            "keep": self.said(self.keep),
            "danger": self.danger,
            "name_to_type": self.name_to_type,
        }

    def submit(self, form: Form) -> Response:
        wanted = self.name_to_type
        if wanted and _comparable(form.one("confirm_name")) != _comparable(wanted):
            raise Invalid({"confirm_name": say("Type {name} to confirm.", name=wanted)})
        back = self.back
        return self.redirect(self.done(self.act() or back))


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


class ConfirmThing(OfThing[Any], ConfirmPage):
    """Asks before something is done to a thing, whose page leads there."""

    #: Heading and button of the way there, and what it means.
    way: ClassVar[tuple[str, str]]
    offer: ClassVar[str]

    @property
    def offered(self) -> bool:
        """True if it can be done to the thing as it stands."""
        return True


class StatePage(ConfirmThing):
    """Asks before the state of a thing changes, which can be taken back."""

    action = "write"
    danger = False
    #: The use case, and whether things for which it is offered are active.
    does: ClassVar[str]
    of_active: ClassVar[bool]

    @property
    def offered(self) -> bool:
        return bool(self.context.value.active) is self.of_active

    def act(self) -> None:
        getattr(self.use_case, self.does)(self.context.value.id, by=self.principal)


class DeactivatePage(StatePage):
    """Asks before something stops that can be reactivated later."""

    at, does, of_active = "/deactivate", "deactivate", True
    way = (say("Deactivate"), say("Deactivate …"))
    keep = say("Keep it active")


class ReactivatePage(StatePage):
    """Asks before it works again."""

    at, does, of_active = "/reactivate", "reactivate", False
    way = (say("Reactivate"), say("Reactivate …"))
    keep = say("Keep it deactivated")


class DeletePage(ConfirmThing):
    """Asks for the name before it is gone for ever: what goes along is told in numbers."""

    at, action = "/delete", "delete"
    way = (say("Delete"), say("Delete …"))
    fields = ("confirm_name",)
    #: What cannot be undone.
    undone: ClassVar[str]
    #: What else whoever looks has to know.
    also: ClassVar[str] = ""

    @property
    def effects(self) -> Sequence[str]:
        removed = Removed.of_kind(self.subject_of)
        return [self.undone, self.also, *effect_words(self.services.effects(removed, self.context.value.id))]

    @property
    def name_to_type(self) -> str:
        """The user name, of users; the name of other things."""
        return str(getattr(self.context.value, "user_name", self.name))

    def act(self) -> str | None:
        """Do it; then to the page above."""
        back = self.above[-1][1]
        self.use_case.remove(self.context.value.id, by=self.principal)
        return back

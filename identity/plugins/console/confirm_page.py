"""ConfirmPage: asks before something is done that is not undone by a click; DeactivatePage, ReactivatePage."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.pages.forms import Form
from identity.plugins.console.console_page import ConsoleForm


class ConfirmPage(ConsoleForm):
    """Asks before something is done that is not undone by a click: what it hits, and what falls with it."""

    template = "console/confirm.html"
    #: False for what can be taken back; then the button is an ordinary one.
    danger: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]] = ("confirm_name",)

    def question(self) -> str:
        """The heading: a question with kind and name."""
        raise NotImplementedError

    def effects(self) -> Sequence[str]:
        """What falls with it, one sentence each, in numbers."""
        return ()

    def label(self) -> str:
        """The button: verb and kind."""
        raise NotImplementedError

    def keep(self) -> str:
        """The link that leads back."""
        return say("Keep it")

    def back(self) -> str:
        """Where that link leads."""
        raise NotImplementedError

    def name_to_type(self) -> str:
        """What has to be typed to confirm; empty if nothing has to be."""
        return ""

    def act(self) -> str:
        """Do it; returns the address of the page to go to."""
        raise NotImplementedError

    def title(self) -> str:
        """The question."""
        return self.question()

    def show(self) -> Mapping[str, object]:
        """Question, effects and button."""
        return {
            "effects": [self.words.t(one) for one in self.effects()],
            "label": self.words.t(self.label()),
            "keep": self.words.t(self.keep()),
            "back": self.back(),
            "danger": self.danger,
            "name_to_type": self.name_to_type(),
        }

    def submit(self, form: Form) -> Response:
        """Do it, once the name is typed where it has to be."""
        wanted = self.name_to_type()
        if wanted and _comparable(form.one("confirm_name")) != _comparable(wanted):
            raise Invalid({"confirm_name": say("Type {name} to confirm.", name=wanted)})
        return self.redirect(self.done(self.act()))


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


class DeactivatePage(ConfirmPage):
    """Asks before something stops that can be reactivated later."""

    danger = False

    def keep(self) -> str:
        """The way back."""
        return say("Keep it active")


class ReactivatePage(ConfirmPage):
    """Asks before it works again."""

    danger = False

    def keep(self) -> str:
        """The way back."""
        return say("Keep it deactivated")

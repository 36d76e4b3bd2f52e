"""Pages that ask before an action that no click undoes: deactivate, reactivate, delete a resource."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.pages.forms import Form
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.impact_labels import impact_labels
from identity.plugins.console.resource_page import ResourcePage

#: What many of them say.
REACTIVATION_HINT = gettext_lazy("You can reactivate it later.")


class ActionPage(ConsoleFormPage):
    """Asks before something is done that is not undone by a click: what it hits, and what falls with it.

    The title is a question with kind and name, the label verb and kind.
    """

    template = "console/action.html"
    #: False for what can be taken back; then the button is an ordinary one.
    is_destructive: ClassVar[bool] = True

    @property
    def impact(self) -> Sequence[str]:
        """What falls with it, one sentence each, in numbers."""
        return ()

    @property
    def cancel_label(self) -> str:
        """The link that leads back."""
        return gettext_lazy("Keep it")

    @property
    def confirmation_text(self) -> str:
        """What has to be typed to confirm; empty if nothing has to be."""
        return ""

    def perform(self) -> str | None:
        """Do it; returns the address of the page to go to, if that is not where Keep leads."""
        raise NotImplementedError

    def template_variables(self) -> Mapping[str, object]:
        return {
            **super().template_variables(),
            "effects": [self.translate(item) for item in self.impact if item],
            "keep": self.translate(self.cancel_label),
            "danger": self.is_destructive,
            "name_to_type": self.confirmation_text,
        }

    def submit(self, form: Form) -> Response:
        wanted = self.confirmation_text
        if wanted and _comparable(form.text("confirm_name")) != _comparable(wanted):
            raise Invalid({"confirm_name": gettext_lazy("Type {name} to confirm.", name=wanted)})
        back = self.cancel_path
        return self.redirect(self.path_with_flash(self.perform() or back))


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


class ResourceActionPage(ResourcePage[Any], ActionPage):
    """Asks before something is done to a thing, whose page leads there."""

    #: Heading and button of the way there, and what it means.
    action_labels: ClassVar[tuple[str, str]]
    description: ClassVar[str]

    @property
    def is_available(self) -> bool:
        """True if it can be done to the thing as it stands."""
        return True


class StatePage(ResourceActionPage):
    """Asks before the state of a thing changes, which can be taken back."""

    permission_verb = "write"
    is_destructive = False
    #: The use case, and whether things for which it is offered are active.
    service_method: ClassVar[str]
    of_active: ClassVar[bool]

    @property
    def is_available(self) -> bool:
        return bool(self.context.entity.active) is self.of_active

    def perform(self) -> None:
        getattr(self.service, self.service_method)(self.context.entity.id, principal=self.principal)


class DeactivatePage(StatePage):
    """Asks before something stops that can be reactivated later."""

    path_suffix, service_method, of_active = "/deactivate", "deactivate", True
    action_labels = (gettext_lazy("Deactivate"), gettext_lazy("Deactivate …"))
    cancel_label = gettext_lazy("Keep it active")


class ReactivatePage(StatePage):
    """Asks before it works again."""

    path_suffix, service_method, of_active = "/reactivate", "reactivate", False
    action_labels = (gettext_lazy("Reactivate"), gettext_lazy("Reactivate …"))
    cancel_label = gettext_lazy("Keep it deactivated")


class DeletePage(ResourceActionPage):
    """Asks for the name before it is gone for ever: what goes along is told in numbers."""

    path_suffix, permission_verb = "/delete", "delete"
    action_labels = (gettext_lazy("Delete"), gettext_lazy("Delete …"))
    fields = ("confirm_name",)
    #: What cannot be undone.
    undone: ClassVar[str]
    #: What else whoever looks has to know.
    also: ClassVar[str] = ""

    @property
    def impact(self) -> Sequence[str]:
        removed = DeletionTarget.from_kind(self.permission_subject)
        return [self.undone, self.also, *impact_labels(self.services.deletion_impact(removed, self.context.entity.id))]

    @property
    def confirmation_text(self) -> str:
        """The user name, of users; the name of other things."""
        return str(getattr(self.context.entity, "user_name", self.entity_name))

    def perform(self) -> str | None:
        """Do it; then to the page above."""
        back = self.parent_breadcrumbs[-1][1]
        self.service.remove(self.context.entity.id, principal=self.principal)
        return back

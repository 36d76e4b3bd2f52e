"""Pages that ask for confirmation before a consequential action: deactivate, reactivate, delete."""

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

#: Shared by several pages.
REACTIVATION_HINT = gettext_lazy("You can reactivate it later.")


class ActionPage(ConsoleFormPage):
    """Asks for confirmation and lists the impact. The title is a question that names the resource."""

    template = "console/action.html"
    #: False for actions that can be undone: the button is then an ordinary one.
    is_destructive: ClassVar[bool] = True

    @property
    def impact(self) -> Sequence[str]:
        """One sentence with a count for each kind of affected data."""
        return ()

    @property
    def cancel_label(self) -> str:
        return gettext_lazy("Keep it")

    @property
    def confirmation_text(self) -> str:
        """The text to type to confirm; empty if none is needed."""
        return ""

    def perform(self) -> str | None:
        """Run the action. Returns the path to redirect to, None for the page that Cancel leads to."""
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
        expected = self.confirmation_text
        if expected and _comparable(form.text("confirm_name")) != _comparable(expected):
            raise Invalid({"confirm_name": gettext_lazy("Type {name} to confirm.", name=expected)})
        back = self.cancel_path
        return self.redirect(self.path_with_flash(self.perform() or back))


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


class ResourceActionPage(ResourcePage[Any], ActionPage):
    """An action on a resource, linked from its detail page."""

    #: Heading and button of the link to this page.
    action_labels: ClassVar[tuple[str, str]]
    description: ClassVar[str]

    @property
    def is_available(self) -> bool:
        """True if the resource's state permits the action."""
        return True


class StatePage(ResourceActionPage):
    permission_verb = "write"
    is_destructive = False
    #: The service's method, and the state (active or not) in which the action is offered.
    service_method: ClassVar[str]
    of_active: ClassVar[bool]

    @property
    def is_available(self) -> bool:
        return bool(self.context.entity.active) is self.of_active

    def perform(self) -> None:
        getattr(self.service, self.service_method)(self.context.entity.id, principal=self.principal)


class DeactivatePage(StatePage):
    path_suffix, service_method, of_active = "/deactivate", "deactivate", True
    action_labels = (gettext_lazy("Deactivate"), gettext_lazy("Deactivate …"))
    cancel_label = gettext_lazy("Keep it active")


class ReactivatePage(StatePage):
    path_suffix, service_method, of_active = "/reactivate", "reactivate", False
    action_labels = (gettext_lazy("Reactivate"), gettext_lazy("Reactivate …"))
    cancel_label = gettext_lazy("Keep it deactivated")


class DeletePage(ResourceActionPage):
    """Deletes for good, after the name is typed. The impact is listed in numbers."""

    path_suffix, permission_verb = "/delete", "delete"
    action_labels = (gettext_lazy("Delete"), gettext_lazy("Delete …"))
    fields = ("confirm_name",)
    undone: ClassVar[str]
    #: A further warning.
    also: ClassVar[str] = ""

    @property
    def impact(self) -> Sequence[str]:
        removed = DeletionTarget.from_kind(self.permission_subject)
        return [self.undone, self.also, *impact_labels(self.services.deletion_impact(removed, self.context.entity.id))]

    @property
    def confirmation_text(self) -> str:
        """The user name of users, the name of other resources."""
        return str(getattr(self.context.entity, "user_name", self.entity_name))

    def perform(self) -> str | None:
        """Returns the path of the parent page."""
        back = self.parent_breadcrumbs[-1][1]
        self.service.remove(self.context.entity.id, principal=self.principal)
        return back

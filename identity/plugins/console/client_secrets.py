"""Client secrets of applications and service users: add and revoke."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.messages import gettext_lazy
from identity.pages.forms import Form
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.console_page import find_child
from identity.plugins.console.expiring_credentials import ALREADY_CREATED_MESSAGE, last_used_label
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_page import ResourcePage
from identity.plugins.console.routes import ConsoleRoute

#: Two, so that secrets can be rotated.
_MAX_SECRETS = 2


def client_secret_section(
    page: ResourcePage[Any], id: str, title: str, lead: str, *, empty: str, first: bool
) -> TableSection:
    """``first`` makes adding a secret the page's primary action."""
    live, may_write = page.service.list_secrets(page.entity.id), page.has_permission(f"{page.permission_subject}.write")
    rows = []
    for item in live:
        end = page.row_buttons(
            f"{page.resource_path}/secrets/{item.id}", item.id, remove=gettext_lazy("End …"), change=False
        )
        created = page.template_macros.when(item.created_at, clock=True)
        rows.append((created, page.relative_time(item.last_used_at), end if may_write else ""))
    new = Markup()
    if may_write and len(live) < _MAX_SECRETS:
        kind = "primary" if first and not rows else ""
        new = page.button_link(
            gettext_lazy("New"),
            f"{page.resource_path}/secrets/new",
            hidden_label=gettext_lazy("client secret"),
            kind=kind,
            symbol="plus",
        )
    columns = (gettext_lazy("Created"), gettext_lazy("Last used"))
    return TableSection(id, title, lead, new, columns=columns, rows=rows, has_row_buttons=True, empty=empty)


class ClientSecretPage(ResourcePage[Any]):
    #: The section on the resource's page.
    anchor = "secrets"

    @property
    def live_secrets(self) -> Sequence[Any]:
        live: Sequence[Any] = self.service.list_secrets(self.entity.id)
        return live

    @property
    def cancel_path(self) -> str:
        return f"{self.resource_path}#{self.anchor}"


class CreateClientSecretPage(ClientSecretPage, ConsoleFormPage):
    """Creates a client secret and shows it once."""

    is_creation = True
    title = gettext_lazy("New client secret for {name}")
    submit_label = gettext_lazy("Create secret")

    @property
    def lead(self) -> str:
        once = self.translator.gettext("The secret is shown once, on the next page.")
        keeps = self.translator.gettext("The one there is keeps working, so that you can replace it without a gap.")
        return once + " " + keeps if self.live_secrets else once

    def submit(self, form: Form) -> Response:
        self.redeem_submission_id(form, ALREADY_CREATED_MESSAGE)
        _, secret = self.service.add_secret(self.entity.id, principal=self.principal)
        variables = {"client_id": self.entity.id, "secret": secret, "back": self.cancel_path}
        return self.render(
            {**variables, "title": self.translator.gettext("Client secret added")},
            template="console/client_secret_created.html",
        )


class RevokeClientSecretPage(ClientSecretPage, ActionPage):
    #: What stops working, and a stronger warning if it is the only secret.
    impact_message: ClassVar[str]
    last_secret_impact_message: ClassVar[str] = ""
    #: What happens to issued tokens, unless ``impact_message`` covers it.
    tokens: ClassVar[str] = ""
    title = gettext_lazy("Revoke this client secret of {name}?")
    submit_label = gettext_lazy("Revoke client secret")

    @property
    def secret(self) -> Any:
        """Raises NotFound."""
        return find_child(self, self.live_secrets, "secret")

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"name": self.entity_name, "when": self.secret.created_at.strftime("%Y-%m-%d %H:%M")}

    @property
    def impact(self) -> Sequence[str]:
        loss = (
            self.last_secret_impact_message
            if self.last_secret_impact_message and len(self.live_secrets) == 1
            else self.impact_message
        )
        return [gettext_lazy("Created {when} UTC."), last_used_label(self.secret.last_used_at), loss, self.tokens]

    def perform(self) -> str | None:
        self.service.remove_secret(self.entity.id, self.secret.id, principal=self.principal)
        return None


def client_secret_routes(kind: type[ResourcePage[Any]], **attributes: str) -> tuple[ConsoleRoute, ...]:
    path, permission = f"{kind.path}/secrets", f"{kind.permission_subject}.write"
    anchor = attributes.get("anchor", ClientSecretPage.anchor)
    return (
        ConsoleRoute(
            f"{path}/new", CreateClientSecretPage.for_resource(kind, anchor=anchor), permission, kind.context_factory
        ),
        ConsoleRoute(
            f"{path}/{{secret}}/delete",
            RevokeClientSecretPage.for_resource(kind, **attributes),
            permission,
            kind.context_factory,
        ),
    )

"""Client secrets of applications and service users: add and revoke."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from markupsafe import Markup
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.applications import ClientSecret
from identity.domain.messages import gettext_lazy as _
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.console_page import ConsolePage, find_child
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import AnyResourceType, ResourcePage, ResourceType
from identity.plugins.console.routes import ConsoleRoute
from identity.services.access_control import Principal
from identity.services.container import Services

ALREADY_CREATED_MESSAGE = _("This was already added; its secret was shown then. Add a new one if you did not save it.")
#: Two, so that secrets can be rotated.
_MAX_SECRETS = 2

Secret = ClientSecret | ServiceUserSecret


class SecretService(Protocol):
    def list_secrets(self, owner_id: str, /) -> Sequence[Secret]: ...
    def add_secret(self, owner_id: str, /, *, principal: Principal) -> tuple[Secret, str]: ...
    def remove_secret(self, owner_id: str, secret_id: str, /, *, principal: Principal) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ClientSecrets:
    """The secrets of one type of owner. ``section_id`` to ``empty`` are about the section on the owner's page, on the
    tab ``tab_path``, where adding the first secret may be the primary action. ``impact`` is what stops working without
    a secret, ``last_impact`` a stronger warning for the only one, ``tokens`` what happens to issued tokens.
    """

    owner: AnyResourceType
    service: Callable[[Services], SecretService]
    section_id: str
    title: str
    lead: str
    empty: str
    tab_path: str = ""
    is_primary_task: bool = False
    impact: str
    last_impact: str = ""
    tokens: str = ""

    def list(self, page: ConsolePage) -> Sequence[Secret]:
        return self.service(page.services).list_secrets(page.context.entity.id)

    def section(self, page: ConsolePage) -> TableSection:
        path, may_write = self.owner.path_of(page.context.entity), page.has_permission(self.owner.permission("write"))
        rows = [
            (
                page.template_macros.when(secret.created_at, clock=True),
                page.relative_time(secret.last_used_at),
                page.row_buttons(f"{path}/secrets/{secret.id}", secret.id, remove=_("End …"), change=False)
                if may_write
                else "",
            )
            for secret in self.list(page)
        ]
        new = page.button_link(
            _("New"),
            f"{path}/secrets/new",
            hidden_label=_("client secret"),
            kind="primary" if self.is_primary_task and not rows else "",
            symbol="plus",
        )
        return TableSection(
            self.section_id,
            self.title,
            self.lead,
            new if may_write and len(rows) < _MAX_SECRETS else Markup(),
            columns=(_("Created"), _("Last used")),
            rows=rows,
            has_row_buttons=True,
            empty=self.empty,
        )

    def routes(self) -> tuple[ConsoleRoute, ...]:
        page = partial(CreateClientSecretPage, resource_type=self.owner, secrets=self)
        secret: ResourceType[Secret] = self.owner.child(
            "/secrets/{secret}",
            ClientSecret,
            message_values=lambda page, secret: {
                "name": self.owner.name(page, page.context.entity),
                "when": secret.created_at.strftime("%Y-%m-%d %H:%M"),
            },
            find=lambda page: find_child(page, self.list(page), "secret", lambda secret: secret.id),
        )
        revoke = Action[Secret](
            path="/delete",
            run=lambda page, secret: self.service(page.services).remove_secret(
                page.context.entity.id, secret.id, principal=page.principal
            ),
            title=_("Revoke this client secret of {name}?"),
            submit_label=_("Revoke client secret"),
            impact=lambda page, secret: [
                _("Created {when} UTC."),
                last_used_label(secret.last_used_at),
                (self.last_impact if len(self.list(page)) == 1 else "") or self.impact,
                self.tokens,
            ],
            back=f"{self.tab_path}#{self.section_id}",
        )
        return self.owner.route("/secrets/new", page, "write"), *action_routes(secret, revoke)


class CreateClientSecretPage(ResourcePage[Any], ConsoleFormPage):
    """Creates a client secret and shows it once. ``entity`` is the owner."""

    is_creation = True
    title = _("New client secret for {name}")
    submit_label = _("Create secret")

    def __init__(
        self, context: RouteContext, request: Request, *, resource_type: AnyResourceType, secrets: ClientSecrets
    ) -> None:
        super().__init__(context, request, resource_type=resource_type)
        self.secrets, self.back_path_suffix = secrets, f"{secrets.tab_path}#{secrets.section_id}"

    @property
    def lead(self) -> str:
        once = self.translator.gettext("The secret is shown once, on the next page.")
        keeps = self.translator.gettext("The current one keeps working, so that you can replace it without a gap.")
        return once + " " + keeps if self.secrets.list(self) else once

    def submit(self, form: Form) -> Response:
        self.redeem_submission_id(form, ALREADY_CREATED_MESSAGE)
        secret = self.secrets.service(self.services).add_secret(self.entity.id, principal=self.principal)[1]
        return self.render_secret(_("Client secret added"), secret, self.entity.id)


def last_used_label(moment: datetime | None) -> str:
    if moment is None:
        return _("It was never used.")
    return _("Last used {when} UTC.", when=moment.strftime("%Y-%m-%d %H:%M"))

"""Federated credentials of service users and applications: list, add and remove."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.applications import Application
from identity.domain.federated_credentials import FederatedCredential, IssuerKind
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import ServiceUser
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.client_secrets import last_used_label
from identity.plugins.console.console_page import ConsolePage, path_value
from identity.plugins.console.fields.federated_credentials import FEDERATED_CREDENTIAL_FIELDS, ISSUER_TEMPLATES
from identity.plugins.console.form_fields import FormField, form_fields
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import (
    APPLICATION,
    SERVICE_USER,
    AnyResourceType,
    ResourcePage,
    display_name,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.service_users import AddFederatedCredential
from identity.storage.paging import PageRequest

_PATH = "/federated-credentials"


class FederatedCredentialCreatePage(ResourcePage[Any], ConsoleFormPage):
    """Adds a federated credential; ``?template=`` fills the form in for a known issuer."""

    is_creation = True
    form_fields = form_fields(FederatedCredential, FEDERATED_CREDENTIAL_FIELDS)
    title = _("New federated credential for {name}")
    submit_label = _("Add")

    @property
    def lead(self) -> str:
        link = Markup('<a href="?template={}">{}</a>')
        links = Markup(" · ").join(link.format(name, item.label) for name, item in ISSUER_TEMPLATES.items())
        audience = self.template_macros.code(self.request.registry.application.settings.issuer_url)
        return Markup("{}<br>{} {}").format(
            self.translator.gettext("The platform's tokens need the audience {issuer}.", issuer=audience),
            self.translator.gettext("Start from:"),
            links,
        )

    @property
    def back_path_suffix(self) -> str:  # type: ignore[override]
        return _back(self.resource_type)

    def visible_fields(self) -> Sequence[FormField]:
        is_instance_manager = self.services.applications.can_set_privileged_fields(self.principal)
        return [field for field in self.form_fields if is_instance_manager or field.name != "instance_managed"]

    def initial_values(self) -> Mapping[str, FieldValue]:
        template = ISSUER_TEMPLATES.get(self.request.GET.get("template", ""))
        if template is None:
            return {"kind": IssuerKind.OIDC.value}
        return {
            "name": template.label,
            "kind": template.kind.value,
            "issuer": template.issuer,
            "conditions": "\n".join(template.conditions),
            "jwks_uri": template.jwks_uri,
        }

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddFederatedCredential, form)
        self.redeem_submission_id(form)
        self.services.federated_credentials.add(self.entity.id, command, principal=self.principal)
        return self.redirect(self.path_with_flash(f"{self.resource_path}{self.back_path_suffix}"))


def _back(owner: AnyResourceType) -> str:
    """The list below the owner's path: a tab of applications, a section of service users."""
    return _PATH if owner is APPLICATION else f"#{_PATH.removeprefix('/')}"


def has_federated_credentials(page: ConsolePage, owner: Application | ServiceUser) -> bool:
    """True if a listed plugin uses them, or some are stored."""
    verifiers = page.request.registry.application.protocol_registry.assertion_verifiers.values()
    return any(verifier.uses_federated_credentials for verifier in verifiers) or bool(
        page.services.federated_credentials.page(owner.id, PageRequest(limit=1))
    )


@dataclass(frozen=True, kw_only=True)
class FederatedCredentialPages:
    """The pages of one type of owner; ``lead`` says what they are for."""

    owner: AnyResourceType
    lead: str

    @cached_property
    def resource_list(self) -> ResourceList[FederatedCredential]:
        permission = self.owner.permission("write")
        return ResourceList(
            path=_PATH,
            permission=self.owner.permission("read"),
            title=_("Federated credentials"),
            columns=(_("Name"), _("Issuer"), _("Conditions"), _("Last used")),
            has_row_buttons=True,
            is_searchable=False,
            fetch=lambda page, request: page.services.federated_credentials.page(page.context.entity.id, request),
            rows=lambda page, credentials: [self._cells(page, credential) for credential in credentials],
            empty_title=_("No federated credentials yet"),
            empty_text=_("A job or workload gets tokens with the token of its own platform, without a stored key."),
            create=permission,
            entity_label=_("federated credential"),
            all_label=_("All federated credentials …"),
            lead=self.lead,
            section_empty=_("No federated credentials"),
            is_created_from_section=self.owner is SERVICE_USER,
        )

    def routes(self, *, has_list: bool) -> Sequence[ConsoleRoute]:
        """``has_list`` unless a tab has the path of the list."""
        owner = self.owner
        name = "application_credential" if owner is APPLICATION else "credential"
        credential = owner.child(
            f"{_PATH}/{{{name}}}",
            FederatedCredential,
            message_values=lambda page, credential: {
                "credential": credential.name,
                "name": display_name(page, page.context.entity),
            },
            find=lambda page: page.services.federated_credentials.get(page.context.entity.id, path_value(page, name)),
        )
        return (
            *([list_route(self.resource_list, owner)] if has_list else []),
            owner.page_route(f"{_PATH}/new", FederatedCredentialCreatePage, "write"),
            *action_routes(credential, self._removal()),
        )

    def _removal(self) -> Action[FederatedCredential]:
        return Action[FederatedCredential](
            path="/delete",
            run=lambda page, credential: page.services.federated_credentials.remove(
                page.context.entity.id, credential.id, principal=page.principal
            ),
            done=lambda page, credential: self.owner.path_of(page.context.entity),
            title=_("Remove the federated credential “{credential}” of {name}?"),
            impact=lambda page, credential: [
                _("Programs that use it lose access at once."),
                last_used_label(credential.last_used_at),
            ],
            submit_label=_("Remove federated credential"),
            back=_back(self.owner),
        )

    def _cells(self, page: ConsolePage, credential: FederatedCredential) -> Cells:
        path = f"{self.owner.path_of(page.context.entity)}{_PATH}/{credential.id}"
        return (
            page.template_macros.bold(credential.name),
            page.template_macros.code(credential.issuer),
            Markup("<br>").join(page.template_macros.code(condition) for condition in credential.conditions),
            page.relative_time(credential.last_used_at),
            page.row_buttons(path, credential.name, remove=_("Remove …"), change=False)
            if page.has_permission(self.owner.permission("write"))
            else "",
        )


SERVICE_USER_FEDERATED_CREDENTIALS = FederatedCredentialPages(
    owner=SERVICE_USER,
    lead=_("For jobs and workloads that have a token of their own platform, such as GitHub or Kubernetes."),
)
APPLICATION_FEDERATED_CREDENTIALS = FederatedCredentialPages(
    owner=APPLICATION,
    lead=_("The application authenticates with a token of its own platform, such as Kubernetes, without a stored key."),
)

ROUTES = (
    *SERVICE_USER_FEDERATED_CREDENTIALS.routes(has_list=True),
    *APPLICATION_FEDERATED_CREDENTIALS.routes(has_list=False),
)

"""Identity providers for the people of an organization: list, add, detail page, edit, deactivate, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.crypto.secrets import derive_id, new_id
from identity.domain.entity import entity_fields
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import Resource
from identity.domain.upstream_providers import UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.http import route_contexts
from identity.pages.forms import SUBMISSION_ID_FIELD, FieldValue, Form
from identity.plugins.console.action_page import REACTIVATION_HINT, DeactivatePage, ReactivatePage, ResourceActionPage
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.fields.upstream_providers import UPSTREAM_PROVIDER_FIELDS
from identity.plugins.console.form_fields import FormField, TextArea, form_fields
from identity.plugins.console.form_page import ConsoleFormPage, CreatePage, EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_page import UpstreamProviderResourcePage, resource_routes
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.upstream_providers import INSTANCE_WRITE
from identity.storage.paging import PageRequest, ResultPage

_DECLARED = entity_fields(UpstreamProvider)
_KIND_LABELS = UPSTREAM_PROVIDER_FIELDS["kind"].value_labels


def _kind_label(provider: UpstreamProvider) -> str:
    return str(_KIND_LABELS[provider.kind])


class UpstreamProviderListPage(ListPage):
    section = "upstream-providers"
    title = gettext_lazy("Identity providers")
    lead = gettext_lazy("Where people can sign in instead of here: at an OpenID provider, or at GitHub.")
    columns = (gettext_lazy("Name"), gettext_lazy("Kind"), gettext_lazy("State"), gettext_lazy("Since"))
    empty_title = gettext_lazy("No identity providers yet")
    empty_text = gettext_lazy(
        "Let people sign in with an account that they have already, such as that of your company or of Google."
    )
    create_permission, entity_label = "upstream_provider.write", gettext_lazy("identity provider")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        return self.services.storage.upstream_providers.page(self.context.entity.id, page_request)

    def build_cells(self, provider: UpstreamProvider) -> Cells:
        return (
            self.template_macros.named(provider.name, f"{CONSOLE_PATH}/upstream-providers/{provider.id}"),
            self.translate(_kind_label(provider)),
            self.render_badge(state_badge(provider.active, self.translator)),
            self.template_macros.when(provider.created_at),
        )


#: A client secret, or the PEM text of a private key; never sent back to the browser.
_SECRET_FIELD = TextArea(
    "client_secret",
    gettext_lazy("Client secret"),
    gettext_lazy("As the provider gave it; of Apple the private key."),
    required=False,
    attributes={"rows": 2, "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
)
_UNCHANGED_SECRET_HINT = gettext_lazy("As the provider gave it; of Apple the private key. Empty leaves it as it is.")
#: They support no other authentication.
_SECRET_KINDS = (UpstreamKind.APPLE, UpstreamKind.GITHUB)


def _provider_fields(*without: str) -> tuple[FormField, ...]:
    labels = {name: label for name, label in UPSTREAM_PROVIDER_FIELDS.items() if name not in without}
    fields = form_fields(UpstreamProvider, labels)
    at = next(number for number, form_field in enumerate(fields) if form_field.name == "issuer")
    return (*fields[:at], _SECRET_FIELD, *fields[at:])


class UpstreamProviderFormPage(ConsoleFormPage):
    secret_fields = frozenset({_SECRET_FIELD.name})

    def visible_fields(self) -> Sequence[FormField]:
        decides = self.services.access_control.is_permitted(self.principal, INSTANCE_WRITE, Resource.INSTANCE)
        return [
            form_field
            for form_field in self.form_fields
            if decides or form_field.name == _SECRET_FIELD.name or not _requires_instance_permission(form_field)
        ]

    def parse_form(self, form: Form) -> dict[str, object]:
        values = super().parse_form(form)
        return (
            values
            if values.get(_SECRET_FIELD.name)
            else {name: item for name, item in values.items() if name != _SECRET_FIELD.name}
        )


def _requires_instance_permission(form_field: FormField) -> bool:
    declared = _DECLARED.get(form_field.command_member)
    return declared is not None and bool(declared.options.permission)


class UpstreamProviderCreatePage(UpstreamProviderFormPage, CreatePage):
    """Adds a provider. The form shows its redirect URI from the start, because providers ask for it before they
    issue a client id and secret.
    """

    section, section_label = "upstream-providers", gettext_lazy("Identity providers")
    title = gettext_lazy("New identity provider")
    form_fields = _provider_fields()
    command = CreateUpstreamProvider
    resource_path = "upstream-providers"
    submit_label = gettext_lazy("Add")

    def initial_values(self) -> Mapping[str, FieldValue]:
        return {**super().initial_values(), SUBMISSION_ID_FIELD: self._submission_id}

    def template_variables(self) -> Mapping[str, object]:
        login_url = self.request.registry.application.settings.login_url
        redirect = f"{login_url}{UpstreamProvider.CALLBACK_PATH}/{self._provider_id}"
        about = Markup("{} {}").format(
            self.translator.gettext(
                "First register this service at the provider, with this redirect URI. It stays the same after saving."
            ),
            self.template_macros.identifier(redirect),
        )
        return {**super().template_variables(), "about": about}

    def post(self) -> Response:
        self._submission_id = self._read_form().text(SUBMISSION_ID_FIELD) or self._submission_id
        return super().post()

    def submit(self, form: Form) -> Response:
        needs_secret = (
            form.text("authentication") != UpstreamAuthentication.PRIVATE_KEY_JWT or form.text("kind") in _SECRET_KINDS
        )
        if needs_secret and not form.text(_SECRET_FIELD.name):
            # Report other errors first: the redisplayed form would lose the secret.
            self.build_command(self.command, form)
            raise Invalid({_SECRET_FIELD.name: gettext_lazy("Enter the client secret.")})
        return super().submit(form)

    def create(self, command: CreateUpstreamProvider) -> Any:
        return self.services.upstream_providers.create(
            self.context.entity.id, command, principal=self.principal, id=self._provider_id
        )

    @cached_property
    def _submission_id(self) -> str:
        return new_id()

    @property
    def _provider_id(self) -> str:
        """Stable over redisplays of the form, and not chosen by the client."""
        return derive_id("upstream_provider", self.principal.id or "", self.context.entity.id, self._submission_id)


class UpstreamProviderEditPage(UpstreamProviderResourcePage, UpstreamProviderFormPage, EditPage):
    """The kind cannot be changed."""

    form_fields = _provider_fields("kind")
    command = ChangeUpstreamProvider

    def visible_fields(self) -> Sequence[FormField]:
        if not self.entity.secret_changed_at:
            return super().visible_fields()
        return [
            replace(form_field, hint=_UNCHANGED_SECRET_HINT) if form_field.name == _SECRET_FIELD.name else form_field
            for form_field in super().visible_fields()
        ]

    def initial_values(self) -> Mapping[str, FieldValue]:
        values = {
            form_field.name: form_field.format_value(getattr(self.entity, form_field.command_member))
            for form_field in self.visible_fields()
            if form_field.name != _SECRET_FIELD.name
        }
        return {**values, Form.VERSION_FIELD: str(self.entity.version)}


class DeleteUpstreamProviderPage(UpstreamProviderResourcePage, ResourceActionPage):
    path_suffix, permission_verb = "/delete", "delete"
    action_labels = (gettext_lazy("Delete"), gettext_lazy("Delete …"))
    title = gettext_lazy("Delete the identity provider “{name}”?")
    description = gettext_lazy("Removes it and its links to accounts for ever. The accounts stay.")
    impact = (
        gettext_lazy("Nobody signs in there any more. People who have no password here ask for one by mail."),
        gettext_lazy("The accounts of people stay. Their links to it are gone for ever."),
    )
    submit_label = gettext_lazy("Delete identity provider")

    def perform(self) -> str:
        back = self.parent_breadcrumbs[-1][1]
        self.services.upstream_providers.remove(self.entity.id, principal=self.principal)
        return back


_ACTIONS = (
    DeactivatePage.for_resource(
        UpstreamProviderResourcePage,
        title=gettext_lazy("Deactivate the identity provider “{name}”?"),
        description=gettext_lazy("Nobody signs in there any more. You can reactivate it later."),
        impact=(
            gettext_lazy("Nobody signs in there any more. Sessions that were begun there go on."),
            REACTIVATION_HINT,
        ),
        submit_label=gettext_lazy("Deactivate identity provider"),
    ),
    ReactivatePage.for_resource(
        UpstreamProviderResourcePage,
        title=gettext_lazy("Reactivate the identity provider “{name}”?"),
        description=gettext_lazy("People can sign in there again."),
        impact=(gettext_lazy("People can sign in there again."),),
        submit_label=gettext_lazy("Reactivate identity provider"),
    ),
    DeleteUpstreamProviderPage,
)


class UpstreamProviderDetailPage(UpstreamProviderResourcePage, ResourceDetailPage):
    actions = _ACTIONS
    hidden_fields = ("name", "kind", "claims")

    @property
    def lead(self) -> Sequence[str]:
        return [gettext_lazy("Identity provider"), _kind_label(self.entity)]

    @property
    def badges(self) -> Sequence[Badge]:
        waits = [] if self.entity.is_usable or not self.entity.active else [gettext_lazy("Client secret is missing")]
        return [*super().badges, *(Badge(self.translator.gettext(message), "warning") for message in waits)]

    @property
    def descriptions(self) -> Descriptions:
        provider = self.entity
        settings = self.field_descriptions(
            provider if provider.issuer else replace(provider, issuer=provider.effective_issuer),
            UPSTREAM_PROVIDER_FIELDS,
        )
        redirect = f"{self.request.registry.application.settings.login_url}{provider.callback_path}"
        return [
            (gettext_lazy("Id"), self.template_macros.identifier(provider.id)),
            (gettext_lazy("Redirect URI"), self.template_macros.identifier(redirect)),
            *settings,
            (gettext_lazy("Claims"), ", ".join(provider.claims)),
            (
                gettext_lazy("Client secret"),
                self.template_macros.when(provider.secret_changed_at)
                if provider.secret_changed_at
                else gettext_lazy("None"),
            ),
            (gettext_lazy("Since"), self.template_macros.when(provider.created_at, relative=True)),
        ]


_LIST = "/organizations/{organization}/upstream-providers"

ROUTES = (
    ConsoleRoute(_LIST, UpstreamProviderListPage, "upstream_provider.read", route_contexts.organization_context),
    ConsoleRoute(
        f"{_LIST}/new", UpstreamProviderCreatePage, "upstream_provider.write", route_contexts.organization_context
    ),
    *resource_routes(UpstreamProviderDetailPage, UpstreamProviderEditPage, *_ACTIONS),
)

"""Identity providers for the people of an organization: list, add, detail page, edit, deactivate, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyramid.interfaces import IRoutesMapper
from pyramid.request import Request
from pyramid.response import Response

from identity.crypto.secrets import derive_id, new_id
from identity.domain.entity import entity_fields
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.upstream_providers import UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.http.route_contexts import RouteContext
from identity.pages.forms import SUBMISSION_ID_FIELD, FieldValue, Form
from identity.plugins.console.actions import REACTIVATION_HINT, Action, Deactivation, Reactivation
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, CreatePage, EditForm, EditPage, create_route, edit_route
from identity.plugins.console.fields.provider_kinds import PROVIDER_KINDS, SECRET_FIELD, HostField
from identity.plugins.console.fields.upstream_providers import UPSTREAM_PROVIDER_FIELDS
from identity.plugins.console.form_fields import FormField, change_field
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_pages import DetailPage, ResourcePages, active_badge
from identity.plugins.console.resource_types import ORGANIZATION, UPSTREAM_PROVIDER, AnyResourceType, ResourceType
from identity.plugins.console.resources.attribute_mappings import ATTRIBUTE_MAPPINGS
from identity.plugins.console.resources.group_mappings import GROUP_MAPPINGS, mapped_members_impact
from identity.services.commands import CommandT
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider

_DECLARED = entity_fields(UpstreamProvider)
_KIND_LABELS = UPSTREAM_PROVIDER_FIELDS["kind"].value_labels


def _kind_label(provider: UpstreamProvider) -> str:
    return str(_KIND_LABELS[provider.kind])


def _rows(page: ConsolePage, providers: Sequence[UpstreamProvider]) -> Sequence[Cells]:
    return [
        (
            page.components.named(provider.name, UPSTREAM_PROVIDER.path_of(provider), square=True),
            page.translate(_kind_label(provider)),
            page.render_badge(state_badge(provider.active, page.translator)),
            page.template_macros.when(provider.created_at),
        )
        for provider in providers
    ]


UPSTREAM_PROVIDERS = ResourceList(
    path="/upstream-providers",
    permission="upstream_provider.read",
    section="upstream-providers",
    title=_("Identity providers"),
    lead=_("Where people can sign in instead: at an OpenID provider, or at GitHub."),
    columns=(_("Name"), _("Kind"), _("State"), _("Since")),
    fetch=lambda page, request: page.services.storage.upstream_providers.page(page.entity_of(Organization).id, request),
    rows=_rows,
    empty_title=_("No identity providers yet"),
    empty_text=_("Let people sign in with an account they already have, such as a company or Google account."),
    create="upstream_provider.write",
    entity_label=_("identity provider"),
)


_UNCHANGED_SECRET_HINT = _("Leave empty to keep the current one.")
#: The page of another plugin that tests a provider; drafts go there first.
_TEST_ROUTE = "console.upstream-providers.upstream_provider.test"
#: The field of the submit buttons, and the value that turns a new provider on without a test.
_NEXT_FIELD, _TURN_ON = "next", "on"


class UpstreamProviderFormPage(ConsoleFormPage):
    secret_fields = frozenset({SECRET_FIELD.name})

    def visible_fields(self) -> Sequence[FormField]:
        decides = self.services.access_control.is_permitted(self.principal, INSTANCE_WRITE, Resource.INSTANCE)
        return [
            field
            for field in self.form_fields
            if decides or field.name == SECRET_FIELD.name or not _requires_instance_permission(field)
        ]

    def parse_form(self, form: Form) -> dict[str, object]:
        """Without an empty secret, which leaves the stored one as it is."""
        values = super().parse_form(form)
        return {name: value for name, value in values.items() if value or name != SECRET_FIELD.name}


def _requires_instance_permission(field: FormField) -> bool:
    declared = _DECLARED.get(field.command_member)
    return declared is not None and bool(declared.options.permission)


class UpstreamProviderCreatePage(CreatePage, UpstreamProviderFormPage):
    """Adds a provider: first its kind is chosen, which the URL then names. The form shows the callback address from the
    start, because providers ask for it before they issue a client id and secret.
    """

    template = "console/upstream_provider_new.html"

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        form: CreateForm[CreateUpstreamProvider],
        resource_list: ResourceList[Any],
        parent: AnyResourceType,
    ) -> None:
        chosen = request.GET.get(_KIND_PARAM, "")
        self.kind = next((item for item in PROVIDER_KINDS.values() if item.kind.value == chosen), None)
        if self.kind is not None:
            form = replace(form, fields=self.kind.form_fields())
        super().__init__(context, request, form=form, resource_list=resource_list, parent=parent)
        # The callback comes before the first field.
        self.form_fields = tuple(replace(field, autofocus=False) for field in self.form_fields)

    def initial_values(self) -> Mapping[str, FieldValue]:
        usual_name = "" if self.kind is None else self.kind.usual_name
        issuer = {field.name: field.format_value("") for field in self.form_fields if isinstance(field, HostField)}
        return {
            **super().initial_values(),
            **issuer,
            "name": usual_name,
            SUBMISSION_ID_FIELD: self.submission_id,
        }

    def template_variables(self) -> Mapping[str, object]:
        tiles = [(item, f"{self.request.path}?{_KIND_PARAM}={item.kind.value}") for item in PROVIDER_KINDS.values()]
        variables = {**super().template_variables(), "tiles": tiles, "kind": self.kind}
        if self.kind is None:
            return variables
        drawn = self.visible_fields()
        values = [field for field in drawn if field.name in self.kind.value_names]
        people = [field for field in drawn if field not in values and not field.fieldset]
        login_url = self.request.registry.application.settings.login_url
        return {
            **variables,
            "redirect_uri": f"{login_url}{UpstreamProvider.CALLBACK_PATH}/{_provider_id(self)}",
            "values": [field.render(self) for field in values],
            "people": [field.render(self) for field in people],
            "more": [field.render(self) for field in drawn if field.fieldset],
        }

    def get(self) -> Response:
        self.submission_id = new_id()
        return super().get()

    def post(self) -> Response:
        if self.kind is None:
            return self.redirect(self.request.path)
        self.submission_id = self._read_form().text(SUBMISSION_ID_FIELD) or new_id()
        return super().post()

    def build_command(self, command: type[CommandT], form: Form, /, **known: object) -> CommandT:
        """A new provider is a draft unless it is turned on at once."""
        kind = None if self.kind is None else self.kind.kind.value
        turned_on = form.text(_NEXT_FIELD) == _TURN_ON
        return super().build_command(command, form, kind=kind, active=turned_on, **known)

    def submit(self, form: Form) -> Response:
        by_key = form.text("authentication") == UpstreamAuthentication.PRIVATE_KEY_JWT
        if not form.text(SECRET_FIELD.name) and not (by_key and self.kind is not None and not self.kind.needs_secret):
            # Report other errors first: the redisplayed form would lose the secret.
            self.build_command(CreateUpstreamProvider, form)
            raise Invalid({SECRET_FIELD.name: _("Enter the client secret.")})
        return super().submit(form)


def _provider_id(page: CreatePage) -> str:
    """Stable over redisplays of the form, and not chosen by the client."""
    organization = page.entity_of(Organization)
    return derive_id("upstream_provider", page.principal.id or "", organization.id, page.submission_id)


def _create(page: CreatePage, command: CreateUpstreamProvider) -> str:
    provider = page.services.upstream_providers.create(
        page.entity_of(Organization).id, command, principal=page.principal, id=_provider_id(page)
    )
    path = UPSTREAM_PROVIDER.path_of(provider)
    routes = page.request.registry.getUtility(IRoutesMapper)
    return path if provider.active or routes.get_route(_TEST_ROUTE) is None else f"{path}/test"


_KIND_PARAM = "kind"

_CREATE = CreateForm(
    title=_("New identity provider"),
    fields=PROVIDER_KINDS[UpstreamKind.OPENID].form_fields(),
    command=CreateUpstreamProvider,
    create=_create,
    submit_label=_("Add"),
)


class UpstreamProviderEditPage(EditPage[UpstreamProvider], UpstreamProviderFormPage):
    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        resource_type: ResourceType[UpstreamProvider],
        form: EditForm[UpstreamProvider, ChangeUpstreamProvider],
    ) -> None:
        form = replace(form, fields=PROVIDER_KINDS[context.entity.kind].form_fields())
        super().__init__(context, request, resource_type=resource_type, form=form)

    def visible_fields(self) -> Sequence[FormField]:
        fields = super().visible_fields()
        if not self.entity.secret_changed_at:
            return fields
        return change_field(fields, SECRET_FIELD.name, hint=_UNCHANGED_SECRET_HINT)

    def initial_values(self) -> Mapping[str, FieldValue]:
        values = {
            field.name: field.format_value(getattr(self.entity, field.command_member))
            for field in self.visible_fields()
            if field.name != SECRET_FIELD.name
        }
        return {**values, Form.VERSION_FIELD: str(self.entity.version)}


#: The fields are those of the provider's kind, which cannot be changed.
_EDIT = EditForm[UpstreamProvider, ChangeUpstreamProvider](
    command=ChangeUpstreamProvider,
    change=lambda page, provider, command, version: page.services.upstream_providers.change(
        provider.id, command, expected_version=version, principal=page.principal
    ),
)

_ACTIONS = (
    Deactivation[UpstreamProvider](
        run=lambda page, provider: page.services.upstream_providers.deactivate(provider.id, principal=page.principal),
        title=_("Deactivate the identity provider “{name}”?"),
        description=_("People can no longer sign in with it. You can reactivate it later."),
        impact=(_("People can no longer sign in with it. Sessions started with it continue."), REACTIVATION_HINT),
        submit_label=_("Deactivate identity provider"),
    ),
    Reactivation[UpstreamProvider](
        run=lambda page, provider: page.services.upstream_providers.reactivate(provider.id, principal=page.principal),
        title=_("Reactivate the identity provider “{name}”?"),
        description=_("People can sign in there again."),
        impact=(_("People can sign in there again."),),
        submit_label=_("Reactivate identity provider"),
    ),
    Action[UpstreamProvider](
        path="/delete",
        permission="delete",
        run=lambda page, provider: page.services.upstream_providers.remove(provider.id, principal=page.principal),
        done=lambda page, provider: page.parent_breadcrumbs[-1][1],
        label=_("Delete"),
        button=_("Delete …"),
        title=_("Delete the identity provider “{name}”?"),
        description=_("Permanently removes it and its links to accounts. The accounts stay."),
        impact=lambda page, provider: [
            _("People can no longer sign in with it. Those without a password here can request one by mail."),
            _("People's accounts stay. Their links to it are permanently removed."),
            *mapped_members_impact(page, page.services.group_mappings.list_of_provider(provider.id)),
        ],
        submit_label=_("Delete identity provider"),
    ),
)


def _badges(page: DetailPage[UpstreamProvider], provider: UpstreamProvider) -> Sequence[Badge]:
    waits = [] if provider.is_usable or not provider.active else [_("Client secret is missing")]
    return [*active_badge(page, provider), *(Badge(page.translator.gettext(message), "warning") for message in waits)]


def _descriptions(page: DetailPage[UpstreamProvider], provider: UpstreamProvider) -> Descriptions:
    ui = page.template_macros
    completed = provider if provider.issuer else replace(provider, issuer=provider.effective_issuer)
    redirect = f"{page.request.registry.application.settings.login_url}{provider.callback_path}"
    changed_at = provider.secret_changed_at
    return [
        (_("Id"), ui.identifier(provider.id)),
        (_("Redirect URI"), ui.identifier(redirect)),
        *page.field_descriptions(completed, UPSTREAM_PROVIDER_FIELDS),
        (_("Claims"), ", ".join(provider.claims)),
        (_("Client secret"), ui.when(changed_at) if changed_at else _("None")),
        (_("Since"), ui.when(provider.created_at, relative=True)),
    ]


_PAGES = ResourcePages(
    type=UPSTREAM_PROVIDER,
    lead=lambda page, provider: [_("Identity provider"), _kind_label(provider)],
    badges=_badges,
    descriptions=_descriptions,
    sections=lambda page, provider: [page.list_section(GROUP_MAPPINGS), page.list_section(ATTRIBUTE_MAPPINGS)],
    actions=_ACTIONS,
    hidden_fields=("name", "kind", "claims"),
)

ROUTES = (
    list_route(UPSTREAM_PROVIDERS, ORGANIZATION),
    create_route(_CREATE, UPSTREAM_PROVIDERS, ORGANIZATION, UpstreamProviderCreatePage),
    edit_route(UPSTREAM_PROVIDER, _EDIT, UpstreamProviderEditPage),
    *_PAGES.routes(),
)

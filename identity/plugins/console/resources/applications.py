"""Applications of a project: list, registration in two steps, detail page, edit, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.applications import (
    PRIVATE_KEY_JWT,
    Application,
    ApplicationType,
    ConsentRule,
    redirect_uri_error,
)
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField, entity_fields
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.projects import Project
from identity.domain.users import TokenFormat
from identity.domain.validators import MAX_TOKEN_LIFETIME
from identity.http.sector_identifiers import read_sector_list
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import REACTIVATION_HINT, AccessRevocation, Deactivation, Deletion, Reactivation
from identity.plugins.console.badges import Badge, secrets_badge, state_badge
from identity.plugins.console.client_secrets import ALREADY_CREATED_MESSAGE, ClientSecrets
from identity.plugins.console.connect import ADD_ADDRESSES, CONNECT_PATH, ConnectApplicationPage, change_application
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.field_labels import FieldLabel, available_fields
from identity.plugins.console.fields.applications import (
    APPLICATION_FIELDS,
    APPLICATION_TYPE_OPTIONS,
    ORIGIN_LABELS,
    REDIRECT_URI_EXAMPLES,
)
from identity.plugins.console.form_fields import FormField, change_field, form_fields, format_minutes, split_lines
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, OptionalColumn, ResourceList, list_route
from identity.plugins.console.page_sections import DescriptionListSection, Descriptions, NoteSection
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
    active_badge,
    format_lines,
    format_value,
    list_tab,
)
from identity.plugins.console.resource_types import APPLICATION, PROJECT, ResourcePage
from identity.plugins.console.resources.application_log import LOG_PATH, log_section
from identity.plugins.console.resources.branding import BRANDING_PATH, branding_section
from identity.plugins.console.resources.federated_credentials import (
    APPLICATION_FEDERATED_CREDENTIALS,
    has_federated_credentials,
)
from identity.plugins.console.try_it import TRY_IT_PATH, TryItPage, application_endpoints
from identity.provider.endpoints import metadata
from identity.services.commands import CommandT
from identity.services.commands.applications import ChangeApplication, RegisterApplication

_MINUTE = timedelta(minutes=1)

#: URLs that applications are configured with, by their names in the discovery document.
_ENDPOINT_LABELS = {
    "authorization_endpoint": _("Authorization endpoint"),
    "token_endpoint": _("Token endpoint"),
    "userinfo_endpoint": _("User info endpoint"),
    "introspection_endpoint": _("Introspection endpoint"),
    "revocation_endpoint": _("Revocation endpoint"),
    "end_session_endpoint": _("End session endpoint"),
    "jwks_uri": _("Signing keys"),
}


def _rows(page: ConsolePage, applications: Sequence[Application]) -> Sequence[Cells]:
    """With their secrets in one badge; public clients have none."""
    ui = page.template_macros
    counts = page.services.storage.applications.count_secrets([application.id for application in applications])
    return [
        (
            page.components.named(
                application.name,
                APPLICATION.path_of(application),
                sub=page.translate(ORIGIN_LABELS[application.origin]) if application.is_dynamic else "",
                square=True,
            ),
            page.translate(APPLICATION_TYPE_OPTIONS[application.type].label),
            ui.code(application.id),
            page.render_placeholder(_("None"))
            if not application.uses_client_secret
            else page.render_badge(secrets_badge(counts.get(application.id, 0), page.translator)),
            page.render_badge(state_badge(application.active, page.translator)),
        )
        for application in applications
    ]


APPLICATIONS = ResourceList(
    path="/applications",
    permission="application.read",
    title=_("Applications"),
    lead=_("Programs that people sign in to, and APIs that check tokens."),
    columns=(_("Name"), _("Type"), _("Client id"), _("Secret"), _("State")),
    optional_columns=lambda page: [
        OptionalColumn(
            "created", _("Created"), lambda page, items: [page.template_macros.when(item.created_at) for item in items]
        )
    ],
    sort_orders=(("name", _("Name")),),
    fetch=lambda page, request: page.services.storage.applications.page(page.entity_of(Project).id, request),
    rows=_rows,
    empty_title=_("No applications yet"),
    empty_text=_("Register the first application. It gets a client id and, where it can keep one, a secret."),
    create="application.write",
    entity_label=_("application"),
    all_label=_("All applications …"),
    is_primary_task=True,
)

_ACTIONS = (
    Deactivation[Application](
        run=lambda page, application: page.services.applications.deactivate(application.id, principal=page.principal),
        title=_("Deactivate the application “{name}”?"),
        description=_("People can no longer sign in to it. You can reactivate it later."),
        impact=(_("People cannot sign in to it, and it neither gets nor checks tokens."), REACTIVATION_HINT),
        submit_label=_("Deactivate application"),
    ),
    AccessRevocation[Application](
        run=lambda page, entity: page.services.access_revocations.revoke_application(
            entity.id, principal=page.principal
        ),
        target=DeletionTarget.APPLICATION,
    ),
    Reactivation[Application](
        run=lambda page, application: page.services.applications.reactivate(application.id, principal=page.principal),
        title=_("Reactivate the application “{name}”?"),
        description=_("People sign in to it again."),
        impact=(_("People sign in to it again, and its secrets work again."),),
        submit_label=_("Reactivate application"),
    ),
    Deletion[Application](
        run=lambda page, application: page.services.applications.remove(application.id, principal=page.principal),
        target=DeletionTarget.APPLICATION,
        title=_("Delete the application “{name}”?"),
        description=_("Permanently removes the application and its secrets."),
        impact=(_("This cannot be undone. Its client id never works again."),),
        submit_label=_("Delete application"),
    ),
)

_UNUSABLE_SECRETS = _(
    "Secrets from before the change to client_secret_jwt cannot sign: revoke them, and create a new one."
)
_SECRETS = ClientSecrets(
    owner=APPLICATION,
    service=lambda services: services.applications,
    section_id="secrets",
    tab_path="/secrets",
    title=_("Client secrets"),
    lead=_(
        "Two can be active, so that you can replace one without a gap: create a new one, "
        "switch to it, then revoke the old one."
    ),
    empty=_("No client secret: the application gets no tokens until it has one."),
    is_primary_task=True,
    impact=_("Wherever it is still in use, the application no longer gets tokens."),
    last_impact=_("It is the only one: the application gets no tokens until you create a new one."),
    tokens=_("Tokens that the application obtained for itself with it end at once. Users' tokens stay valid."),
)


def _secrets(page: ConsolePage, application: Application) -> ClientSecrets:
    """With a warning, if some cannot do what they are for."""
    unusable = page.services.applications.has_unusable_secrets(application)
    return replace(_SECRETS, lead=_UNUSABLE_SECRETS) if unusable else _SECRETS


def _has_sign_in(application: Application) -> bool:
    return application.type is not ApplicationType.API


def _badges(page: DetailPage[Application], application: Application) -> Sequence[Badge]:
    development = [Badge(page.translator.gettext("Development"), "warning")] if application.development else []
    dynamic = [Badge(page.translate(ORIGIN_LABELS[application.origin]), "warning")] if application.is_dynamic else []
    return [*active_badge(page, application), *development, *dynamic]


def _descriptions(page: DetailPage[Application], application: Application) -> Descriptions:
    return [
        (_("Client id"), page.template_macros.identifier(application.id)),
        (_("Created"), page.template_macros.when(application.created_at, relative=True)),
    ]


def _setting_sections(page: DetailPage[Application], application: Application) -> Sections:
    labels = {name: APPLICATION_FIELDS[name] for name in _URI_FIELDS}
    names = available_fields({name: label.is_available for name, label in labels.items()}, page, application)
    addresses = [(labels[name].label, format_lines(page, getattr(application, name))) for name in names]
    fields, groups = entity_fields(Application), dict[str, dict[str, FieldLabel]]()
    for name, label in APPLICATION_FIELDS.items():
        value = getattr(application, name)
        # Most applications use few of the settings, and a page of defaults hides these.
        if value or value != fields[name].default or fields[name].type is timedelta:
            groups.setdefault(label.section or _("General"), {})[name] = label
    settings = ((title, page.field_descriptions(application, labels)) for title, labels in groups.items())
    sections = [
        DescriptionListSection(f"settings-{number}", title, facts=facts)
        for number, (title, facts) in enumerate(settings, start=1)
        if facts
    ]
    return [
        DescriptionListSection("addresses", _("Addresses"), facts=addresses) if _has_sign_in(application) else None,
        *sections,
        NoteSection(page.translate(_("All other settings have their defaults.")), is_secondary=True),
        _endpoints(page, application),
    ]


def _endpoints(page: ConsolePage, application: Application) -> DescriptionListSection:
    """The service's URLs to configure the application with."""
    document = application_endpoints(page, application)
    issuer = page.request.registry.application.settings.issuer_url
    known = [
        (_("Issuer"), issuer),
        (_("Discovery document"), issuer + metadata.ENDPOINT.path),
        *((label, document[name]) for name, label in _ENDPOINT_LABELS.items() if name in document),
    ]
    return DescriptionListSection(
        "endpoints",
        _("What the application needs to know about this service"),
        _("Most libraries need the issuer alone, and read the rest from the discovery document."),
        facts=[(label, page.template_macros.identifier(address)) for label, address in known],
    )


def _format_value(
    page: DetailPage[Application], application: Application, setting: EntityField, value: object
) -> object:
    if setting.type is str:
        return page.template_macros.code(value) if value else page.render_placeholder(_("None"))
    if setting.type is not timedelta:
        return format_value(page, application, setting, value)
    if isinstance(value, timedelta):
        return page.translator.ngettext("{n} minute", "{n} minutes", value // _MINUTE)
    usual = getattr(page.request.registry.application.settings, setting.name)
    text = page.translator.ngettext("{n} minute", "{n} minutes", usual // _MINUTE)
    return text + " " + page.render_placeholder(_("(default)"))


#: The query parameter with the type in step 2 of the registration.
TYPE_PARAM = "type"

_URI_FIELDS = ("redirect_uris", "post_logout_redirect_uris")
_MAX_LIFETIME_MINUTES = MAX_TOKEN_LIFETIME // _MINUTE
#: In the error summary each message names its lifetime.
_LIFETIME_ERRORS = {
    "access_token_lifetime": _(
        "Enter the lifetime of access tokens as minutes from 1 to {most}.", most=_MAX_LIFETIME_MINUTES
    ),
    "id_token_lifetime": _("Enter the lifetime of ID tokens as minutes from 1 to {most}.", most=_MAX_LIFETIME_MINUTES),
}
_INHERITED_LIFETIME_HINT = _("In minutes. If empty: {n}, the default.")


_FIELDS = change_field(form_fields(Application, APPLICATION_FIELDS), "redirect_uris", required=True)


class ApplicationFormPage(ConsoleFormPage):
    """Leaves out fields that do not apply to the application's type, or that the caller may not decide."""

    template = "console/application_form.html"
    form_fields = _FIELDS

    @property
    def application_type(self) -> ApplicationType | None:
        """None until a type is chosen."""
        raise NotImplementedError

    @cached_property
    def can_set_consent_rule(self) -> bool:
        """True if the caller may turn consent off."""
        return bool(self.services.applications.can_set_privileged_fields(self.principal))

    def visible_fields(self) -> Sequence[FormField]:
        known, kind = entity_fields(Application), self.application_type
        useful = (field for field in super().visible_fields() if known[field.command_member].applies_to(kind))
        permitted = (
            field for field in useful if self.can_set_consent_rule or not known[field.command_member].options.permission
        )
        return [replace(field, hint=self._field_hint(field)) for field in permitted]

    def _field_hint(self, field: FormField) -> str:
        kind = self.application_type
        if field.name == "redirect_uris" and kind in REDIRECT_URI_EXAMPLES:
            return _(
                "Where people return after signing in, one address per line, exactly as the "
                "application sends it. For example {example}",
                example=REDIRECT_URI_EXAMPLES[kind],
            )
        if field.name == "name":
            signs_in = _("Shown to people who sign in to it.")
            return _("Shown in lists and in audit events.") if kind is ApplicationType.API else signs_in
        if field.name in _LIFETIME_ERRORS:
            usual = format_minutes(getattr(self.request.registry.application.settings, field.name))
            return self.translator.gettext(_INHERITED_LIFETIME_HINT, n=usual)
        return field.hint

    def template_variables(self) -> Mapping[str, object]:
        kind = self.application_type
        first = {
            "type": kind,
            "type_label": "" if kind is None else self.translator.gettext(APPLICATION_TYPE_OPTIONS[kind].label),
            "types": APPLICATION_TYPE_OPTIONS,
            "first_step": self.form_action() if self.is_creation else "",
            "check": True,
        }
        return first if kind is None else {**super().template_variables(), **first}

    def validate(self, form: Form) -> None:
        """Check URIs and lifetimes. Raises Invalid."""
        problems = self._problems(form)
        if problems:
            raise Invalid(problems)

    def parse_form(self, form: Form) -> dict[str, object]:
        values = super().parse_form(form)
        return {**values, **{name: self._parse_lifetime(form, name) for name in _LIFETIME_ERRORS if name in values}}

    def build_command(self, command: type[CommandT], form: Form, /, **known: object) -> CommandT:
        """Raises Invalid with all errors at once."""
        problems = self._problems(form)
        try:
            decoded = super().build_command(command, form, **known)
        except Invalid as refused:
            raise Invalid({**refused.fields, **problems}) from None
        if problems:
            raise Invalid(problems)
        return decoded

    def _problems(self, form: Form) -> dict[str, str]:
        """The first problem of each field with URIs, and those of lifetimes."""
        problems: dict[str, str] = {}
        kind, development = self.application_type, bool(form.text("development"))
        if kind is not None:
            for name in _URI_FIELDS:
                for uri in split_lines(form.text(name)):
                    problem = redirect_uri_error(uri, type=kind, development=development)
                    if problem is not None:
                        problems.setdefault(name, problem)
        return problems | {
            name: message
            for name, message in _LIFETIME_ERRORS.items()
            if form.text(name) and self._parse_lifetime(form, name) is None
        }

    def _parse_lifetime(self, form: Form, name: str) -> timedelta | None:
        """The lifetime; None if empty or malformed. A stored lifetime that is not in whole minutes is kept if
        unchanged.
        """
        text = form.text(name).strip()
        stored: timedelta | None = getattr(self.stored, name, None)
        if stored is not None and text == format_minutes(stored):
            return stored
        if not text.isascii() or not text.isdecimal() or len(text) > 5:
            return None
        typed = int(text) * _MINUTE
        return typed if timedelta() < typed <= MAX_TOKEN_LIFETIME else None


class RegisterApplicationPage(ResourcePage[Project], ApplicationFormPage):
    """Step 1: choose the type. Step 2: the other settings, with defaults for the type."""

    is_creation = True
    title = _("New application")
    submit_label = _("Register")
    list_breadcrumb = (APPLICATIONS.title, APPLICATIONS.path)

    @property
    def application_type(self) -> ApplicationType | None:
        named = self.request.GET.get(TYPE_PARAM, "")
        return ApplicationType(named) if named in {*ApplicationType} else None

    def initial_values(self) -> Mapping[str, FieldValue]:
        if self.application_type is None:
            return {}
        usual = self.services.applications.type_defaults(self.application_type)
        chosen = {
            field.name: tuple(sorted(usual.get(field.command_member, ())))
            for field in self.form_fields
            if field.is_multi_valued
        }
        return {
            **chosen,
            "authentication_method": usual["authentication_method"],
            "access_token_type": TokenFormat.OPAQUE.value,
            "consent": ConsentRule.WHEN_FOREIGN.value,
        }

    def submit(self, form: Form) -> Response:
        """Register it. The client secret is shown in this response only, so there is no redirect."""
        if self.application_type is None:
            return self.redirect(self.form_action())
        command = self.build_command(RegisterApplication, form, type=self.application_type)
        read_sector_list(self.request, command, organization_id=self.entity.organization_id)
        self.redeem_submission_id(form, ALREADY_CREATED_MESSAGE)
        application, secret = self.services.applications.register_with_secret(
            self.entity.id, command, principal=self.principal
        )
        href = APPLICATION.path_of(application)
        if secret is None:
            return self.redirect(self.path_with_flash(href))
        return self.render_secret(_("Application registered"), secret, application.id, href)


class ApplicationEditPage(EditPage[Application], ApplicationFormPage):
    """The type cannot be changed."""

    @property
    def application_type(self) -> ApplicationType:
        return self.entity.type


_EDIT = EditForm[Application, ChangeApplication](fields=_FIELDS, command=ChangeApplication, change=change_application)

_PAGES = ResourcePages(
    type=APPLICATION,
    lead=lambda page, application: [
        APPLICATION_TYPE_OPTIONS[application.type].label,
        page.services.projects.get(application.project_id).name,
    ],
    badges=_badges,
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Settings"), sections=_setting_sections),
        ResourceTab(
            label=_("Connect"),
            path=CONNECT_PATH,
            page=ConnectApplicationPage,
        ),
        ResourceTab(
            label=_("Try it"),
            path=TRY_IT_PATH,
            page=TryItPage,
            is_available=lambda page, application: _has_sign_in(application),
        ),
        ResourceTab(
            label=_("Secrets"),
            path=_SECRETS.tab_path,
            sections=lambda page, application: [_secrets(page, application).section(page)],
            is_available=lambda page, application: application.uses_client_secret,
        ),
        list_tab(
            APPLICATION_FEDERATED_CREDENTIALS.resource_list,
            is_available=lambda page, application: (
                application.authentication_method == PRIVATE_KEY_JWT and has_federated_credentials(page, application)
            ),
        ),
        ResourceTab(
            label=_("Branding"),
            path=BRANDING_PATH,
            sections=lambda page, application: [branding_section(page)],
            is_available=lambda page, application: _has_sign_in(application),
        ),
        ResourceTab(label=_("Log"), path=LOG_PATH, sections=lambda page, application: [log_section(page, application)]),
    ),
    avatar=lambda page, application: application.name,
    actions=_ACTIONS,
    more_actions=(ADD_ADDRESSES,),
    hidden_fields=("name", "redirect_uris", "post_logout_redirect_uris", "development"),
    format_value=_format_value,
)

ROUTES = (
    PROJECT.page_route("/applications/new", RegisterApplicationPage, "application.write"),
    edit_route(APPLICATION, _EDIT, ApplicationEditPage),
    list_route(APPLICATIONS, PROJECT),
    *_PAGES.routes(),
    *_SECRETS.routes(),
)

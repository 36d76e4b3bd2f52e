"""Organizations: list, create, detail page, edit, deactivate and delete; export and import as a document."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField
from identity.domain.errors import Invalid
from identity.domain.messages import Message
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.http.error_views import MalformedRequest
from identity.http.json_stream import parse_json_stream
from identity.http.large_documents import organization_export_response
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.forms import Form
from identity.plugins.console.actions import REACTIVATION_HINT, AccessRevocation, Deactivation, Deletion, Reactivation
from identity.plugins.console.badges import state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, CreatePage, EditForm, EditPage, create_route, edit_route
from identity.plugins.console.fields.organizations import ORGANIZATION_FIELDS
from identity.plugins.console.form_fields import FormField, change_field, form_fields
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import (
    ActionSection,
    DescriptionListSection,
    Descriptions,
    NoteSection,
)
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
    active_badge,
    format_value,
    list_tab,
)
from identity.plugins.console.resource_types import (
    INSTANCE,
    ORGANIZATION,
    ORGANIZATIONS_BREADCRUMBS,
    ORGANIZATIONS_PATH,
    ResourcePage,
)
from identity.plugins.console.resources.branding import BRANDING_PATH, branding_section
from identity.plugins.console.resources.legal_holds import legal_hold_badges, legal_hold_section
from identity.plugins.console.resources.mail_texts import MAIL_TEXTS_PATH, MAIL_TEXTS_TITLE
from identity.plugins.console.resources.managers import MANAGERS
from identity.plugins.console.resources.organization_domains import domains_section
from identity.plugins.console.upload_page import UploadFormPage
from identity.services.commands.desired_state import OrganizationDocument
from identity.services.commands.documents import FURTHER_PROBLEMS_KEY
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.organization_transfer import (
    EXPORT_PERMISSION,
    OrganizationTransfer,
    StreamedOrganizationImport,
)
from identity.storage.paging import PageRequest, ResultPage


def fetch_visible_organizations(page: ConsolePage, page_request: PageRequest) -> ResultPage[Organization]:
    return page.services.access_control.page_organizations(page.principal, page_request)


def _rows(page: ConsolePage, organizations: Sequence[Organization]) -> Sequence[Cells]:
    """Organizations of which the caller manages only a part have no link."""
    ui, access = page.template_macros, page.services.access_control
    return [
        (
            page.components.named(
                organization.name,
                ORGANIZATION.path_of(organization)
                if access.is_permitted(page.principal, "organization.read", Resource.of_organization(organization.id))
                else "",
                square=True,
            ),
            organization.primary_domain,
            page.render_badge(state_badge(organization.active, page.translator)),
            ui.when(organization.created_at),
        )
        for organization in organizations
    ]


#: By name.
ORGANIZATIONS = ResourceList(
    path="/organizations",
    permission=ANY_MANAGER_PERMISSION,
    section="organizations",
    title=_("Organizations"),
    lead=_("Each has its own users and projects."),
    columns=(_("Name"), _("Primary domain"), _("State"), _("Created")),
    sort_orders=(("name", _("Name")), ("primary_domain", _("Primary domain")), ("created_at", _("Created"))),
    fetch=fetch_visible_organizations,
    rows=_rows,
    empty_title=_("No organizations yet"),
    empty_text=_("An organization holds users and projects. Create one, then add a manager for it."),
    create="organization.create",
    entity_label=_("organization"),
    action=lambda page: page.button_link(
        _("Import"),
        f"{ORGANIZATIONS_PATH}/import",
        hidden_label=_("organization"),
        permission="organization.create",
    ),
)

_FIELDS = form_fields(Organization, ORGANIZATION_FIELDS)


class OrganizationFormPage(ConsoleFormPage):
    def visible_fields(self) -> Sequence[FormField]:
        proof = _("A custom domain becomes active once it is verified; until then, a generated one is used.")
        if self.services.domains.can_assert(self.principal):
            proof = _("You may enter a custom domain, which is active at once without proof.")
        hint = self.translate(self.domain_hint()) + " " + self.translate(proof)
        return change_field(self.form_fields, "primary_domain", hint=hint, required=not self.is_creation)

    def domain_hint(self) -> Message:
        raise NotImplementedError


class OrganizationCreatePage(CreatePage, OrganizationFormPage):
    """Without a primary domain one is derived from the name."""

    def domain_hint(self) -> Message:
        default = self.request.registry.application.settings.default_domain
        return _(
            "Part of every login name. If empty, it is derived from the name: {example}", example=f"acme-gmbh.{default}"
        )

    def parse_form(self, form: Form) -> dict[str, object]:
        return {**super().parse_form(form), "primary_domain": form.text("primary_domain") or None}


_CREATE = CreateForm(
    title=_("New organization"),
    fields=_FIELDS,
    command=CreateOrganization,
    create=lambda page, command: ORGANIZATION.path_of(
        page.services.organizations.create(command, principal=page.principal)
    ),
)


class OrganizationEditPage(EditPage[Organization], OrganizationFormPage):
    def visible_fields(self) -> Sequence[FormField]:
        """Callers who may not change more than the name see only that."""
        needed = {"primary_domain": "organization_domain.write", "registration": "organization_policy.write"}
        return [
            field
            for field in super().visible_fields()
            if field.name not in needed or self.has_permission(needed[field.name])
        ]

    def domain_hint(self) -> Message:
        return _("Part of every login name: changing it changes all of them.")


_EDIT = EditForm[Organization, ChangeOrganization](
    fields=_FIELDS,
    command=ChangeOrganization,
    change=lambda page, organization, command, version: page.services.organizations.change(
        organization.id, command, expected_version=version, principal=page.principal
    ),
)


def _is_own(page: ConsolePage, organization: Organization) -> bool:
    return page.subject.organization.id == organization.id


def _sign_out_message(page: ConsolePage, organization: Organization) -> str:
    return _("You belong to this organization: you are signed out too.") if _is_own(page, organization) else ""


def _deactivation_impact(page: ConsolePage, organization: Organization) -> Sequence[str]:
    later = _("A manager of the instance can reactivate it later.")
    return [
        _("Its users can no longer sign in, and its programs lose access at once."),
        _sign_out_message(page, organization),
        later if _is_own(page, organization) else REACTIVATION_HINT,
    ]


def _left_out_message(page: ConsolePage, organization: Organization) -> Sequence[str]:
    """Names who keeps their access: people above the caller, and the caller."""
    higher = page.services.access_control.list_more_privileged_users(page.principal, organization.id)
    found = page.services.storage.users.find_subjects(sorted(higher)) if higher else {}
    names = ", ".join(sorted(subject.login_name for subject in found.values()))
    left_out = _("Users with more rights than you are left out: {names}.", names=names) if names else ""
    subject = page.principal.subject
    is_member = subject is not None and subject.organization.id == organization.id
    return [left_out, _("Your own access is left out.") if is_member else ""]


_ACTIONS = (
    Deactivation[Organization](
        permission="delete",
        run=lambda page, organization: page.services.organizations.deactivate(
            organization.id, principal=page.principal
        ),
        title=_("Deactivate the organization “{name}”?"),
        description=_("Its users can no longer sign in. You can reactivate it later."),
        impact=_deactivation_impact,
        submit_label=_("Deactivate organization"),
    ),
    AccessRevocation[Organization](
        run=lambda page, entity: page.services.access_revocations.revoke_organization(
            entity.id, principal=page.principal
        ),
        target=DeletionTarget.ORGANIZATION,
        permission="delete",
        impact=_left_out_message,
    ),
    Reactivation[Organization](
        permission="delete",
        run=lambda page, organization: page.services.organizations.reactivate(
            organization.id, principal=page.principal
        ),
        title=_("Reactivate the organization “{name}”?"),
        description=_("Its users and programs can sign in again."),
        impact=(_("Its users and programs can sign in again."),),
        submit_label=_("Reactivate organization"),
    ),
    Deletion[Organization](
        run=lambda page, organization: page.services.organizations.remove(organization.id, principal=page.principal),
        target=DeletionTarget.ORGANIZATION,
        title=_("Delete the organization “{name}”?"),
        description=_("Permanently removes the organization with its users, projects and grants."),
        impact=lambda page, organization: [
            _("This cannot be undone. Everything in it is deleted with it."),
            _sign_out_message(page, organization),
        ],
        submit_label=_("Delete organization"),
    ),
)


_DOCUMENT_FIELD, _PRESERVE_IDS_FIELD = "document", "keep_ids"


class ExportOrganizationPage(ResourcePage[Organization], ConsoleFormPage):
    """Describes the document and serves it as a file."""

    template = "console/organization_export.html"

    title = _("Export {name}")

    def submit(self, form: Form) -> Response:
        """The file. Raises Denied if the caller may not read all of its content."""
        return organization_export_response(self.request, self.entity.id, principal=self.principal)


class ImportOrganizationPage(UploadFormPage):
    """Creates an organization from a document and redirects to its page."""

    template = "console/organization_import.html"
    section = "organizations"
    is_instance_page = True
    title = _("Import an organization")
    breadcrumbs = ORGANIZATIONS_BREADCRUMBS
    is_creation = True
    fields = (_DOCUMENT_FIELD, _PRESERVE_IDS_FIELD)
    document_field = _DOCUMENT_FIELD
    file_field = _DOCUMENT_FIELD

    def template_variables(self) -> Mapping[str, object]:
        return {
            **super().template_variables(),
            "may_keep_ids": self.has_permission(INSTANCE_WRITE),
            "largest": self._max_bytes,
        }

    def submit(self, form: Form) -> Response:
        try:
            with StreamedOrganizationImport() as incoming:
                document = self._document(incoming)
                self.redeem_submission_id(form)
                organization = OrganizationTransfer(self.services).import_document(
                    document, principal=self.principal, keep_ids=bool(form.text(_PRESERVE_IDS_FIELD))
                )
        except Invalid as refused:
            raise Invalid(self._errors_with_paths(refused.fields)) from None
        return self.redirect(self.path_with_flash(f"{ORGANIZATIONS_PATH}/{organization.id}"))

    @property
    def _max_bytes(self) -> int:
        return int(self.request.registry.application.settings.import_limit)

    @property
    def too_large_message(self) -> str:
        return _("The file is larger than {n} MiB.", n=self._max_bytes)

    def _document(self, incoming: StreamedOrganizationImport) -> OrganizationDocument:
        file = self.files.get(_DOCUMENT_FIELD)
        if file is None:
            raise Invalid({_DOCUMENT_FIELD: _("Choose the exported file.")})
        try:
            values = parse_json_stream(file, incoming.list_consumers)
        except MalformedRequest as problem:
            raise Invalid({_DOCUMENT_FIELD: problem.args[0]}) from None
        return incoming.document(values)

    def _errors_with_paths(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """Errors prefixed with their path in the document; errors of the text itself have none."""
        if _DOCUMENT_FIELD in problems:
            return problems
        t = self.translator.gettext
        more = {name: item for name, item in problems.items() if name == FURTHER_PROBLEMS_KEY}
        located = {path: item for path, item in problems.items() if path not in more}
        messages = {path: _("{place}: {problem}", place=path, problem=t(item)) for path, item in located.items()} | more
        return {_DOCUMENT_FIELD: _("Some places in the document need a correction."), **messages}


def _export_link(page: DetailPage[Organization], organization: Organization) -> Sequence[Markup]:
    if not OrganizationTransfer(page.services).can_export(organization.id, principal=page.principal):
        return []
    return [page.button_link(_("Export"), f"{page.resource_path}/export", hidden_label=organization.name)]


def _descriptions(page: DetailPage[Organization], organization: Organization) -> Descriptions:
    return [
        (_("Organization id"), page.template_macros.identifier(organization.id)),
        (_("Created"), page.template_macros.when(organization.created_at, relative=True)),
    ]


def _format_value(
    page: DetailPage[Organization], organization: Organization, setting: EntityField, value: object
) -> object:
    switched_on = setting.name == "registration" and organization.registration and organization.active
    if switched_on and not page.services.registration.is_open(organization):
        return _("Enabled here, but the sign-in policy lets nobody register")
    return format_value(page, organization, setting, value)


def _sections(page: DetailPage[Organization], organization: Organization) -> Sections:
    return [
        DescriptionListSection(
            "settings", _("Settings"), facts=page.field_descriptions(organization, ORGANIZATION_FIELDS)
        ),
        domains_section(page, organization),
        legal_hold_section(page),
    ]


def _mail_texts_section(page: DetailPage[Organization]) -> ActionSection | None:
    lead = _("Subject, greeting and closing words of each mail.")
    link = page.button_link(_("Change"), f"{page.resource_path}{MAIL_TEXTS_PATH}", hidden_label=MAIL_TEXTS_TITLE)
    rows = [(MAIL_TEXTS_TITLE, lead, link)] if page.has_permission("organization.write") else []
    return ActionSection("mail-texts", MAIL_TEXTS_TITLE, rows=rows) if rows else None


def _own_organization_note(page: DetailPage[Organization], organization: Organization) -> NoteSection | None:
    instance = page.services.find_instance()
    if (
        instance is None
        or instance.organization_id != organization.id
        or not page.has_permission("organization.delete")
    ):
        return None
    stays = _("This organization holds the service itself: it cannot be deactivated or deleted.")
    return NoteSection(stays, is_secondary=True)


_PAGES = ResourcePages(
    type=ORGANIZATION,
    lead=lambda page, organization: [_("Organization"), organization.primary_domain],
    badges=lambda page, organization: [*active_badge(page, organization), *legal_hold_badges(page)],
    header=_export_link,
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Overview"), sections=_sections),
        ResourceTab(
            label=_("Branding"),
            path=BRANDING_PATH,
            sections=lambda page, organization: [branding_section(page), _mail_texts_section(page)],
        ),
        list_tab(MANAGERS),
    ),
    avatar=lambda page, organization: organization.name,
    actions=_ACTIONS,
    note=_own_organization_note,
    label_overrides={"registration": _("Registration")},
    format_value=_format_value,
)

ROUTES = (
    INSTANCE.route("/organizations/import", ImportOrganizationPage, "organization.create"),
    ORGANIZATION.page_route("/export", ExportOrganizationPage, EXPORT_PERMISSION),
    list_route(ORGANIZATIONS, INSTANCE),
    create_route(_CREATE, ORGANIZATIONS, INSTANCE, OrganizationCreatePage),
    edit_route(ORGANIZATION, _EDIT, OrganizationEditPage),
    *_PAGES.routes(),
)

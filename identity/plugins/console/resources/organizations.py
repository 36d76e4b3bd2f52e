"""Organizations: list, create, detail page, edit, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from identity.domain.entity import EntityField
from identity.domain.messages import Message, gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.forms import Form
from identity.plugins.console.action_page import REACTIVATION_HINT, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.fields.organizations import ORGANIZATION_FIELDS
from identity.plugins.console.form_fields import FormField, form_fields
from identity.plugins.console.form_page import ConsoleFormPage, CreatePage, EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import (
    ORGANIZATIONS_BREADCRUMBS,
    ORGANIZATIONS_PATH,
    OrganizationResourcePage,
    resource_routes,
)
from identity.plugins.console.resources.branding import branding_section
from identity.plugins.console.resources.legal_holds import legal_hold_badges, legal_hold_section
from identity.plugins.console.resources.managers import ManagerListPage
from identity.plugins.console.resources.organization_domains import domains_section
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.organization_transfer import OrganizationTransfer
from identity.storage.paging import PageRequest, ResultPage


def fetch_visible_organizations(page: ConsolePage, page_request: PageRequest) -> ResultPage[Organization]:
    return page.services.access_control.page_organizations(page.principal, page_request)


class OrganizationListPage(ListPage):
    """By name; organizations of which the caller manages only a part have no link."""

    section = "organizations"
    is_instance_page = True
    title = gettext_lazy("Organizations")
    lead = gettext_lazy("Each has its own users and projects.")
    columns = (gettext_lazy("Name"), gettext_lazy("Primary domain"), gettext_lazy("State"), gettext_lazy("Created"))
    sort_orders = (
        ("name", gettext_lazy("Name")),
        ("primary_domain", gettext_lazy("Primary domain")),
        ("created_at", gettext_lazy("Created")),
    )
    empty_title = gettext_lazy("No organizations yet")
    empty_text = gettext_lazy(
        "An organization holds users and projects. Create one, then add a manager who looks after it."
    )
    create_permission, entity_label = "organization.create", gettext_lazy("organization")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Organization]:
        return fetch_visible_organizations(self, page_request)

    def build_cells(self, organization: Organization) -> Cells:
        reads = self.services.access_control.is_permitted(
            self.principal, "organization.read", Resource.of_organization(organization.id)
        )
        return (
            self.template_macros.named(organization.name, f"{ORGANIZATIONS_PATH}/{organization.id}" if reads else ""),
            organization.primary_domain,
            self.render_badge(state_badge(organization.active, self.translator)),
            self.template_macros.when(organization.created_at),
        )

    def filter_variables(self) -> Mapping[str, object]:
        may, href = self.can_create(), f"{ORGANIZATIONS_PATH}/import"
        return {"beside": self.button_link(gettext_lazy("Import"), href, hidden_label=self.entity_label) if may else ""}


class OrganizationFormPage(ConsoleFormPage):
    form_fields = form_fields(Organization, ORGANIZATION_FIELDS)

    def visible_fields(self) -> Sequence[FormField]:
        proof = gettext_lazy("A domain of one's own waits until it is proven; until then another one counts.")
        if self.services.domains.can_assert(self.principal):
            proof = gettext_lazy("A domain of one's own counts at once if you enter it, without a proof.")
        hint = self.translate(self.domain_hint()) + " " + self.translate(proof)
        return [
            replace(form_field, hint=hint, required=not self.is_creation)
            if form_field.name == "primary_domain"
            else form_field
            for form_field in self.form_fields
        ]

    def domain_hint(self) -> Message:
        raise NotImplementedError


class OrganizationCreatePage(OrganizationFormPage, CreatePage):
    """Without a primary domain one is derived from the name."""

    section = "organizations"
    is_instance_page = True
    title = gettext_lazy("New organization")
    breadcrumbs = ORGANIZATIONS_BREADCRUMBS
    command = CreateOrganization
    resource_path = "organizations"

    def domain_hint(self) -> Message:
        default = self.request.registry.application.settings.default_domain
        return gettext_lazy(
            "Part of every login name. Left empty, it is made of the name: {example}", example=f"acme-gmbh.{default}"
        )

    def parse_form(self, form: Form) -> dict[str, object]:
        return {**super().parse_form(form), "primary_domain": form.text("primary_domain") or None}

    def create(self, command: CreateOrganization) -> Any:
        return self.services.organizations.create(command, principal=self.principal)


class OrganizationEditPage(OrganizationResourcePage, OrganizationFormPage, EditPage):
    command = ChangeOrganization

    def visible_fields(self) -> Sequence[FormField]:
        """Callers who may not change more than the name see only that."""
        needed = {"primary_domain": "organization_domain.write", "registration": "organization_policy.write"}
        return [
            form_field
            for form_field in super().visible_fields()
            if form_field.name not in needed or self.has_permission(needed[form_field.name])
        ]

    def domain_hint(self) -> Message:
        return gettext_lazy("Part of every login name: with another domain all of them change.")


def _is_own_organization(page: OrganizationResourcePage) -> bool:
    return bool(page.subject.organization.id == page.entity.id)


def _sign_out_message(page: OrganizationResourcePage) -> str:
    return (
        gettext_lazy("You belong to this organization: you are signed out too.") if _is_own_organization(page) else ""
    )


def _deactivation_impact(page: OrganizationResourcePage) -> Sequence[str]:
    later = (
        gettext_lazy("A manager of the instance can reactivate it later.")
        if _is_own_organization(page)
        else REACTIVATION_HINT
    )
    return [
        gettext_lazy("Nobody of it signs in, and its programs lose access at once."),
        _sign_out_message(page),
        later,
    ]


_ACTIONS = (
    DeactivatePage.for_resource(
        OrganizationResourcePage,
        permission_verb="delete",
        title=gettext_lazy("Deactivate the organization “{name}”?"),
        description=gettext_lazy("Nobody of it signs in. You can reactivate it later."),
        impact=_deactivation_impact,
        submit_label=gettext_lazy("Deactivate organization"),
    ),
    ReactivatePage.for_resource(
        OrganizationResourcePage,
        permission_verb="delete",
        title=gettext_lazy("Reactivate the organization “{name}”?"),
        description=gettext_lazy("Its users and programs can sign in again."),
        impact=(gettext_lazy("Its users and programs can sign in again."),),
        submit_label=gettext_lazy("Reactivate organization"),
    ),
    DeletePage.for_resource(
        OrganizationResourcePage,
        title=gettext_lazy("Delete the organization “{name}”?"),
        description=gettext_lazy("Removes the organization with its users, projects and grants for ever."),
        undone=gettext_lazy("This cannot be undone. Everything in it is deleted with it."),
        also=_sign_out_message,
        submit_label=gettext_lazy("Delete organization"),
    ),
)


class OrganizationDetailPage(OrganizationResourcePage, ResourceDetailPage):
    actions = _ACTIONS
    label_overrides = {"registration": gettext_lazy("Registration")}  # noqa: RUF012

    @property
    def lead(self) -> Sequence[str]:
        return [gettext_lazy("Organization"), self.entity.primary_domain]

    @property
    def badges(self) -> Sequence[Badge]:
        return [*super().badges, *legal_hold_badges(self)]

    @property
    def header_links(self) -> Sequence[Markup]:
        if not OrganizationTransfer(self.services).can_export(self.entity.id, principal=self.principal):
            return super().header_links
        return [
            self.button_link(gettext_lazy("Export"), f"{self.resource_path}/export", hidden_label=self.entity_name),
            *super().header_links,
        ]

    @property
    def descriptions(self) -> Descriptions:
        return [
            (gettext_lazy("Organization id"), self.template_macros.identifier(self.entity.id)),
            *self.field_descriptions(self.entity, ORGANIZATION_FIELDS),
            (gettext_lazy("Created"), self.template_macros.when(self.entity.created_at, relative=True)),
        ]

    def format_value(self, setting: EntityField, value: Any) -> object:
        organization = self.entity
        switched_on = setting.name == "registration" and organization.registration and organization.active
        if switched_on and not self.services.registration.is_open(organization):
            return gettext_lazy("Switched on here, but the sign-in policy lets nobody register")
        return super().format_value(setting, value)

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        lead = gettext_lazy("Users who manage this organization and everything in it.")
        managers = ManagerListPage.bind_to_page(self).build_section(lead=lead)
        return [domains_section(self), branding_section(self), managers, legal_hold_section(self)]

    def actions_section(self) -> PageSection | NoteSection | None:
        instance = self.services.find_instance()
        if instance is None or instance.organization_id != self.entity.id:
            return super().actions_section()
        stays = gettext_lazy("This organization holds the service itself: it cannot be deactivated or deleted.")
        return NoteSection(stays, is_secondary=True) if self.has_permission("organization.delete") else None


_LIST = "/organizations"

ROUTES = (
    ConsoleRoute(_LIST, OrganizationListPage, ANY_MANAGER_PERMISSION, route_contexts.instance_context),
    ConsoleRoute(f"{_LIST}/new", OrganizationCreatePage, "organization.create", route_contexts.instance_context),
    *resource_routes(OrganizationDetailPage, OrganizationEditPage, *_ACTIONS),
)

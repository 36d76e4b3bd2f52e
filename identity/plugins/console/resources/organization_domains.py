"""Domains of an organization: pending and verified ones, and their verification."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.http import route_contexts
from identity.http.domain_verification import verify_domain
from identity.pages.forms import Form
from identity.pages.page import FormRedisplay
from identity.plugins.console.action_page import ResourceActionPage
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import Breadcrumbs, ConsolePage, path_value
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.form_fields import LITERAL_INPUT_ATTRIBUTES, FormField
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import Descriptions, TableSection
from identity.plugins.console.resource_page import ORGANIZATIONS_BREADCRUMBS, OrganizationResourcePage, resource_routes
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.domains import ASSERT_PERMISSION

#: To add, verify, remove and make primary.
WRITE_PERMISSION = "organization_domain.write"

_PROOF_LABELS = {
    DomainProof.NAME_SPACE: gettext_lazy("Part of this service"),
    DomainProof.DNS: gettext_lazy("DNS record"),
    DomainProof.FILE: gettext_lazy("File on the web server"),
    DomainProof.ASSERTED: gettext_lazy("Asserted by a manager of the instance"),
    DomainProof.UNPROVEN: gettext_lazy("None"),
}
_PRIMARY_LABEL = gettext_lazy("Primary domain")


def domains_section(page: OrganizationResourcePage) -> TableSection:
    rows = [
        (
            page.template_macros.named(
                domain.name,
                f"{page.resource_path}/domains/{domain.name}",
                page.translate(_PRIMARY_LABEL) if domain.name == page.entity.primary_domain else "",
            ),
            page.render_badge(_badge(page, domain)),
            page.translate(_PROOF_LABELS[domain.proof])
            if domain.proof
            else page.render_placeholder(gettext_lazy("None yet")),
        )
        for domain in page.services.domains.list_by_organization(page.entity.id)
    ]
    may_write, href = page.has_permission(WRITE_PERMISSION), f"{page.resource_path}/domains/new"
    return TableSection(
        "domains",
        gettext_lazy("Domains"),
        gettext_lazy("The names that the organization can go by, and those that wait for a proof."),
        page.button_link(gettext_lazy("New"), href, hidden_label=gettext_lazy("domain"), symbol="plus")
        if may_write
        else Markup(),
        columns=(gettext_lazy("Domain"), gettext_lazy("State"), gettext_lazy("Proof")),
        rows=rows,
    )


def _badge(page: ConsolePage, domain: OrganizationDomain) -> Badge:
    t = page.translator.gettext
    if not domain.is_effective:
        return Badge(t("Waiting"))
    return Badge(t("Verified"), "success") if domain.is_verified else Badge(t("Not proven"), "warning")


class AddDomainPage(OrganizationResourcePage, ConsoleFormPage):
    """Adds a domain and redirects to the instructions for verifying it."""

    back_path_suffix = "#domains"

    lead = gettext_lazy(
        "The organization can go by a domain of its own once you have proven that it is yours. The next page says how."
    )
    form_fields = (
        FormField(
            "domain",
            gettext_lazy("Domain"),
            gettext_lazy("For example {example}", example="acme.example"),
            autofocus=True,
            attributes=LITERAL_INPUT_ATTRIBUTES,
        ),
    )
    is_creation = True
    title = gettext_lazy("Add a domain")
    submit_label = gettext_lazy("Add domain")

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddDomain, form)
        self.redeem_submission_id(form)
        domain = self.services.domains.add(self.entity.id, command)
        return self.redirect(self.path_with_flash(f"{self.resource_path}/domains/{domain.name}"))


class OrganizationDomainResourcePage(OrganizationResourcePage):
    path: ClassVar[str] = f"{OrganizationResourcePage.path}/domains/{{domain}}"
    permission_verb = "write"

    @classmethod
    def permission(cls) -> str:
        """Changing domains needs a permission of its own."""
        return WRITE_PERMISSION if cls.permission_verb == "write" else super().permission()

    @cached_property
    def domain(self) -> OrganizationDomain:
        """Raises NotFound."""
        return self.services.domains.get(self.entity.id, path_value(self, "domain"))

    @property
    def entity_name(self) -> str:
        return self.domain.name

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"name": self.entity_name, "organization": self.entity.name}

    @property
    def organization_href(self) -> str:
        return super().resource_path

    @property
    def resource_path(self) -> str:
        return f"{self.organization_href}/domains/{self.entity_name}"

    @property
    def parent_breadcrumbs(self) -> Breadcrumbs:
        return [*ORGANIZATIONS_BREADCRUMBS, (self.entity.name, self.organization_href)]

    @property
    def is_primary(self) -> bool:
        """True for the domain of login names."""
        return self.entity_name == self.entity.primary_domain

    def sign_in_loss_message(self, *, primary: bool = False) -> Sequence[str]:
        """How many people of other organizations can no longer sign in by email address; empty for none."""
        lost = self.services.login_names.count_losing_email_sign_in(self.entity.id, self.entity_name, primary=primary)
        if not lost:
            return []
        return [
            ngettext_lazy(
                "{n} person of another organization can no longer sign in by an email address of this domain.",
                "{n} people of other organizations can no longer sign in by an email address of this domain.",
                lost,
            )
        ]


class VerifyDomainPage(OrganizationDomainResourcePage, ResourceActionPage):
    """Shows how to verify the domain, and checks."""

    path_suffix = "/verify"
    template = "console/verify_domain.html"
    is_destructive = False
    fields = ("domain",)
    action_labels = (gettext_lazy("Prove"), gettext_lazy("Prove …"))
    description = gettext_lazy("Set a DNS record, or put a file on the web server; then we look for it.")
    title = gettext_lazy("Prove {name}")
    submit_label = gettext_lazy("Check now")
    cancel_label = gettext_lazy("Later")

    @property
    def is_available(self) -> bool:
        return not self.domain.is_verified

    def template_variables(self) -> Mapping[str, object]:
        return {**super().template_variables(), "domain": self.domain}

    def submit(self, form: Form) -> Response:
        """Check now. Raises FormRedisplay if the proof is not found."""
        try:
            with self.rate_limited():
                verify_domain(self.request, self.entity.id, self.domain.name)
        except Invalid as refused:
            raise FormRedisplay(refused.fields["domain"]) from None
        return self.redirect(self.path_with_flash(self.resource_path))


class AssertDomainPage(OrganizationDomainResourcePage, ResourceActionPage):
    path_suffix = "/assert"
    action_labels = (gettext_lazy("Assert"), gettext_lazy("Assert …"))
    description = gettext_lazy("Say without a proof that the domain belongs to this organization.")
    title = gettext_lazy("Assert that {name} belongs to {organization}?")
    submit_label = gettext_lazy("Assert domain")
    cancel_label = gettext_lazy("Wait for the proof")

    @classmethod
    def permission(cls) -> str:
        return ASSERT_PERMISSION

    @property
    def is_available(self) -> bool:
        return not self.domain.is_verified and self.services.domains.can_assert(self.principal)

    @property
    def impact(self) -> Sequence[str]:
        # Shown only to callers who may assert domains: others must not learn which addresses of an unverified domain
        # are known.
        return [
            gettext_lazy("The organization can go by this name at once, without a proof. Assert only what you know."),
            gettext_lazy("No other organization can have it until it is removed here."),
            *self.sign_in_loss_message(),
        ]

    def perform(self) -> None:
        self.services.domains.assert_domain(self.entity.id, self.domain.name, principal=self.principal)


class SetPrimaryDomainPage(OrganizationDomainResourcePage, ResourceActionPage):
    path_suffix = "/primary"
    is_destructive = False
    action_labels = (gettext_lazy("Make primary"), gettext_lazy("Make primary …"))
    description = gettext_lazy("All login names of the organization change.")
    title = gettext_lazy("Make {name} the primary domain?")
    submit_label = gettext_lazy("Make primary")

    @property
    def cancel_label(self) -> str:
        return gettext_lazy("Keep {name}", name=self.entity.primary_domain)

    @property
    def is_available(self) -> bool:
        return self.domain.is_effective and not self.is_primary

    @property
    def impact(self) -> Sequence[str]:
        return [
            gettext_lazy(
                "All login names of the organization change: {before} becomes {after}.",
                before=f"anna@{self.entity.primary_domain}",
                after=f"anna@{self.domain.name}",
            ),
            *self.sign_in_loss_message(primary=True),
        ]

    def perform(self) -> str:
        """Raises Conflict for a pending domain."""
        if not self.domain.is_effective:
            raise Conflict(gettext_lazy("This domain has to be proven first."))
        command = ChangeOrganization(primary_domain=self.domain.name)
        self.services.organizations.change(self.entity.id, command, principal=self.principal)
        return self.organization_href


class RemoveDomainPage(OrganizationDomainResourcePage, ResourceActionPage):
    path_suffix = "/delete"
    action_labels = (gettext_lazy("Remove"), gettext_lazy("Remove …"))
    title = gettext_lazy("Remove the domain {name}?")
    submit_label = gettext_lazy("Remove domain")

    @property
    def description(self) -> str:  # type: ignore[override]
        return (
            gettext_lazy("Others can have it then.")
            if self.domain.is_effective
            else gettext_lazy("The organization waits for it no longer.")
        )

    @property
    def is_available(self) -> bool:
        return not self.is_primary and (
            not self.domain.is_effective or self.services.domains.can_assert(self.principal)
        )

    @property
    def impact(self) -> Sequence[str]:
        if not self.domain.is_effective:
            return [gettext_lazy("The record and the file prove nothing any more.")]
        return [
            gettext_lazy(
                "Another organization can have it then. Tokens and applications that know this name would take it for"
                " this organization."
            )
        ]

    def perform(self) -> str:
        self.services.domains.remove(self.entity.id, self.domain.name, principal=self.principal)
        return f"{self.organization_href}#domains"


class DomainDetailPage(OrganizationDomainResourcePage, ResourceDetailPage):
    permission_verb = "read"
    actions = (VerifyDomainPage, AssertDomainPage, SetPrimaryDomainPage, RemoveDomainPage)
    actions_title = gettext_lazy("What you can do")
    header_links = ()

    @property
    def lead(self) -> Sequence[str]:
        return [gettext_lazy("Domain"), self.entity.name]

    @property
    def badges(self) -> Sequence[Badge]:
        return [_badge(self, self.domain), *([Badge(self.translate(_PRIMARY_LABEL))] if self.is_primary else [])]

    @property
    def descriptions(self) -> Descriptions:
        domain, since = self.domain, self.domain.verified_at
        return [
            (gettext_lazy("Proof"), _PROOF_LABELS[domain.proof] if domain.proof else gettext_lazy("None yet")),
            (gettext_lazy("Since"), self.template_macros.when(since, relative=True) if since else ""),
            (gettext_lazy("Added"), self.template_macros.when(domain.created_at, relative=True)),
            *((gettext_lazy("Sign-in by email address"), sentence) for sentence in self._current_loss_message()),
        ]

    def _current_loss_message(self) -> Sequence[str]:
        return self.sign_in_loss_message(primary=self.is_primary) if self.domain.is_verified else []


_LIST = "/organizations/{organization}/domains"

ROUTES = (
    # Before domain names, which contain a dot.
    ConsoleRoute(f"{_LIST}/new", AddDomainPage, WRITE_PERMISSION, route_contexts.organization_context),
    *resource_routes(DomainDetailPage, VerifyDomainPage, AssertDomainPage, SetPrimaryDomainPage, RemoveDomainPage),
)

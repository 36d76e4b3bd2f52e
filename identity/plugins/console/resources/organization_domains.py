"""Domains of an organization: pending and verified ones, and their verification."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE
from identity.http.domain_verification import verify_domain
from identity.pages.forms import Form
from identity.pages.page import FormRedisplay
from identity.plugins.console.actions import Action, ActionPage
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import ConsolePage, path_value
from identity.plugins.console.form_fields import LITERAL_INPUT_ATTRIBUTES, FormField
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import Descriptions, TableSection
from identity.plugins.console.resource_pages import DetailPage, ResourcePages
from identity.plugins.console.resource_types import ORGANIZATION, ResourcePage, ResourceType
from identity.services.commands.organizations import AddDomain, ChangeOrganization

#: To add, verify, remove and make primary.
WRITE_PERMISSION = "organization_domain.write"

_PROOF_LABELS = {
    DomainProof.NAME_SPACE: _("Part of this service"),
    DomainProof.DNS: _("DNS record"),
    DomainProof.FILE: _("File on the web server"),
    DomainProof.ASSERTED: _("Asserted by a manager of the instance"),
    DomainProof.UNPROVEN: _("None"),
}
_PRIMARY_LABEL = _("Primary domain")


def domains_section(page: ConsolePage, organization: Organization) -> TableSection:
    ui, path = page.template_macros, f"{ORGANIZATION.path_of(organization)}/domains"
    rows = [
        (
            ui.named(
                domain.name,
                f"{path}/{domain.name}",
                page.translate(_PRIMARY_LABEL) if domain.name == organization.primary_domain else "",
            ),
            page.render_badge(_badge(page, domain)),
            page.translate(_PROOF_LABELS[domain.proof]) if domain.proof else page.render_placeholder(_("None yet")),
        )
        for domain in page.services.domains.list_by_organization(organization.id)
    ]
    return TableSection(
        "domains",
        _("Domains"),
        _("The organization's verified domains, and those waiting for verification."),
        page.button_link(_("New"), f"{path}/new", hidden_label=_("domain"), permission=WRITE_PERMISSION, symbol="plus"),
        columns=(_("Domain"), _("State"), _("Verification")),
        rows=rows,
    )


def _badge(page: ConsolePage, domain: OrganizationDomain) -> Badge:
    t = page.translator.gettext
    if not domain.is_effective:
        return Badge(t("Waiting"))
    return Badge(t("Verified"), "success") if domain.is_verified else Badge(t("Not verified"), "warning")


class AddDomainPage(ResourcePage[Organization], ConsoleFormPage):
    """Adds a domain and redirects to the instructions for verifying it."""

    back_path_suffix = "#domains"

    lead = _("The organization can use its own domain once you verify that it is yours. The next page explains how.")
    form_fields = (
        FormField(
            "domain",
            _("Domain"),
            _("For example {example}", example="acme.example"),
            autofocus=True,
            attributes=LITERAL_INPUT_ATTRIBUTES,
        ),
    )
    is_creation = True
    title = _("Add a domain")
    submit_label = _("Add domain")

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddDomain, form)
        self.redeem_submission_id(form)
        domain = self.services.domains.add(self.entity.id, command)
        return self.redirect(self.path_with_flash(f"{self.resource_path}/domains/{domain.name}"))


def _organization(page: ConsolePage) -> Organization:
    return page.entity_of(Organization)


_DOMAIN = ResourceType(
    model=OrganizationDomain,
    path=f"{ORGANIZATION.path}/domains/{{domain}}",
    context=ORGANIZATION.context,
    permission_prefix=ORGANIZATION.permission_prefix,
    find=lambda page: page.services.domains.get(_organization(page).id, path_value(page, "domain")),
    find_path=lambda page, domain: f"{ORGANIZATION.path_of(_organization(page))}/domains/{domain.name}",
    message_values=lambda page, domain: {"name": domain.name, "organization": _organization(page).name},
    parents=lambda page, domain: ORGANIZATION.breadcrumbs(page, _organization(page)),
)


def _is_primary(page: ConsolePage, domain: OrganizationDomain) -> bool:
    """True for the domain of login names."""
    return domain.name == _organization(page).primary_domain


def _sign_in_loss_message(page: ConsolePage, domain: OrganizationDomain, *, primary: bool = False) -> Sequence[str]:
    """How many people of other organizations can no longer sign in by email address; empty for none."""
    lost = page.services.login_names.count_losing_email_sign_in(_organization(page).id, domain.name, primary=primary)
    if not lost:
        return []
    return [
        ngettext_lazy(
            "{n} person of another organization can no longer sign in by an email address of this domain.",
            "{n} people of other organizations can no longer sign in by an email address of this domain.",
            lost,
        )
    ]


class VerifyDomainPage(ActionPage[OrganizationDomain]):
    """Shows how to verify the domain, and checks."""

    template = "console/verify_domain.html"
    fields = ("domain",)

    def template_variables(self) -> Mapping[str, object]:
        return {**super().template_variables(), "domain": self.entity}


def _verify(page: ConsolePage, domain: OrganizationDomain) -> None:
    """Check now. Raises FormRedisplay if the proof is not found."""
    try:
        with page.rate_limited():
            verify_domain(page.request, _organization(page).id, domain.name)
    except Invalid as refused:
        raise FormRedisplay(refused.fields["domain"]) from None


_VERIFY = Action[OrganizationDomain](
    path="/verify",
    permission=WRITE_PERMISSION,
    page=VerifyDomainPage,
    run=_verify,
    is_available=lambda page, domain: not domain.is_verified,
    is_destructive=False,
    label=_("Verify"),
    button=_("Verify …"),
    description=_("Set a DNS record, or put a file on the web server; we then check for it."),
    title=_("Verify {name}"),
    submit_label=_("Check now"),
    cancel_label=_("Later"),
)

_ASSERT = Action[OrganizationDomain](
    path="/assert",
    permission=INSTANCE_WRITE,
    run=lambda page, domain: page.services.domains.assert_domain(
        _organization(page).id, domain.name, principal=page.principal
    ),
    is_available=lambda page, domain: not domain.is_verified and page.services.domains.can_assert(page.principal),
    label=_("Assert"),
    button=_("Assert …"),
    description=_("Assert without verification that the domain belongs to this organization."),
    title=_("Assert that {name} belongs to {organization}?"),
    # Shown only to callers who may assert domains: others must not learn which addresses of an unverified domain are
    # known.
    impact=lambda page, domain: [
        _("The organization can use this domain at once, without verification. Assert only what you know."),
        _("No other organization can use it until it is removed here."),
        *_sign_in_loss_message(page, domain),
    ],
    submit_label=_("Assert domain"),
    cancel_label=_("Wait for verification"),
)


def _primary_impact(page: ConsolePage, domain: OrganizationDomain) -> Sequence[str]:
    return [
        _(
            "All login names of the organization change: {before} becomes {after}.",
            before=f"anna@{_organization(page).primary_domain}",
            after=f"anna@{domain.name}",
        ),
        *_sign_in_loss_message(page, domain, primary=True),
    ]


def _make_primary(page: ConsolePage, domain: OrganizationDomain) -> None:
    """Raises Conflict for a pending domain."""
    if not domain.is_effective:
        raise Conflict(_("This domain must be verified first."))
    command = ChangeOrganization(primary_domain=domain.name)
    page.services.organizations.change(_organization(page).id, command, principal=page.principal)


_MAKE_PRIMARY = Action[OrganizationDomain](
    path="/primary",
    permission=WRITE_PERMISSION,
    run=_make_primary,
    done=lambda page, domain: ORGANIZATION.path_of(_organization(page)),
    is_available=lambda page, domain: domain.is_effective and not _is_primary(page, domain),
    is_destructive=False,
    label=_("Make primary"),
    button=_("Make primary …"),
    description=_("All login names of the organization change."),
    title=_("Make {name} the primary domain?"),
    impact=_primary_impact,
    submit_label=_("Make primary"),
    cancel_label=lambda page, domain: _("Keep {name}", name=_organization(page).primary_domain),
)


def _removal_impact(page: ConsolePage, domain: OrganizationDomain) -> Sequence[str]:
    if not domain.is_effective:
        return [_("The record and the file are no longer valid for verification.")]
    return [
        _(
            "Another organization can then claim it. Tokens and applications that use this name "
            "would mistake that organization for this one."
        )
    ]


_REMOVE = Action[OrganizationDomain](
    path="/delete",
    permission=WRITE_PERMISSION,
    run=lambda page, domain: page.services.domains.remove(
        _organization(page).id, domain.name, principal=page.principal
    ),
    done=lambda page, domain: f"{ORGANIZATION.path_of(_organization(page))}#domains",
    is_available=lambda page, domain: (
        not _is_primary(page, domain) and (not domain.is_effective or page.services.domains.can_assert(page.principal))
    ),
    label=_("Remove"),
    button=_("Remove …"),
    description=lambda page, domain: (
        _("Others can then use it.") if domain.is_effective else _("The organization no longer waits for it.")
    ),
    title=_("Remove the domain {name}?"),
    impact=_removal_impact,
    submit_label=_("Remove domain"),
)


def _badges(page: DetailPage[OrganizationDomain], domain: OrganizationDomain) -> Sequence[Badge]:
    return [_badge(page, domain), *([Badge(page.translate(_PRIMARY_LABEL))] if _is_primary(page, domain) else [])]


def _descriptions(page: DetailPage[OrganizationDomain], domain: OrganizationDomain) -> Descriptions:
    ui, since = page.template_macros, domain.verified_at
    lost = _sign_in_loss_message(page, domain, primary=_is_primary(page, domain)) if domain.is_verified else ()
    return [
        (_("Verification"), _PROOF_LABELS[domain.proof] if domain.proof else _("None yet")),
        (_("Since"), ui.when(since, relative=True) if since else ""),
        (_("Added"), ui.when(domain.created_at, relative=True)),
        *((_("Sign-in with email address"), sentence) for sentence in lost),
    ]


_PAGES = ResourcePages(
    type=_DOMAIN,
    lead=lambda page, domain: [_("Domain"), _organization(page).name],
    badges=_badges,
    descriptions=_descriptions,
    actions=(_VERIFY, _ASSERT, _MAKE_PRIMARY, _REMOVE),
    actions_title=_("What you can do"),
    is_editable=False,
)

ROUTES = (
    # Before domain names, which contain a dot.
    ORGANIZATION.page_route("/domains/new", AddDomainPage, WRITE_PERMISSION),
    *_PAGES.routes(),
)

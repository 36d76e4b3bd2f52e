"""Domains of an organization: what it goes by, what it waits for, and how that is proven."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.domains import OrganizationDomain, Proof
from identity.domain.errors import Conflict, Invalid
from identity.domain.words import say, say_many
from identity.hashing import Busy
from identity.http import targets
from identity.http.domain_checks import check_domain
from identity.lazily import lazily
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.page import Again
from identity.plugins.console.badges import Badge
from identity.plugins.console.confirm_page import ConfirmThing
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import ConsolePage, Trail, matched
from identity.plugins.console.fields import LITERAL, Field
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import Facts, Table
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import BELOW_ORGANIZATIONS, OfOrganization
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.domains import ASSERTS

_PROOFS = {
    Proof.NAME_SPACE: say("Part of this service"),
    Proof.DNS: say("DNS record"),
    Proof.FILE: say("File on the web server"),
    Proof.ASSERTED: say("Asserted by a manager of the instance"),
    Proof.UNPROVEN: say("None"),
}
_PRIMARY = say("Primary domain")


def domains_section(page: OfOrganization) -> Table:
    """The names that an organization has."""
    rows = [
        (
            page.ui.named(
                one.name,
                f"{page.href}/domains/{one.name}",
                page.said(_PRIMARY) if one.name == page.thing.primary_domain else "",
            ),
            page.badge(_badge(page, one)),
            page.said(_PROOFS[one.proof]) if one.proof else page.faint(say("None yet")),
        )
        for one in page.services.domains.of_organization(page.thing.id)
    ]
    may_write, href = page.may("organization.write"), f"{page.href}/domains/new"
    return Table(
        "domains",
        say("Domains"),
        say("The names that the organization can go by, and those that wait for a proof."),
        page.link(say("New"), href, what=say("domain"), symbol="plus") if may_write else Markup(),
        columns=(say("Domain"), say("State"), say("Proof")),
        rows=rows,
    )


def _badge(page: ConsolePage, domain: OrganizationDomain) -> Badge:
    t = page.words.t
    if not domain.counts:
        return Badge(t("Waiting"))
    return Badge(t("Verified"), "success") if domain.proven else Badge(t("Not proven"), "warning")


class NewDomain(OfOrganization, ConsoleForm):
    """Asks for a domain, and leads to what proves it."""

    below = "#domains"

    about = say(
        "The organization can go by a domain of its own once you have proven that it is yours. The next page says how."
    )
    inputs = (
        Field(
            "domain",
            say("Domain"),
            say("For example {example}", example="acme.example"),
            autofocus=True,
            attributes=LITERAL,
        ),
    )
    creates = True
    title = say("Add a domain")
    label = say("Add domain")

    def submit(self, form: Form) -> Response:
        command = self.command_from(AddDomain, form)
        self.use_once(form)
        domain = self.services.domains.ask(self.thing.id, command)
        return self.redirect(self.done(f"{self.href}/domains/{domain.name}"))


class OfDomain(OfOrganization):
    """A page about one domain, below its organization."""

    path: ClassVar[str] = f"{OfOrganization.path}/domains/{{domain}}"
    action = "write"

    @lazily
    def domain(self) -> OrganizationDomain:
        """Which one. Raises NotFound."""
        return self.services.domains.get(self.thing.id, matched(self, "domain"))

    @property
    def name(self) -> str:
        return self.domain.name

    @property
    def names(self) -> Mapping[str, object]:
        return {"name": self.name, "organization": self.thing.name}

    @property
    def organization_href(self) -> str:
        """The address of the organization's page."""
        return super().href

    @property
    def href(self) -> str:
        return f"{self.organization_href}/domains/{self.name}"

    @property
    def above(self) -> Trail:
        return [*BELOW_ORGANIZATIONS, (self.thing.name, self.organization_href)]

    @property
    def primary(self) -> bool:
        """True for the one that login names have."""
        return self.name == self.thing.primary_domain

    def losses(self, *, primary: bool = False) -> Sequence[str]:
        """How many people elsewhere lose signing in by address by it, as a sentence; none if nobody does."""
        lost = self.services.login_names.people_losing(self.thing.id, self.name, primary=primary)
        if not lost:
            return []
        return [
            say_many(
                "{n} person of another organization can no longer sign in by an email address of this domain.",
                "{n} people of other organizations can no longer sign in by an email address of this domain.",
                lost,
            )
        ]


class Verify(OfDomain, ConfirmThing):
    """Says what proves it, and looks for that."""

    at = "/verify"
    template = "console/domain_verify.html"
    danger = False
    fields = ("domain",)
    way = (say("Prove"), say("Prove …"))
    offer = say("Set a DNS record, or put a file on the web server; then we look for it.")
    title = say("Prove {name}")
    label = say("Check now")
    keep = say("Later")

    @property
    def offered(self) -> bool:
        return not self.domain.proven

    def show(self) -> Mapping[str, object]:
        return {**super().show(), "domain": self.domain}

    def submit(self, form: Form) -> Response:
        """Look for the proof. Raises Again if it is not there."""
        try:
            check_domain(self.request, self.thing.id, self.domain.name)
        except Busy as problem:
            raise held_back(problem) from None
        except Invalid as refused:
            raise Again(refused.fields["domain"]) from None
        return self.redirect(self.done(self.href))


class Assert(OfDomain, ConfirmThing):
    """Asks before it counts without a proof."""

    at = "/assert"
    way = (say("Assert"), say("Assert …"))
    offer = say("Say without a proof that the domain belongs to this organization.")
    title = say("Assert that {name} belongs to {organization}?")
    label = say("Assert domain")
    keep = say("Wait for the proof")

    @classmethod
    def permission(cls) -> str:
        return ASSERTS

    @property
    def offered(self) -> bool:
        return not self.domain.proven and self.services.domains.may_assert(self.principal)

    @property
    def effects(self) -> Sequence[str]:
        # Told to whoever may assert alone: of a domain that is not theirs yet nobody learns whose addresses are known.
        return [
            say("The organization can go by this name at once, without a proof. Assert only what you know."),
            say("No other organization can have it until it is removed here."),
            *self.losses(),
        ]

    def act(self) -> None:
        self.services.domains.assert_domain(self.thing.id, self.domain.name, by=self.principal)


class MakePrimary(OfDomain, ConfirmThing):
    """Asks before all login names change."""

    at = "/primary"
    danger = False
    way = (say("Make primary"), say("Make primary …"))
    offer = say("All login names of the organization change.")
    title = say("Make {name} the primary domain?")
    label = say("Make primary")

    @property
    def keep(self) -> str:
        return say("Keep {name}", name=self.thing.primary_domain)

    @property
    def offered(self) -> bool:
        return self.domain.counts and not self.primary

    @property
    def effects(self) -> Sequence[str]:
        return [
            say(
                "All login names of the organization change: {before} becomes {after}.",
                before=f"anna@{self.thing.primary_domain}",
                after=f"anna@{self.domain.name}",
            ),
            *self.losses(primary=True),
        ]

    def act(self) -> str:
        """Do it. Raises Conflict for one that waits."""
        if not self.domain.counts:
            raise Conflict(say("This domain has to be proven first."))
        command = ChangeOrganization(primary_domain=self.domain.name)
        self.services.organizations.change(self.thing.id, command, by=self.principal)
        return self.organization_href


class Remove(OfDomain, ConfirmThing):
    """Asks before others can have it."""

    at = "/delete"
    way = (say("Remove"), say("Remove …"))
    title = say("Remove the domain {name}?")
    label = say("Remove domain")

    @property
    def offer(self) -> str:  # type: ignore[override]
        """What follows."""
        return (
            say("Others can have it then.") if self.domain.counts else say("The organization waits for it no longer.")
        )

    @property
    def offered(self) -> bool:
        return not self.primary and (not self.domain.counts or self.services.domains.may_assert(self.principal))

    @property
    def effects(self) -> Sequence[str]:
        if not self.domain.counts:
            return [say("The record and the file prove nothing any more.")]
        return [
            say(
                "Another organization can have it then. Tokens and applications that know this name would take it for"
                " this organization."
            )
        ]

    def act(self) -> str:
        self.services.domains.remove(self.thing.id, self.domain.name, by=self.principal)
        return f"{self.organization_href}#domains"


class DomainPage(OfDomain, ShowPage):
    """How it stands."""

    action = "read"
    deeds = (Verify, Assert, MakePrimary, Remove)
    deeds_title = say("What you can do")
    actions = ()

    @property
    def lead(self) -> Sequence[str]:
        return [say("Domain"), self.thing.name]

    @property
    def badges(self) -> Sequence[Badge]:
        return [_badge(self, self.domain), *([Badge(self.said(_PRIMARY))] if self.primary else [])]

    @property
    def facts(self) -> Facts:
        domain, since = self.domain, self.domain.verified_at
        return [
            (say("Proof"), _PROOFS[domain.proof] if domain.proof else say("None yet")),
            (say("Since"), self.ui.when(since, relative=True) if since else ""),
            (say("Added"), self.ui.when(domain.created_at, relative=True)),
            *((say("Sign-in by email address"), sentence) for sentence in self._losses_so_far()),
        ]

    def _losses_so_far(self) -> Sequence[str]:
        return self.losses(primary=self.primary) if self.domain.proven else []


_LIST = "/organizations/{organization}/domains"

PLACES = (
    # Before names of domains, which have a dot.
    Place(f"{_LIST}/new", NewDomain, "organization.write", targets.organization),
    *of_things(DomainPage, Verify, Assert, MakePrimary, Remove),
)

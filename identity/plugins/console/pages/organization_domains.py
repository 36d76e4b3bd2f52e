"""Domains of an organization: what it goes by, what it waits for, and how that is proven."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyramid.response import Response

from identity.domain.domains import OrganizationDomain, Proof
from identity.domain.errors import Conflict, Invalid
from identity.domain.words import say
from identity.hashing import Busy
from identity.http import targets
from identity.http.domain_checks import check_domain
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.page import Again
from identity.pages.translation import Words
from identity.plugins.console.badges import Badge
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import ConsoleForm, ConsolePage, matched
from identity.plugins.console.of_organization import OfOrganization
from identity.plugins.console.places import Place
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.domains import ASSERTS

_PROOFS = {
    Proof.NAME_SPACE: say("Part of this service"),
    Proof.DNS: say("DNS record"),
    Proof.FILE: say("File on the web server"),
    Proof.ASSERTED: say("Asserted by a manager of the instance"),
    Proof.UNPROVEN: say("None"),
}


@dataclass(frozen=True)
class Row:
    """A domain as the page of its organization shows it."""

    domain: OrganizationDomain
    href: str
    badge: Badge
    proof: str
    primary: bool


def domain_rows(page: ConsolePage, href: str, primary: str) -> Sequence[Row]:
    """The domains of the organization whose page lies at this address."""
    found = page.services.domains.of_organization(page.context.value.id)
    return [
        Row(
            domain=one,
            href=f"{href}/domains/{one.name}",
            badge=_badge(one, page.words),
            proof=page.words.t(_PROOFS[one.proof]) if one.proof else "",
            primary=one.name == primary,
        )
        for one in found
    ]


def _badge(domain: OrganizationDomain, words: Words) -> Badge:
    if not domain.counts:
        return Badge(words.t("Waiting"))
    return Badge(words.t("Verified"), "success") if domain.proven else Badge(words.t("Not proven"), "warning")


class NewDomain(OfOrganization, ConsoleForm):
    """Asks for a domain, and leads to what proves it."""

    template = "console/domain_form.html"
    creates = True
    fields = ("domain",)

    def title(self) -> str:
        """The heading."""
        return say("Add a domain")

    def show(self) -> Mapping[str, object]:
        """The way back."""
        return {"back": f"{self.href}#domains"}

    def submit(self, form: Form) -> Response:
        """Wait for it."""
        command = self.decoded(AddDomain, form.texts("domain"))
        self.use_once(form)
        domain = self.services.domains.ask(self.one.id, command)
        return self.redirect(self.done(f"{self.href}/domains/{domain.name}"))


class OfDomain(OfOrganization):
    """A page about one domain."""

    @cached_property
    def domain(self) -> OrganizationDomain:
        """Which one. Raises NotFound."""
        found: OrganizationDomain = self.services.domains.get(self.one.id, matched(self, "domain"))
        return found

    @property
    def domain_href(self) -> str:
        """The address of its page."""
        return f"{self.href}/domains/{self.domain.name}"

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below its organization."""
        return [*super().trail(), (self.domain.name, self.domain_href)]


class DomainPage(OfDomain, ConsolePage):
    """How it stands."""

    template = "console/domain.html"

    def title(self) -> str:
        """Its name."""
        return self.domain.name

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the organization."""
        return super().trail()[:-1]

    def show(self) -> Mapping[str, object]:
        """What proves it, and what can be done with it."""
        domain, may_assert = self.domain, self.services.domains.may_assert(self.principal)
        primary = domain.name == self.one.primary_domain
        return {
            "domain": domain,
            "href": self.domain_href,
            "badge": _badge(domain, self.words),
            "proof": self.words.t(_PROOFS[domain.proof]) if domain.proof else "",
            "primary": primary,
            "may_assert": may_assert,
            "may_remove": not primary and (may_assert or not domain.counts),
        }


class Verify(OfDomain, ConfirmPage):
    """Says what proves it, and looks for that."""

    template = "console/domain_verify.html"
    danger = False
    fields = ("domain",)

    def question(self) -> str:
        """The heading."""
        return say("Prove {name}", name=self.domain.name)

    def label(self) -> str:
        """The button."""
        return say("Check now")

    def keep(self) -> str:
        """The way back."""
        return say("Later")

    def back(self) -> str:
        """To the domain."""
        return self.domain_href

    def show(self) -> Mapping[str, object]:
        """The record and the file."""
        return {**super().show(), "domain": self.domain}

    def submit(self, form: Form) -> Response:
        """Look for the proof. Raises Again if it is not there."""
        try:
            check_domain(self.request, self.one.id, self.domain.name)
        except Busy as problem:
            raise held_back(problem) from None
        except Invalid as refused:
            raise Again(refused.fields["domain"]) from None
        return self.redirect(self.done(self.domain_href))


class Assert(OfDomain, ConfirmPage):
    """Asks before it counts without a proof."""

    fields = ()

    def question(self) -> str:
        """The heading."""
        return say("Assert that {name} belongs to {organization}?", name=self.domain.name, organization=self.one.name)

    def effects(self) -> Sequence[str]:
        """What follows."""
        return [
            say("The organization can go by this name at once, without a proof. Assert only what you know."),
            say("No other organization can have it until it is removed here."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Assert domain")

    def keep(self) -> str:
        """The way back."""
        return say("Wait for the proof")

    def back(self) -> str:
        """To the domain."""
        return self.domain_href

    def act(self) -> str:
        """Do it."""
        self.services.domains.assert_domain(self.one.id, self.domain.name, by=self.principal)
        return self.domain_href


class MakePrimary(OfDomain, ConfirmPage):
    """Asks before all login names change."""

    danger = False
    fields = ()

    def question(self) -> str:
        """The heading."""
        return say("Make {name} the primary domain?", name=self.domain.name)

    def effects(self) -> Sequence[str]:
        """What changes."""
        return [
            say(
                "All login names of the organization change: {before} becomes {after}.",
                before=f"anna@{self.one.primary_domain}",
                after=f"anna@{self.domain.name}",
            )
        ]

    def label(self) -> str:
        """The button."""
        return say("Make primary")

    def keep(self) -> str:
        """The way back."""
        return say("Keep {name}", name=self.one.primary_domain)

    def back(self) -> str:
        """To the domain."""
        return self.domain_href

    def act(self) -> str:
        """Do it. Raises Conflict for one that waits."""
        if not self.domain.counts:
            raise Conflict(say("This domain has to be proven first."))
        command = ChangeOrganization(primary_domain=self.domain.name)
        self.services.organizations.change(self.one.id, command, by=self.principal)
        return self.href


class Remove(OfDomain, ConfirmPage):
    """Asks before others can have it."""

    fields = ()

    def question(self) -> str:
        """The heading."""
        return say("Remove the domain {name}?", name=self.domain.name)

    def effects(self) -> Sequence[str]:
        """What follows."""
        if not self.domain.counts:
            return [say("The record and the file prove nothing any more.")]
        return [
            say(
                "Another organization can have it then. Tokens and applications that know this name would take it for"
                " this organization."
            )
        ]

    def label(self) -> str:
        """The button."""
        return say("Remove domain")

    def back(self) -> str:
        """To the domain."""
        return self.domain_href

    def act(self) -> str:
        """Do it."""
        self.services.domains.remove(self.one.id, self.domain.name, by=self.principal)
        return f"{self.href}#domains"


_LIST = "/organizations/{organization}/domains"
_ONE = f"{_LIST}/{{domain}}"

PLACES = (
    # Before names of domains, which have a dot.
    Place(f"{_LIST}/new", NewDomain, "organization.write", targets.organization),
    Place(_ONE, DomainPage, "organization.read", targets.organization),
    Place(f"{_ONE}/verify", Verify, "organization.write", targets.organization),
    Place(f"{_ONE}/assert", Assert, ASSERTS, targets.organization),
    Place(f"{_ONE}/primary", MakePrimary, "organization.write", targets.organization),
    Place(f"{_ONE}/delete", Remove, "organization.write", targets.organization),
)

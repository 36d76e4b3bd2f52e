"""Domains of an organization: asked for, proven, asserted."""

from identity.domain.domains import OrganizationDomain, Proof
from identity.http import targets
from identity.http.domain_checks import check_domain
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource
from identity.services.commands.organizations import AddDomain
from identity.services.domains import ASSERTS


class Domain(Representation):
    """A domain of an organization, which can go by it if it counts.

    It is proven by a TXT record of this name and value, or by a file at this address that has the value as a line. From
    then on it says how many people of other organizations cannot sign in by an email address of it, counted for up to
    200 addresses.
    """

    name: str
    counts: bool
    proof: Proof | None
    record_name: str
    record_value: str
    file_url: str
    created_at: Moment
    verified_at: Moment | None
    people_losing_sign_in: int | None


def _shown(call: Call, domain: OrganizationDomain) -> Domain:
    # Of a domain that is not theirs yet, an organization's managers learn of nobody.
    lost, primary = None, domain.name == call.value.primary_domain
    if domain.proven:
        # Of other services than before, if the operation has committed in between.
        login_names = call.request.services.login_names
        lost = login_names.people_losing(call.value.id, domain.name, primary=primary)
    return Domain.of(domain, people_losing_sign_in=lost)


_DOMAINS = Resource(
    kind="domain",
    answers=Domain,
    path="/organizations/{organization}/domains/{domain}",
    target=targets.organization,
    of="organization",
    delete="write",
    show=_shown,
)

OPERATIONS = (
    _DOMAINS.lists(
        "Lists the domains that an organization has or waits for, by name.",
        lambda call: call.services.domains.of_organization(call.value.id),
        paged=False,
    ),
    _DOMAINS.makes(
        "add",
        "Asks for a domain.",
        AddDomain,
        lambda call: call.services.domains.ask(call.value.id, call.command),
        description="It waits until it is proven or asserted; one in the service's own name space counts at once.",
        location="/organizations/{organization}/domains/{name}",
    ),
    _DOMAINS.shows(
        "Shows a domain, and what proves it.",
        lambda call: call.services.domains.get(call.value.id, call.names["domain"]),
    ),
    _DOMAINS.does(
        "verify",
        "POST",
        "Looks for the proof of a domain now.",
        lambda call: check_domain(call.request, call.value.id, call.names["domain"]),
        description="422 if neither record nor file is found. Then the organization can make it the primary domain.",
    ),
    _DOMAINS.does(
        "assert",
        "POST",
        "Says without a proof that a domain is the organization's.",
        _DOMAINS.of_part("assert_domain"),
        permission=ASSERTS,
    ),
    _DOMAINS.removes(
        "Takes a domain from an organization.",
        _DOMAINS.of_part("remove"),
        verb="remove",
        description="One that counts only whoever manages the instance can take; then it is free for others.",
    ),
)

"""Domains of an organization: asked for, proven, asserted."""

from identity.domain.domains import Proof
from identity.http import targets
from identity.http.domain_checks import check_domain
from identity.plugins.management.operation import Call, Operation, shown
from identity.plugins.management.representation import Moment, Representation
from identity.services.commands.organizations import AddDomain
from identity.services.domains import ASSERTS
from identity.storage.paging import Page


class Domain(Representation):
    """A domain of an organization, which can go by it if it counts.

    It is proven by a TXT record of this name and value, or by a file at this address that has the value as a line.
    """

    name: str
    counts: bool
    proof: Proof | None
    record_name: str
    record_value: str
    file_url: str
    created_at: Moment
    verified_at: Moment | None


def _list(call: Call) -> Page[Domain]:
    return shown(Domain, call.services.domains.of_organization(call.value.id))


def _ask(call: Call) -> Domain:
    return Domain.of(call.services.domains.ask(call.value.id, call.command))


def _show(call: Call) -> Domain:
    return Domain.of(call.services.domains.get(call.value.id, call.names["domain"]))


def _verify(call: Call) -> Domain:
    return Domain.of(check_domain(call.request, call.value.id, call.names["domain"]))


def _assert(call: Call) -> Domain:
    return Domain.of(call.services.domains.assert_domain(call.value.id, call.names["domain"], by=call.by))


def _remove(call: Call) -> None:
    call.services.domains.remove(call.value.id, call.names["domain"], by=call.by)


_LIST = "/organizations/{organization}/domains"
_PATH = f"{_LIST}/{{domain}}"

OPERATIONS = (
    Operation(
        name="list_domains",
        method="GET",
        path=_LIST,
        summary="Lists the domains that an organization has or waits for, by name.",
        permission="organization.read",
        target=targets.organization,
        handle=_list,
        answers=Domain,
        many=True,
    ),
    Operation(
        name="add_domain",
        method="POST",
        path=_LIST,
        summary="Asks for a domain.",
        description="It waits until it is proven or asserted; one in the service's own name space counts at once.",
        permission="organization.write",
        target=targets.organization,
        handle=_ask,
        command=AddDomain,
        answers=Domain,
        location="/organizations/{organization}/domains/{name}",
    ),
    Operation(
        name="show_domain",
        method="GET",
        path=_PATH,
        summary="Shows a domain, and what proves it.",
        permission="organization.read",
        target=targets.organization,
        handle=_show,
        answers=Domain,
    ),
    Operation(
        name="verify_domain",
        method="POST",
        path=f"{_PATH}/verify",
        summary="Looks for the proof of a domain now.",
        description="422 if neither record nor file is found. Then the organization can make it the primary domain.",
        permission="organization.write",
        target=targets.organization,
        handle=_verify,
        answers=Domain,
    ),
    Operation(
        name="assert_domain",
        method="POST",
        path=f"{_PATH}/assert",
        summary="Says without a proof that a domain is the organization's.",
        permission=ASSERTS,
        target=targets.organization,
        handle=_assert,
        answers=Domain,
    ),
    Operation(
        name="remove_domain",
        method="DELETE",
        path=_PATH,
        summary="Takes a domain from an organization.",
        description="One that counts only whoever manages the instance can take; then it is free for others.",
        permission="organization.write",
        target=targets.organization,
        handle=_remove,
    ),
)

"""Domains of an organization: requested, verified and asserted."""

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE
from identity.http.domain_verification import verify_domain
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import ORGANIZATION
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.services.commands.organizations import AddDomain


class OrganizationDomainRepresentation(Representation):
    """A domain of an organization, which can use it once it is active.

    It is verified by a TXT record of this name and value, or by a file at this address that has the value as a
    line. From then on it says how many people of other organizations cannot sign in with an email address of it,
    counted for up to 200 addresses.
    """

    name: str
    counts: bool
    proof: DomainProof | None
    record_name: str
    record_value: str
    file_url: str
    created_at: DateTime
    verified_at: DateTime | None
    people_losing_sign_in: int | None


def _represent(call: OperationCall[Organization], domain: OrganizationDomain) -> OrganizationDomainRepresentation:
    # Managers must not learn who uses addresses of an unverified domain.
    lost, primary = None, domain.name == call.entity.primary_domain
    if domain.is_verified:
        # The services of the current transaction: the operation may have committed meanwhile.
        login_names = call.request.services.login_names
        lost = login_names.count_losing_email_sign_in(call.entity.id, domain.name, primary=primary)
    return OrganizationDomainRepresentation.from_value(domain, counts=domain.is_effective, people_losing_sign_in=lost)


_DOMAINS = ApiResource("domain", OrganizationDomainRepresentation, _represent, permission_subject="organization")
_LIST = ORGANIZATION / "domains"
_DOMAIN = _LIST / "{domain}"
_WRITE_PERMISSION = "organization_domain.write"

OPERATIONS = (
    _DOMAINS.list(
        _LIST,
        "Lists an organization's active and requested domains, by name.",
        lambda call: call.services.domains.list_by_organization(call.entity.id),
        is_paged=False,
    ),
    _DOMAINS.create(
        "add_domain",
        _LIST,
        "Requests a domain.",
        AddDomain,
        lambda call, command: call.services.domains.add(call.entity.id, command),
        location="/organizations/{organization}/domains/{name}",
        permission=_WRITE_PERMISSION,
        description="It waits until it is verified or asserted; one in the service's namespace is active at once.",
    ),
    _DOMAINS.get(
        _DOMAIN,
        "Shows a domain, and how to verify it.",
        lambda call: call.services.domains.get(call.entity.id, call.child_id),
    ),
    _DOMAINS.action(
        "verify_domain",
        _DOMAIN / "verify",
        "Verifies a domain now.",
        EmptyCommand,
        lambda call, _: verify_domain(call.request, call.entity.id, call.child_id),
        permission=_WRITE_PERMISSION,
        description="422 if neither record nor file is found. Once verified, the organization can make it "
        "the primary domain.",
    ),
    _DOMAINS.action(
        "assert_domain",
        _DOMAIN / "assert",
        "Asserts without verification that a domain belongs to the organization.",
        EmptyCommand,
        lambda call, _: call.services.domains.assert_domain(call.entity.id, call.child_id, principal=call.principal),
        permission=INSTANCE_WRITE,
    ),
    _DOMAINS.delete(
        "remove_domain",
        _DOMAIN,
        "Removes a domain from an organization.",
        lambda call: call.services.domains.remove(call.entity.id, call.child_id, principal=call.principal),
        permission=_WRITE_PERMISSION,
        description="Only a manager of the instance can remove an active domain; others can then use it.",
    ),
)

"""Verifies a domain during a request, without locks while DNS or other servers are queried."""

from typing import TYPE_CHECKING

from pyramid.request import Request

from identity.domain.domains import OrganizationDomain

if TYPE_CHECKING:
    from identity.application import IdentityApplication


def verify_domain(request: Request, organization_id: str, name: str) -> OrganizationDomain:
    """The organization's domain, proven now or before. Commits the transaction first. Raises NotFound; Invalid if the
    proof was not found; Conflict if the domain is another organization's; ServerBusy."""
    identity: IdentityApplication = request.registry.application
    waiting: OrganizationDomain = request.services.domains.get(organization_id, name)
    if waiting.is_verified:
        return waiting
    request.commit()
    proof = identity.domain_verifier.find_proof(waiting)
    proven: OrganizationDomain = request.services.domains.verify(waiting, proof)
    return proven

"""Domains of organizations: requested, proven or asserted, and bound to their first owner."""

from dataclasses import dataclass, replace

from identity.crypto.secrets import new_token
from identity.domain.domains import MAX_DOMAINS, DomainProof, OrganizationDomain
from identity.domain.errors import Conflict, Denied, Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.names import domain_from_name
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service, translate_storage_errors
from identity.services.commands.organizations import AddDomain
from identity.storage.errors import DuplicateValue, RowNotFound

_KIND = "domain"
_FEW = 10
#: The number of candidates before an explicit domain is required.
_NUMBERS = 100
_DOMAIN_TAKEN = gettext_lazy(
    "Another organization has this domain, or had it until it was deleted. An instance manager can release it."
)
_NOT_SEEN = gettext_lazy("Neither the record nor the file was found. DNS changes can take a while to become visible.")
_DOMAIN_REQUESTED = gettext_lazy("The organization already has this domain, or it is waiting for verification.")
_TOO_MANY = gettext_lazy("An organization can have {n} domains. Remove one first.", n=MAX_DOMAINS)


@dataclass(eq=False, repr=False)
class OrganizationDomainService(Service):
    """An effective domain is bound to its organization until it is released."""

    _access: AccessControl

    def get(self, organization_id: str, name: str) -> OrganizationDomain:
        """Raises NotFound."""
        return self._require_found(self._storage.organizations.find_domain(organization_id, name), _KIND, name)

    def list_by_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        """The organization's effective and pending domains, by name."""
        return self._storage.organizations.list_domains(organization_id)

    def find_organization(self, name: str) -> Organization | None:
        """The organization whose login names have this domain, or which has proven it for email addresses."""
        organization = self._storage.organizations.find_by_domain(name)
        if organization is not None:
            return organization
        holder = self._storage.organizations.find_effective_domain(name)
        proven = holder is not None and holder.is_verified
        return self._storage.organizations.find(holder.organization_id) if holder is not None and proven else None

    def list_unverified(self) -> tuple[OrganizationDomain, ...]:
        """Effective domains outside of the namespace that are not proven; not all of them."""
        return self._storage.organizations.list_unproven_domains(self._settings.reserved_domains.domain, _FEW)

    def can_assert(self, principal: Principal | None) -> bool:
        """True if the caller may assert a domain without proof."""
        return principal is not None and self._access.is_permitted(principal, INSTANCE_WRITE, Resource.INSTANCE)

    def add(self, organization_id: str, command: AddDomain) -> OrganizationDomain:
        """Add a domain that waits for its proof; one in the service's own namespace is effective at once. Whether
        another organization has it is disclosed only after the proof. Raises Invalid."""
        name = command.domain
        if self._storage.organizations.find_domain(organization_id, name) is not None:
            raise Invalid({"domain": _DOMAIN_REQUESTED})
        self._refuse_unfit(organization_id, name)
        if self._gives_out(organization_id, name):
            return self._bind(self._new(organization_id, name), DomainProof.NAME_SPACE)
        return self._wait(organization_id, name)

    def claim(self, organization_id: str, name: str, *, principal: Principal | None) -> bool:
        """True if the organization may use this name from now on; otherwise it waits for the proof. A caller with the
        permission asserts the domain by that. Raises Invalid."""
        stored = self._storage.organizations.find_domain(organization_id, name)
        if stored is not None and stored.is_effective:
            return True
        self._refuse_unfit(organization_id, name)
        if self._gives_out(organization_id, name):
            self._bind(stored or self._new(organization_id, name), DomainProof.NAME_SPACE, principal=principal)
            return True
        if self.can_assert(principal):
            self._bind(stored or self._new(organization_id, name), DomainProof.ASSERTED, principal=principal)
            return True
        if stored is None:
            self._wait(organization_id, name)
        return False

    def verify(self, expected: OrganizationDomain, proof: DomainProof | None) -> OrganizationDomain:
        """The domain, proven by an external check and effective from now on. ``expected`` is the domain that was
        checked. Raises Invalid if the proof was missing, NotFound if the domain is no longer pending; Conflict if it
        belongs to another organization."""
        if proof is None:
            raise Invalid({"domain": _NOT_SEEN})
        proven = replace(expected, proof=proof, verified_at=self._now)
        try:
            self._storage.organizations.prove_domain(proven)
        except RowNotFound:
            raise NotFound(_KIND, expected.name) from None
        except DuplicateValue:
            raise Conflict(_DOMAIN_TAKEN) from None
        self._record("domain.verified", proven)
        return proven

    def assert_domain(self, organization_id: str, name: str, *, principal: Principal) -> OrganizationDomain:
        """Make a pending domain effective without proof. A domain of a deleted organization is taken over. Raises
        NotFound, Denied; Conflict if another organization has it."""
        self._require(principal)
        stored = self.get(organization_id, name)
        if stored.is_verified:
            return stored
        try:
            return self._bind(stored, DomainProof.ASSERTED, principal=principal)
        except Invalid:
            raise Conflict(_DOMAIN_TAKEN) from None

    def remove(self, organization_id: str, name: str, *, principal: Principal) -> None:
        """Remove the domain from the organization; others can have it then. Raises NotFound; Conflict for the primary
        domain; Denied for an effective one, unless the caller may assert domains."""
        domain = self.get(organization_id, name)
        organization = self._storage.organizations.find(organization_id)
        if organization is not None and organization.primary_domain == name:
            raise Conflict(gettext_lazy("This is the primary domain. Make another domain primary first."))
        if domain.is_effective:
            self._require(principal)
        self._remove(domain)

    def derive_free_domain(self, name: str, organization_id: str) -> str:
        """A free domain in the namespace for an organization of this name: acme, else acme-2 and so on."""
        space = self._settings.reserved_domains
        first = candidate = domain_from_name(name, space.domain)
        for number in range(2, _NUMBERS):
            holder = self._storage.organizations.find_effective_domain(candidate)
            if space.contains(candidate) and (holder is None or holder.organization_id == organization_id):
                return candidate
            candidate = domain_from_name(name, space.domain, number=number)
        return first

    def ensure_bound(self, organization: Organization) -> None:
        """Bind the organization's primary domain to it, if it is not bound yet."""
        if self._storage.organizations.find_domain(organization.id, organization.primary_domain) is None:
            domain = self._new(organization.id, organization.primary_domain)
            with translate_storage_errors(_KIND, domain.name):
                self._storage.organizations.add_domain(
                    replace(domain, proof=DomainProof.UNPROVEN, verified_at=self._now)
                )

    # --- how -------------------------------------------------------------------------------------------------------

    def _gives_out(self, organization_id: str, name: str) -> bool:
        """True in the namespace; the instance's own organization may also have the service's hosts."""
        if name in (self._settings.reserved_domains.domain, *self._settings.reserved_domains.hosts):
            instance = self._instance()
            return instance is not None and instance.organization_id == organization_id
        return self._settings.reserved_domains.contains(name)

    def _refuse_unfit(self, organization_id: str, name: str) -> None:
        problem = self._settings.reserved_domains.name_error(name)
        if problem is not None and not self._gives_out(organization_id, name):
            raise Invalid({"domain": problem})

    def _require(self, principal: Principal) -> None:
        if not self.can_assert(principal):
            raise Denied(
                gettext_lazy("Only instance managers can assert or release a domain."),
                permission=INSTANCE_WRITE,
            )

    def _new(self, organization_id: str, name: str) -> OrganizationDomain:
        return OrganizationDomain(
            organization_id=organization_id, name=name, challenge=new_token(), created_at=self._now
        )

    def _wait(self, organization_id: str, name: str) -> OrganizationDomain:
        domain = self._new(organization_id, name)
        with translate_storage_errors(_KIND, name, {"domain": _DOMAIN_REQUESTED}):
            self._add(domain)
        self._record("domain.asked", domain)
        return domain

    def _bind(
        self, domain: OrganizationDomain, proof: DomainProof, *, principal: Principal | None = None
    ) -> OrganizationDomain:
        """Make the domain effective. Raises Invalid if it belongs to another organization."""
        self._take_over(domain, principal)
        bound = replace(domain, proof=proof, verified_at=self._now)
        try:
            if self._storage.organizations.find_domain(domain.organization_id, domain.name) is None:
                self._add(bound)
            else:
                self._storage.organizations.prove_domain(bound)
        except DuplicateValue:
            raise Invalid({"domain": _DOMAIN_TAKEN}) from None
        if proof is DomainProof.ASSERTED:
            self._record("domain.asserted", bound)
        return bound

    def _take_over(self, domain: OrganizationDomain, principal: Principal | None) -> None:
        """Release the domain of a deleted organization, if the caller may. Raises Invalid."""
        holder = self._storage.organizations.find_effective_domain(domain.name)
        if holder is None or holder.organization_id == domain.organization_id:
            return
        if self._storage.organizations.find(holder.organization_id) is not None or not self.can_assert(principal):
            raise Invalid({"domain": _DOMAIN_TAKEN})
        self._remove(holder)

    def _add(self, domain: OrganizationDomain) -> None:
        if len(self._storage.organizations.list_domains(domain.organization_id, locked=True)) >= MAX_DOMAINS:
            raise Invalid({"domain": _TOO_MANY})
        self._storage.organizations.add_domain(domain)

    def _remove(self, domain: OrganizationDomain) -> None:
        with translate_storage_errors(_KIND, domain.name):
            self._storage.organizations.delete_domain(domain.organization_id, domain.name)
        self._record("domain.removed", domain)

    def _record(self, event: str, domain: OrganizationDomain) -> None:
        self._audit.record(
            event,
            kind="organization",
            id=domain.organization_id,
            organization_id=domain.organization_id,
            detail={"domain": domain.name, "proof": domain.proof},
        )

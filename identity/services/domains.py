"""Domains of organizations: asked for, proven or asserted, and bound to who had them first."""

from dataclasses import replace

from identity.crypto.secrets import new_token
from identity.domain.domains import MOST_DOMAINS, OrganizationDomain, Proof
from identity.domain.errors import Conflict, Denied, Invalid, NotFound
from identity.domain.names import domain_from_name
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.changes import TellInstance, TransactionState, UseCases, told
from identity.services.commands.organizations import AddDomain
from identity.settings import Settings
from identity.storage.errors import Duplicate, Missing

#: Who may do this may say that a domain is somebody's, and release it.
ASSERTS = "instance.write"

_KIND = "domain"
_FEW = 10
#: Beyond this whoever makes the organization has to think of a domain.
_NUMBERS = 100
_HELD = say(
    "Another organization has this domain, or had it until it was deleted. Who manages the instance can release it."
)
_NOT_SEEN = say("Neither the record nor the file was found. It can take a while until changes of DNS are seen.")
_ASKED = say("The organization has this domain already, or waits for it.")
_TOO_MANY = say("An organization can have {n} domains. Remove one first.", n=MOST_DOMAINS)


class Domains(UseCases):
    """Who goes by which name. A domain that counts is bound to its organization until it is released."""

    def __init__(self, state: TransactionState, access: Access, instance: TellInstance, settings: Settings) -> None:
        super().__init__(state)
        self._access, self._instance, self._settings = access, instance, settings

    def get(self, organization_id: str, name: str) -> OrganizationDomain:
        """The organization's domain. Raises NotFound."""
        return self._found(self._storage.organizations.find_domain(organization_id, name), _KIND, name)

    def of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        """All that the organization has or waits for, by name."""
        return self._storage.organizations.domains(organization_id)

    def organization_of(self, name: str) -> Organization | None:
        """The organization whose people have login names of this domain, or addresses of it that it has proven."""
        found = self._storage.organizations.find_by_domain(name)
        if found is not None:
            return found
        holder = self._storage.organizations.find_domain_holder(name)
        proven = holder is not None and holder.proven
        return self._storage.organizations.find(holder.organization_id) if holder is not None and proven else None

    def unproven(self) -> tuple[OrganizationDomain, ...]:
        """Some of those that count though they lie outside of the name space and nobody has proven them."""
        return self._storage.organizations.unproven_domains(self._settings.name_space.domain, _FEW)

    def may_assert(self, by: Principal | None) -> bool:
        """True for whoever may say without a proof that a domain is somebody's."""
        return by is not None and self._access.may(by, ASSERTS, INSTANCE)

    def ask(self, organization_id: str, command: AddDomain) -> OrganizationDomain:
        """The domain, waiting for its proof; one in the service's own name space counts at once.

        Whether somebody else has it is told to whoever has proven it alone. Raises Invalid.
        """
        name = command.domain
        if self._storage.organizations.find_domain(organization_id, name) is not None:
            raise Invalid({"domain": _ASKED})
        self._refuse_unfit(organization_id, name)
        if self._gives_out(organization_id, name):
            return self._bind(self._new(organization_id, name), Proof.NAME_SPACE)
        return self._wait(organization_id, name)

    def settle(self, organization_id: str, name: str, *, by: Principal | None) -> bool:
        """Whether the organization may go by this name from now on; if not, it waits for the proof.

        Who may assert does so by giving the name. Raises Invalid.
        """
        stored = self._storage.organizations.find_domain(organization_id, name)
        if stored is not None and stored.counts:
            return True
        self._refuse_unfit(organization_id, name)
        if self._gives_out(organization_id, name):
            self._bind(stored or self._new(organization_id, name), Proof.NAME_SPACE, by=by)
            return True
        if self.may_assert(by):
            self._bind(stored or self._new(organization_id, name), Proof.ASSERTED, by=by)
            return True
        if stored is None:
            self._wait(organization_id, name)
        return False

    def verify(self, seen: OrganizationDomain, proof: Proof | None) -> OrganizationDomain:
        """The domain, proven by what was seen outside; it counts from now on.

        ``seen`` is what was looked for. Raises Invalid if it was not there, NotFound if it is not waited for any more;
        Conflict if it is another organization's.
        """
        if proof is None:
            raise Invalid({"domain": _NOT_SEEN})
        proven = replace(seen, proof=proof, verified_at=self._now)
        try:
            self._storage.organizations.prove_domain(proven)
        except Missing:
            raise NotFound(_KIND, seen.name) from None
        except Duplicate:
            raise Conflict(_HELD) from None
        self._record("domain.verified", proven)
        return proven

    def assert_domain(self, organization_id: str, name: str, *, by: Principal) -> OrganizationDomain:
        """The domain that the organization waits for, which counts from now on because whoever may says so.

        What only a deleted organization had goes over. Raises NotFound, Denied; Conflict for another one's.
        """
        self._require(by)
        stored = self.get(organization_id, name)
        if stored.proven:
            return stored
        try:
            return self._bind(stored, Proof.ASSERTED, by=by)
        except Invalid:
            raise Conflict(_HELD) from None

    def remove(self, organization_id: str, name: str, *, by: Principal) -> None:
        """Take it from the organization; others can have it then.

        Raises NotFound; Conflict for the primary domain; Denied for one that counts, unless the caller may assert.
        """
        domain = self.get(organization_id, name)
        organization = self._storage.organizations.find(organization_id)
        if organization is not None and organization.primary_domain == name:
            raise Conflict(say("This is the primary domain. Make another one primary first."))
        if domain.counts:
            self._require(by)
        self._remove(domain)

    def made_of(self, name: str, organization_id: str) -> str:
        """A domain in the name space that the organization of this name can have: acme, else acme-2 and so on."""
        space = self._settings.name_space
        first = made = domain_from_name(name, space.domain)
        for number in range(2, _NUMBERS):
            holder = self._storage.organizations.find_domain_holder(made)
            if space.holds(made) and (holder is None or holder.organization_id == organization_id):
                return made
            made = domain_from_name(name, space.domain, number=number)
        return first

    def keep(self, organization: Organization) -> None:
        """See to it that the domain that the organization goes by is bound to it, however it came to it."""
        if self._storage.organizations.find_domain(organization.id, organization.primary_domain) is None:
            domain = self._new(organization.id, organization.primary_domain)
            with told(_KIND, domain.name):
                self._storage.organizations.add_domain(replace(domain, proof=Proof.UNPROVEN, verified_at=self._now))

    # --- how -------------------------------------------------------------------------------------------------------

    def _gives_out(self, organization_id: str, name: str) -> bool:
        """True for what lies in the name space; the instance's own organization may have the service's hosts too."""
        if name in (self._settings.name_space.domain, *self._settings.name_space.hosts):
            instance = self._instance()
            return instance is not None and instance.organization_id == organization_id
        return self._settings.name_space.holds(name)

    def _refuse_unfit(self, organization_id: str, name: str) -> None:
        problem = self._settings.name_space.problem(name)
        if problem is not None and not self._gives_out(organization_id, name):
            raise Invalid({"domain": problem})

    def _require(self, by: Principal) -> None:
        if not self.may_assert(by):
            raise Denied(
                say("Only who manages the instance can say whose a domain is, or release it."), permission=ASSERTS
            )

    def _new(self, organization_id: str, name: str) -> OrganizationDomain:
        return OrganizationDomain(
            organization_id=organization_id, name=name, challenge=new_token(), created_at=self._now
        )

    def _wait(self, organization_id: str, name: str) -> OrganizationDomain:
        domain = self._new(organization_id, name)
        with told(_KIND, name, {"domain": _ASKED}):
            self._add(domain)
        self._record("domain.asked", domain)
        return domain

    def _bind(self, domain: OrganizationDomain, proof: Proof, *, by: Principal | None = None) -> OrganizationDomain:
        """The domain, counting. Raises Invalid if it is another organization's."""
        self._take_over(domain, by)
        bound = replace(domain, proof=proof, verified_at=self._now)
        try:
            if self._storage.organizations.find_domain(domain.organization_id, domain.name) is None:
                self._add(bound)
            else:
                self._storage.organizations.prove_domain(bound)
        except Duplicate:
            raise Invalid({"domain": _HELD}) from None
        if proof is Proof.ASSERTED:
            self._record("domain.asserted", bound)
        return bound

    def _take_over(self, domain: OrganizationDomain, by: Principal | None) -> None:
        """Release what another organization has, if that is deleted and the caller may. Raises Invalid."""
        holder = self._storage.organizations.find_domain_holder(domain.name)
        if holder is None or holder.organization_id == domain.organization_id:
            return
        if self._storage.organizations.find(holder.organization_id) is not None or not self.may_assert(by):
            raise Invalid({"domain": _HELD})
        self._remove(holder)

    def _add(self, domain: OrganizationDomain) -> None:
        if len(self._storage.organizations.domains(domain.organization_id, locked=True)) >= MOST_DOMAINS:
            raise Invalid({"domain": _TOO_MANY})
        self._storage.organizations.add_domain(domain)

    def _remove(self, domain: OrganizationDomain) -> None:
        with told(_KIND, domain.name):
            self._storage.organizations.remove_domain(domain.organization_id, domain.name)
        self._record("domain.removed", domain)

    def _record(self, event: str, domain: OrganizationDomain) -> None:
        self._audit.record(
            event,
            kind="organization",
            id=domain.organization_id,
            organization_id=domain.organization_id,
            detail={"domain": domain.name, "proof": domain.proof},
        )

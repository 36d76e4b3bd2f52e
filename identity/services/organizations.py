"""Create, change, deactivate, reactivate and remove organizations."""

from dataclasses import dataclass

from identity.crypto.secrets import new_id
from identity.domain.errors import Conflict, Invalid
from identity.domain.managers import Manager
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import AccessControl, Principal
from identity.services.branding import delete_branding
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.crud import DeactivatableEntityService
from identity.services.domains import OrganizationDomainService
from identity.services.legal_holds import LegalHoldService
from identity.services.mail_texts import delete_mail_texts
from identity.services.managers import refuse_last_owner
from identity.services.name_conflicts import refuse_conflicting_domain
from identity.services.policies import PolicyService
from identity.services.upstream_providers import UpstreamProviderService

_DUPLICATE_MESSAGES = {"primary_domain": gettext_lazy("Another organization has this primary domain. Choose another.")}


@dataclass(eq=False, repr=False)
class OrganizationService(DeactivatableEntityService[Organization]):
    """Organizations of the instance.

    Users of a deactivated organization cannot sign in, and its tokens are inactive. To deactivate or remove an
    organization you need all manager roles that its users hold. The instance's own organization stays, and so does
    at least one active IAM_OWNER. Verified domains stay reserved for a removed organization."""

    kind = "organization"
    store = "organizations"
    duplicate_messages = _DUPLICATE_MESSAGES

    _access: AccessControl
    _domains: OrganizationDomainService
    _legal_holds: LegalHoldService
    _policies: PolicyService
    _upstream_providers: UpstreamProviderService

    def create(
        self, command: CreateOrganization, *, principal: Principal | None = None, id: str | None = None
    ) -> Organization:
        """Create an organization; ``id`` restores a former id. Raises Invalid if the primary domain is taken. A domain
        that needs verification is pending unless the principal may assert it; until then the generated domain
        counts."""
        organization_id = id or new_id()
        domain = command.primary_domain
        if domain is None or not self._claim_primary_domain(organization_id, domain, principal):
            domain = self._domains.derive_free_domain(command.name, organization_id)
            self._claim_primary_domain(organization_id, domain, principal)
        organization = self._new_entity(Organization, command, id=organization_id, primary_domain=domain)
        self._add("organization.created", organization, organization_id, parent=("organization", organization_id))
        return organization

    def change(
        self,
        organization_id: str,
        command: ChangeOrganization,
        *,
        principal: Principal | None = None,
        expected_version: int | None = None,
    ) -> Organization:
        """Raises NotFound, Conflict, Invalid; Denied for a change that needs more than the permission to rename. A
        primary domain that needs verification is pending unless the principal may assert it; the former one stays in
        effect."""
        before = self.get(organization_id)
        values = {}
        domain = command.primary_domain
        if principal is not None and getattr(command, "registration", None) not in (None, before.registration):
            self._access.require(principal, "organization_policy.write", Resource.of_organization(organization_id))
        if domain is not None and domain != before.primary_domain:
            if principal is not None:
                self._access.require(principal, "organization_domain.write", Resource.of_organization(organization_id))
                # A new primary domain changes the login names of all its people.
                self._access.require_no_more_privileged_user(principal, organization_id)
            self._domains.ensure_bound(before)
            if not self._claim_primary_domain(organization_id, domain, principal):
                values["primary_domain"] = before.primary_domain
        after = self._next_version(before, command, expected_version=expected_version, **values)
        if after.primary_domain != before.primary_domain:
            refuse_conflicting_domain(self._storage, after.id, after.primary_domain)
        return self._update("organization.changed", before, after)

    def remove(self, id: str, *, principal: Principal) -> None:
        """Delete the organization with everything it owns. Raises NotFound, Conflict; Denied also if that includes
        entities the instance manages."""
        self._upstream_providers.require_can_remove_all(id, principal=principal)
        super().remove(id, principal=principal)

    def _authorize(self, organization: Organization, principal: Principal) -> None:
        self._access.require_no_more_privileged_user(principal, organization.id)

    def _refuse_deactivation(self, organization: Organization) -> None:
        instance = self._instance()
        if instance is not None and instance.organization_id == organization.id:
            raise Conflict(
                gettext_lazy("The instance's own organization holds the service itself; it must stay active.")
            )

        def belongs(owner: Manager) -> bool:
            user = self._storage.users.find(owner.user_id)
            return user is None or user.organization_id == organization.id

        refuse_last_owner(self._storage, belongs)

    def _refuse_removal(self, organization: Organization) -> None:
        self._legal_holds.refuse_organization_removal(organization.id)

    def _before_removal(self, organization: Organization) -> None:
        self._domains.ensure_bound(organization)
        delete_branding(self._storage.records, organization.id)
        delete_mail_texts(self._storage.records, organization.id)
        self._policies.remove_policy(organization.id)

    def _after_removal(self, organization: Organization) -> None:
        self._storage.audit.erase_personal_details(organization.id)

    def _organization_id(self, organization: Organization) -> str:
        return organization.id

    def _claim_primary_domain(self, organization_id: str, name: str, principal: Principal | None) -> bool:
        try:
            return self._domains.claim(organization_id, name, principal=principal)
        except Invalid as refused:
            raise Invalid({"primary_domain": refused.fields["domain"]}) from None

"""Create, change, deactivate, reactivate and remove organizations."""

from datetime import datetime

from identity.crypto.secrets import new_id
from identity.domain.errors import Conflict, Invalid
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.audit import Recorder
from identity.services.changes import TellInstance, UseCases, told
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.domains import Domains
from identity.services.managers import refuse_last_owner
from identity.storage.backend import Storage

_TAKEN = {"primary_domain": say("Another organization has this primary domain. Choose another.")}


class Organizations(UseCases):
    """Organizations of the instance."""

    def __init__(
        self,
        storage: Storage,
        audit: Recorder,
        now: datetime,
        *,
        instance: TellInstance,
        access: Access,
        domains: Domains,
    ) -> None:
        super().__init__(storage, audit, now)
        self._instance = instance
        self._access = access
        self._domains = domains

    def get(self, organization_id: str) -> Organization:
        """The organization. Raises NotFound."""
        return self._found(self._storage.organizations.find(organization_id), "organization", organization_id)

    def create(
        self,
        command: CreateOrganization,
        *,
        by: Principal | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Organization:
        """A new organization; ``id`` is one that it had before. Raises Invalid if the primary domain is taken.

        A domain that has to be proven waits, unless the caller may assert it; the one made of the name counts then.
        """
        organization_id = id or new_id()
        wanted = command.primary_domain
        if wanted is None or not self._settle(organization_id, wanted, by):
            wanted = self._domains.made_of(command.name, organization_id)
            self._settle(organization_id, wanted, by)
        organization = Organization(
            id=organization_id,
            name=command.name,
            primary_domain=wanted,
            registration=command.registration,
            created_at=self._now,
            changed_at=self._now,
        )
        with told("organization", organization.id, _TAKEN):
            self._storage.organizations.add(organization)
        self._record_created("organization.created", "organization", organization, organization.id)
        return organization

    def change(
        self,
        organization_id: str,
        command: ChangeOrganization,
        *,
        by: Principal | None = None,
        expected_version: int | None = None,
    ) -> Organization:
        """The changed organization. Raises NotFound, Conflict, Invalid.

        A primary domain that has to be proven waits, unless the caller may assert it; the former one goes on counting.
        """
        before = self.get(organization_id)
        given = dict(command)
        wanted = command.primary_domain
        if wanted is not None and wanted != before.primary_domain:
            self._domains.keep(before)
            if not self._settle(organization_id, wanted, by):
                del given["primary_domain"]
        after: Organization = self._next(before, "organization", expected_version, **given)
        return self._store("organization.changed", before, after)

    def deactivate(self, organization_id: str, *, by: Principal) -> Organization:
        """Nobody of the organization signs in, and its tokens are inactive, until it is reactivated.

        Raises NotFound; Denied if a user of it holds manager roles beyond the caller's; Conflict for the instance's own
        organization, and if no active IAM_OWNER would be left.
        """
        self._refuse_own(organization_id)
        before = self._governed(organization_id, by)
        self._refuse_last_owner(organization_id)
        return self._store("organization.deactivated", before, self._next(before, "organization", None, active=False))

    def reactivate(self, organization_id: str, *, by: Principal) -> Organization:
        """Undo deactivate. Raises NotFound, Denied."""
        before = self._governed(organization_id, by)
        return self._store("organization.reactivated", before, self._next(before, "organization", None, active=True))

    def remove(self, organization_id: str, *, by: Principal) -> None:
        """Delete the organization with everything in it; the domains that counted stay bound to it.

        Raises NotFound; Denied if a user of it holds manager roles beyond the caller's; Conflict for the instance's own
        organization, and if no active IAM_OWNER would be left.
        """
        self._refuse_own(organization_id)
        organization = self._governed(organization_id, by)
        self._refuse_last_owner(organization_id)
        self._domains.keep(organization)
        with told("organization", organization_id):
            self._storage.organizations.remove(organization_id)
        self._record_removed("organization.removed", "organization", organization, organization_id)

    def _store(self, event: str, before: Organization, after: Organization) -> Organization:
        update = self._storage.organizations.update
        stored: Organization = self._replace(update, event, before, after, before.id, taken=_TAKEN)
        return stored

    def _governed(self, organization_id: str, by: Principal) -> Organization:
        """The organization, if the caller holds all that its users hold. Raises NotFound, Denied."""
        organization = self.get(organization_id)
        self._access.require_none_above(by, organization_id)
        return organization

    def _settle(self, organization_id: str, name: str, by: Principal | None) -> bool:
        try:
            return self._domains.settle(organization_id, name, by=by)
        except Invalid as refused:
            raise Invalid({"primary_domain": refused.fields["domain"]}) from None

    def _refuse_last_owner(self, organization_id: str) -> None:
        def belongs(owner: Manager) -> bool:
            user = self._storage.users.find(owner.user_id)
            return user is None or user.organization_id == organization_id

        refuse_last_owner(self._storage, belongs)

    def _refuse_own(self, organization_id: str) -> None:
        instance = self._instance()
        if instance is not None and instance.organization_id == organization_id:
            raise Conflict(say("The instance's own organization holds the service itself; it has to stay active."))

"""Directories of the ini file: which serve an organization, and who controls them.

The ini file alone defines directories, so they belong to the instance: using one, as a test of its connection does,
takes instance.write besides the right to change the identity providers of the organization. A manager of the
organization alone sees its settings, but cannot make the service log in to the operator's servers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from identity.domain.directories import OrganizationDirectory
from identity.domain.errors import Conflict, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service
from identity.services.capabilities import DirectoryCapability

#: Tests of the connection per directory: each logs in to all of its servers.
MAX_DIRECTORY_TESTS = 20
_TEST_WINDOW = timedelta(hours=1)


@dataclass(eq=False, repr=False)
class DirectoryService(Service):
    """The directories of organizations."""

    _access: AccessControl
    _directories: Mapping[str, DirectoryCapability]

    def list_of_organization(self, organization: Organization) -> tuple[OrganizationDirectory, ...]:
        """The directories that serve the organization, in the order of the ini file."""
        return tuple(
            OrganizationDirectory(name, organization.id)
            for name, directory in self._directories.items()
            if directory.serves_organization(organization)
        )

    def get(self, organization_id: str, name: str) -> OrganizationDirectory:
        """Raises NotFound if the organization has no such directory."""
        organization = self._storage.organizations.find(organization_id)
        for directory in () if organization is None else self.list_of_organization(organization):
            if directory.name == name:
                return directory
        raise NotFound("directory", name)

    def mapped_claims(self, directory: OrganizationDirectory) -> frozenset[str]:
        """The attributes of its entries that mappings read. Locks nothing."""
        with self._look() as storage:
            return frozenset(
                mapping.claim
                for store in (storage.group_mappings, storage.attribute_mappings)
                for mapping in store.list_of_directory(directory.organization_id, directory.name)
            )

    def can_control(self, directory: OrganizationDirectory, principal: Principal) -> bool:
        """True if the principal may test the directory, and decide what it changes."""
        return all(self._access.is_permitted(principal, *right) for right in _rights_over(directory))

    def require_control(self, directory: OrganizationDirectory, principal: Principal) -> None:
        """Raise Denied unless the principal controls the directory: see ``can_control``."""
        for right in _rights_over(directory):
            self._access.require(principal, *right)

    def record_test(self, directory: OrganizationDirectory, *, principal: Principal) -> None:
        """Count and record a test of the connection. Raises Denied; Conflict after too many."""
        self.require_control(directory, principal)
        uses, key = self._storage.attempts, f"directory test:{directory.id}"
        if uses.count_use(key, used_at=self._now, window=_TEST_WINDOW, limit=MAX_DIRECTORY_TESTS) is not None:
            raise Conflict(gettext_lazy("The connection was tested several times. Try again in an hour."))
        self._audit.record(
            "directory.tested", kind="directory", id=directory.name, organization_id=directory.organization_id
        )


def _rights_over(directory: OrganizationDirectory) -> tuple[tuple[str, Resource], ...]:
    return (
        ("upstream_provider.write", Resource.of_organization(directory.organization_id)),
        (INSTANCE_WRITE, Resource.INSTANCE),
    )

"""Grant a project to another organization, and withdraw it."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from identity.crypto.secrets import new_id
from identity.domain.errors import Conflict, Invalid
from identity.domain.permissions import organization_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.audit import Recorder
from identity.services.changes import UseCases, told
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.backend import Storage

_TAKEN = {"organization_id": say("This organization has a grant of the project already.")}


class ProjectGrants(UseCases):
    """Project grants, seen from the granting project."""

    def __init__(self, storage: Storage, audit: Recorder, now: datetime, *, access: Access) -> None:
        super().__init__(storage, audit, now)
        self._access = access

    def get(self, grant_id: str) -> ProjectGrant:
        """The project grant. Raises NotFound."""
        return self._found(self._storage.project_grants.find(grant_id), "project grant", grant_id)

    def add(self, project_id: str, command: AddProjectGrant, *, by: Principal) -> ProjectGrant:
        """A new grant of the project, accepted if the caller gives roles in the organization that gets it.

        Raises NotFound; Invalid for unknown roles or a second grant.
        """
        project = self._project(project_id)
        if command.organization_id == project.organization_id:
            raise Invalid({"organization_id": say("The project belongs to this organization already.")})
        if self._storage.organizations.find(command.organization_id) is None:
            raise Invalid({"organization_id": say("There is no such organization.")})
        self._check_roles(project_id, command.roles)
        grant = ProjectGrant(
            id=new_id(),
            project_id=project_id,
            organization_id=command.organization_id,
            roles=command.roles,
            created_at=self._now,
            changed_at=self._now,
            accepted=self._speaks_for(by, command.organization_id),
        )
        with told("project", project_id, _TAKEN):
            self._storage.project_grants.add(grant)
        self._record_created("project_grant.added", "project_grant", grant, project.organization_id)
        return grant

    def accept(self, grant: ProjectGrant, *, by: Principal) -> None:
        """Note that the organization that holds it uses it, if the caller gives roles there."""
        if grant.accepted or not self._speaks_for(by, grant.organization_id):
            return
        after = self._next(grant, "project grant", None, accepted=True)
        # Whoever changed it meanwhile may have accepted it, too; if not, it is accepted by the next role.
        with suppress(Conflict):
            self._replace(
                self._storage.project_grants.update, "project_grant.accepted", grant, after, grant.organization_id
            )

    def change(
        self, grant_id: str, command: ChangeProjectGrant, *, expected_version: int | None = None
    ) -> ProjectGrant:
        """The grant with other roles; users lose what is no longer granted. Raises NotFound, Conflict, Invalid."""
        before = self.get(grant_id)
        self._check_roles(before.project_id, command.roles)
        after = self._next(before, "project grant", expected_version, roles=command.roles)
        return self._store("project_grant.changed", before, after)

    def deactivate(self, grant_id: str) -> ProjectGrant:
        """The organization loses access until the grant is reactivated. Raises NotFound."""
        before = self.get(grant_id)
        return self._store("project_grant.deactivated", before, self._next(before, "project grant", None, active=False))

    def reactivate(self, grant_id: str) -> ProjectGrant:
        """Undo deactivate. Raises NotFound."""
        before = self.get(grant_id)
        return self._store("project_grant.reactivated", before, self._next(before, "project grant", None, active=True))

    def withdraw(self, grant_id: str) -> None:
        """Delete the grant; what derives from it is gone at once. Raises NotFound."""
        grant = self.get(grant_id)
        with told("project grant", grant_id):
            self._storage.project_grants.remove(grant_id)
        self._record_removed("project_grant.removed", "project_grant", grant, self._owner(grant))

    def _store(self, event: str, before: ProjectGrant, after: ProjectGrant) -> ProjectGrant:
        update = self._storage.project_grants.update
        stored: ProjectGrant = self._replace(update, event, before, after, self._owner(before))
        return stored

    def _speaks_for(self, by: Principal, organization_id: str) -> bool:
        return self._access.may(by, "user_grant.write", organization_resource(organization_id))

    def _project(self, project_id: str) -> Project:
        return self._found(self._storage.projects.find(project_id), "project", project_id)

    def _owner(self, grant: ProjectGrant) -> str:
        return self._project(grant.project_id).organization_id

    def _check_roles(self, project_id: str, roles: frozenset[str]) -> None:
        refuse_unknown_roles(roles, (role.key for role in self._storage.projects.roles(project_id)))


def refuse_unknown_roles(roles: frozenset[str], known: Iterable[str]) -> None:
    """Raise Invalid, naming those that there are, unless all of these roles are known."""
    offered = sorted(known)
    unknown = ", ".join(sorted(roles.difference(offered)))
    if unknown and offered:
        sentence = say("The project has no role {roles}. Choose from {names}.", roles=unknown, names=", ".join(offered))
        raise Invalid({"roles": sentence})
    if unknown:
        raise Invalid({"roles": say("The project has no role {roles}.", roles=unknown)})

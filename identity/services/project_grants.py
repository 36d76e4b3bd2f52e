"""Grant a project to another organization, and withdraw the grant."""

from collections.abc import Iterable
from contextlib import suppress

from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.search import matches_query
from identity.services.access_control import Principal
from identity.services.base import refuse_until
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.services.crud import DeactivatableEntityService
from identity.services.project_grant_audit import GrantAuditedService
from identity.storage.paging import PageRequest, ResultPage

_DUPLICATE_MESSAGES = {"organization_id": gettext_lazy("This organization already has a grant of the project.")}


class ProjectGrantService(GrantAuditedService[ProjectGrant], DeactivatableEntityService[ProjectGrant]):
    """Project grants of the granting project. User grants and managers derived from one are removed and deactivated
    with it."""

    kind = "project_grant"
    store = "project_grants"
    duplicate_messages = _DUPLICATE_MESSAGES

    def page_received(
        self, organization_id: str, request: PageRequest, *, principal: Principal
    ) -> ResultPage[ProjectGrant]:
        """The grants that an organization has received and ``principal`` may read, newest first. A manager of single
        grants gets only these, on one page."""
        parts = self._access.permitted_children(
            principal, "project_grant.read", Resource.of_organization(organization_id)
        )
        stored = self._storage.project_grants
        if parts is None:
            return self._access.filter_page(principal, stored.page("organization_id", organization_id, request))
        managed = stored.find_many([part.id for part in parts if part.level is ManagerLevel.PROJECT_GRANT]).values()
        project_grants = [
            grant for grant in managed if grant.organization_id == organization_id and self._fits(grant, request)
        ]
        return self._access.filter_page(
            principal,
            ResultPage(tuple(sorted(project_grants, key=lambda project_grant: project_grant.id, reverse=True))),
        )

    def _fits(self, grant: ProjectGrant, request: PageRequest) -> bool:
        project = self._storage.projects.find(grant.project_id)
        return request.active in (None, grant.active) and project is not None and matches_query(request.query, project)

    def add(self, project_id: str, command: AddProjectGrant, *, principal: Principal) -> ProjectGrant:
        """Grant the project; accepted at once if the principal may grant roles in the receiving organization. Raises
        NotFound; Invalid for unknown roles or a second grant."""
        project = self._project(project_id)
        if command.organization_id == project.organization_id:
            raise Invalid({"organization_id": gettext_lazy("The project already belongs to this organization.")})
        if self._storage.organizations.find(command.organization_id) is None:
            raise Invalid({"organization_id": gettext_lazy("There is no such organization.")})
        self._check_roles(project_id, command.roles)
        refuse_until(command.until, self._now)
        grant = self._new_entity(
            ProjectGrant, command, project_id=project_id, accepted=self._speaks_for(principal, command.organization_id)
        )
        self._add("project_grant.added", grant, project.organization_id, parent=("project", project_id))
        return grant

    def accept(self, grant: ProjectGrant, *, principal: Principal) -> None:
        """Mark the grant as accepted if the principal may grant roles in the receiving organization."""
        if grant.accepted or not self._speaks_for(principal, grant.organization_id):
            return
        after = self._next_version(grant, accepted=True)
        # A concurrent change may have accepted it; if not, the next role granted does.
        with suppress(Conflict):
            self._update("project_grant.accepted", grant, after, organization_id=grant.organization_id)

    def change(
        self, grant_id: str, command: ChangeProjectGrant, *, principal: Principal, expected_version: int | None = None
    ) -> ProjectGrant:
        """Change the granted roles or the end; users lose withdrawn roles. Raises NotFound, Conflict, Invalid."""
        before = self._get_authorized(grant_id, principal)
        if command.roles is not None:
            self._check_roles(before.project_id, command.roles)
        after = self._next_version(before, command, expected_version=expected_version)
        if after.until != before.until:
            refuse_until(after.until, self._now)
        return self._update("project_grant.changed", before, after)

    def _speaks_for(self, principal: Principal, organization_id: str) -> bool:
        return self._access.is_permitted(principal, "user_grant.write", Resource.of_organization(organization_id))

    def _project(self, project_id: str) -> Project:
        return self._require_found(self._storage.projects.find(project_id), "project", project_id)

    def _project_grant(self, project_grant: ProjectGrant) -> ProjectGrant:
        return project_grant

    def _organization_id(self, project_grant: ProjectGrant) -> str:
        return self._project(project_grant.project_id).organization_id

    def _check_roles(self, project_id: str, roles: frozenset[str]) -> None:
        refuse_unknown_roles(roles, (role.key for role in self._storage.projects.list_roles(project_id)))


def refuse_unknown_roles(roles: frozenset[str], known: Iterable[str]) -> None:
    """Raise Invalid with the list of known roles unless all of these roles are known."""
    offered = sorted(known)
    unknown = ", ".join(sorted(roles.difference(offered)))
    if unknown and offered:
        sentence = gettext_lazy(
            "The project has no role {roles}. Choose from {names}.", roles=unknown, names=", ".join(offered)
        )
        raise Invalid({"roles": sentence})
    if unknown:
        raise Invalid({"roles": gettext_lazy("The project has no role {roles}.", roles=unknown)})

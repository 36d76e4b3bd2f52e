"""User grants: project roles of users."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar, Literal

from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.services.access_control import Principal, merge_roles
from identity.services.base import refuse_until
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.crud import DeactivatableEntityService
from identity.services.project_grant_audit import GrantAuditedService
from identity.services.project_grants import ProjectGrantService, refuse_unknown_roles
from identity.storage.paging import PageRequest, ResultPage, iterate_rows

_NO_USER = gettext_lazy("There is no such user.")
_NO_PROJECT = gettext_lazy("There is no such project.")
_NO_GRANT = {"user_id": gettext_lazy("The organization of this user has no grant of the project.")}
_DUPLICATE_MESSAGES = {"user_id": gettext_lazy("This user already has a grant of the project. Change its roles.")}


@dataclass(eq=False, repr=False)
class UserGrantService(GrantAuditedService[UserGrant], DeactivatableEntityService[UserGrant]):
    """A user of the project's own organization gets a direct grant, any other user one derived from a project grant."""

    WRITE: ClassVar = "user_grant.write"
    kind = "user_grant"
    store = "user_grants"
    duplicate_messages = _DUPLICATE_MESSAGES
    personal_fields = frozenset({"user_id"})

    _project_grants: ProjectGrantService

    def grant_resource(self, grant: UserGrant) -> Resource:
        """The resource of the grant's permissions: the project, or the project grant it derives from. Raises
        NotFound."""
        project = self._project(grant.project_id)
        if grant.project_grant_id is None:
            return project_resource(project)
        project_grant = self._storage.project_grants.find(grant.project_grant_id)
        return project_grant_resource(
            self._require_found(project_grant, "project grant", grant.project_grant_id), project
        )

    def page(
        self,
        filter_field: Literal["project_id", "project_grant_id"],
        filter_id: str,
        request: PageRequest,
        *,
        principal: Principal,
    ) -> ResultPage[UserGrant]:
        """The grants in a project, or those that derive from a project grant. Searching does not match names of users
        that the principal may not see."""
        visible_ids = self._access.visible_organization_ids(principal)
        page = self._storage.user_grants.page(filter_field, filter_id, request, organization_ids=visible_ids)
        return self._access.filter_page(principal, page)

    def add(self, command: AddUserGrant, *, principal: Principal) -> UserGrant:
        """Give a user roles in a project. Raises Invalid for unknown users, projects and roles, for a user whose
        organization has no grant of the project, and for a second grant; Denied without user_grant.write at the project
        or project grant. A user or project that the principal may not see counts as unknown."""
        user = self._storage.users.find(command.user_id)
        if user is None or not self._access.can_see_organization(principal, user.organization_id):
            raise Invalid({"user_id": _NO_USER})
        project_grant = self.find_source(
            user.organization_id,
            command.project_id,
            command.roles,
            principal,
        )
        refuse_until(command.until, self._now)
        grant = self._new_entity(
            UserGrant,
            command,
            organization_id=user.organization_id,
            project_grant_id=None if project_grant is None else project_grant.id,
        )
        self._add("user_grant.added", grant, grant.organization_id, parent=("user", user.id))
        if project_grant is not None:
            self.accept(project_grant, principal=principal)
        return grant

    def require_addable(
        self, organization_id: str, project_id: str, roles: frozenset[str], *, principal: Principal
    ) -> None:
        """Raise what ``add`` would raise for a new user of the organization."""
        self.find_source(organization_id, project_id, roles, principal)

    def accept(self, project_grant: ProjectGrant, *, principal: Principal) -> None:
        """Mark the project grant as accepted: a role from it was granted."""
        self._project_grants.accept(project_grant, principal=principal)

    def change(
        self, grant_id: str, command: ChangeUserGrant, *, principal: Principal, expected_version: int | None = None
    ) -> UserGrant:
        """Change the roles or their end. Raises NotFound, Invalid, Denied, Conflict."""
        before = self._get_authorized(grant_id, principal)
        project_grant = None
        if before.project_grant_id is not None:
            project_grant = self._storage.project_grants.find(before.project_grant_id)
        if command.roles is not None:
            self.check_roles(before.project_id, project_grant, command.roles)
        after = self._next_version(before, command, expected_version=expected_version)
        if after.until != before.until:
            refuse_until(after.until, self._now)
        return self._update("user_grant.changed", before, after)

    def give_roles(self, command: AddUserGrant, *, principal: Principal) -> bool:
        """Give a user these roles besides those that they have in the project; False if they have them already. A grant
        that has ended counts as none: the new one has only these roles. Raises what ``add`` and ``change`` raise;
        Conflict for a deactivated grant, and for an end other than that of the present grant, which stays."""
        present = self._find_in_project(command.user_id, command.project_id)
        if present is not None and not present.has_ended(self._now):
            if not present.active:
                raise Conflict(gettext_lazy("The user grant is deactivated. Reactivate it first."))
            if command.until not in (None, present.until):
                raise Conflict(gettext_lazy("The roles of this user have another end. Change them one by one."))
        roles = dict.fromkeys(command.roles, True)
        return self._merge_roles(command.user_id, command.project_id, roles, principal, command.until)

    def take_roles(self, user_id: str, project_id: str, roles: frozenset[str], *, principal: Principal) -> bool:
        """Take these roles of a user in the project, and their grant with the last one; False if they have none of
        them. Raises Denied."""
        return self._merge_roles(user_id, project_id, dict.fromkeys(roles, False), principal)

    def sync_roles(self, user_id: str, project_id: str, roles: Mapping[str, bool]) -> None:
        """Give or take these roles of a user in a project, as the operator; other roles stay. Raises DomainError."""
        self._merge_roles(user_id, project_id, roles, Principal.OPERATOR)

    def _merge_roles(
        self,
        user_id: str,
        project_id: str,
        roles: Mapping[str, bool],
        principal: Principal,
        until: datetime | None = None,
    ) -> bool:
        """``until`` is the end of a new grant. False if nothing changed."""
        grant = self._find_in_project(user_id, project_id)
        if grant is not None and grant.has_ended(self._now):
            self.remove(grant.id, principal=principal)
            grant = None
        before = frozenset[str]() if grant is None else grant.roles
        after = merge_roles(before, roles)
        if after == before:
            return False
        if grant is None:
            command = AddUserGrant(user_id=user_id, project_id=project_id, roles=after, until=until)
            self.add(command, principal=principal)
        elif after:
            self.change(grant.id, ChangeUserGrant(roles=after), principal=principal)
        else:
            self.remove(grant.id, principal=principal)
        return True

    def _find_in_project(self, user_id: str, project_id: str) -> UserGrant | None:
        grants = iterate_rows(partial(self._storage.user_grants.page, "user_id", user_id))
        return next((grant for grant in grants if grant.project_id == project_id), None)

    def _project_grant(self, user_grant: UserGrant) -> ProjectGrant | None:
        if user_grant.project_grant_id is None:
            return None
        return self._storage.project_grants.find(user_grant.project_grant_id)

    def _authorize(self, user_grant: UserGrant, principal: Principal) -> None:
        self._access.require(principal, self.WRITE, self.grant_resource(user_grant))

    def find_source(
        self,
        organization_id: str,
        project_id: str,
        roles: frozenset[str],
        principal: Principal,
        *,
        no_grant: Mapping[str, str] = _NO_GRANT,
    ) -> ProjectGrant | None:
        """What roles in the project derive from for users of the organization: None for its own projects, else the
        project grant. Raises Invalid for an unknown project or role, and with ``no_grant``; Denied without
        user_grant.write there."""
        project_grant = self._source(organization_id, project_id, principal, no_grant)
        self.check_roles(project_id, project_grant, roles)
        return project_grant

    def _source(
        self, organization_id: str, project_id: str, principal: Principal, no_grant: Mapping[str, str]
    ) -> ProjectGrant | None:
        project = self._storage.projects.find(project_id)
        if project is None:
            raise Invalid({"project_id": _NO_PROJECT})
        sees_project = self._access.can_see_organization(principal, project.organization_id)
        if project.organization_id == organization_id:
            self._require(principal, project_resource(project), sees_project)
            return None
        grant = self._storage.project_grants.find_for_organization(project_id, organization_id)
        if grant is None or not grant.is_effective(self._now):
            if not sees_project:
                raise Invalid({"project_id": _NO_PROJECT})
            raise Invalid(no_grant)
        self._require(principal, project_grant_resource(grant, project), sees_project)
        return grant

    def _require(self, principal: Principal, resource: Resource, sees_project: bool) -> None:
        try:
            self._access.require(principal, self.WRITE, resource)
        except Denied:
            if sees_project:
                raise
            raise Invalid({"project_id": _NO_PROJECT}) from None

    def check_roles(self, project_id: str, grant: ProjectGrant | None, roles: frozenset[str]) -> None:
        """Raise Invalid for a role that the project, or the project grant, does not have."""
        if grant is None:
            refuse_unknown_roles(roles, (role.key for role in self._storage.projects.list_roles(project_id)))
            return
        beyond = ", ".join(sorted(roles - grant.roles))
        if not beyond:
            return
        if not grant.roles:
            raise Invalid({"roles": gettext_lazy("The project grant does not include the role {roles}.", roles=beyond)})
        # The holder of the project grant must not learn which roles were not granted.
        sentence = gettext_lazy(
            "The project grant does not include the role {roles}. Choose from {names}.",
            roles=beyond,
            names=", ".join(sorted(grant.roles)),
        )
        raise Invalid({"roles": sentence})

    def _project(self, project_id: str) -> Project:
        return self._require_found(self._storage.projects.find(project_id), "project", project_id)

"""Groups in the desired state, with their members and roles.

A document describes roles of the organization's own projects, and manager roles at the organization and at these
projects. What a group has through a project grant is left alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from identity.domain.errors import Invalid
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.domain.projects import Project
from identity.services.commands.desired_state import GroupSpec
from identity.services.commands.groups import (
    AddGroup,
    AddGroupGrant,
    AddGroupManager,
    AddGroupMember,
    ChangeGroup,
    ChangeGroupGrant,
    ChangeGroupManager,
    ChangeGroupMember,
)
from identity.services.desired_state.existing_rows import ExistingRows, require_unambiguous
from identity.services.desired_state.reconciler import Reconciler, command_from_spec
from identity.storage.paging import iterate_rows


def ensure_groups(
    build: Reconciler, path: str, organization: Organization, described: tuple[GroupSpec, ...] | None
) -> None:
    """The groups of an organization: after its users and projects."""
    if described is None:
        return
    build.require("group.write", organization)
    groups = build.services.groups
    rows = partial(iterate_rows, partial(build.storage.groups.page, organization.id))
    present = ExistingRows[Group](groups.kind_label, [] if build.create_all else rows())

    def name_of(group: Group | GroupSpec) -> str:
        return f"{organization.primary_domain} / {group.name}"

    for number, spec in enumerate(described):
        group_path = f"{path}.groups[{number}]"
        create = partial(groups.add, organization.id, command_from_spec(spec, AddGroup))
        group = build.ensure(
            group_path,
            name_of(spec),
            spec,
            groups,
            ChangeGroup,
            find=partial(present.find, spec),
            create=partial(create, principal=build.principal, id=build.new_entity_id(spec)),
        )
        if group is not None:
            parts = _GroupParts(build, group_path, spec, group, organization)
            parts.ensure_members()
            parts.ensure_grants()
            parts.ensure_managers()
    build.prune_rows(
        f"{path}.groups",
        groups.kind_label,
        rows,
        key=lambda group: (group.id,),
        name=name_of,
        remove=lambda group: groups.remove(group.id, principal=build.principal),
    )


@dataclass(frozen=True)
class _GroupParts:
    """Members and roles of one group."""

    build: Reconciler
    path: str
    spec: GroupSpec
    group: Group
    organization: Organization

    def ensure_members(self) -> None:
        if self.spec.members is None:
            return
        build, members = self.build, self.build.services.group_members
        present = {member.user_id: member for member in self._members(with_mapped=True)}
        for number, spec in enumerate(self.spec.members):
            path = f"{self.path}.members[{number}]"
            if spec.has_ended(build.services.now):
                continue
            subject = build.resolve_user(path, spec.user, self.organization)
            if subject is None:
                continue
            command = AddGroupMember(user_id=subject.user.id, until=spec.until)
            build.ensure(
                path,
                self._name(subject.login_name),
                spec,
                members,
                ChangeGroupMember,
                find=partial(present.get, subject.user.id),
                create=partial(members.add, self.group.id, command, principal=build.principal),
            )
        build.prune_rows(
            f"{self.path}.members",
            members.kind_label,
            self._members,
            key=lambda member: (member.id,),
            name=lambda member: self._name(build.find_login_name(member.user_id)),
            remove=lambda member: members.remove(member.id, principal=build.principal),
        )

    def ensure_grants(self) -> None:
        if self.spec.grants is None:
            return
        build, grants = self.build, self.build.services.group_grants
        present = {grant.project_id: grant for grant in self._grants()}
        for number, spec in enumerate(self.spec.grants):
            path = f"{self.path}.grants[{number}]"
            if spec.has_ended(build.services.now):
                continue
            project = self._resolve_project(path, spec.project)
            if project is None:
                continue
            command = AddGroupGrant(project_id=project.id, roles=spec.roles, until=spec.until)
            build.ensure(
                path,
                self._name(project.name),
                spec,
                grants,
                ChangeGroupGrant,
                find=partial(present.get, project.id),
                create=partial(grants.add, self.group.id, command, principal=build.principal),
            )
        build.prune_rows(
            f"{self.path}.grants",
            grants.kind_label,
            self._grants,
            key=lambda grant: (grant.id,),
            name=lambda grant: self._name(grant.project_id),
            remove=lambda grant: grants.remove(grant.id, principal=build.principal),
        )

    def ensure_managers(self) -> None:
        if self.spec.managers is None:
            return
        build, managers = self.build, self.build.services.group_managers
        present = {manager.resource: manager for manager in self._managers()}
        for number, spec in enumerate(self.spec.managers):
            path = f"{self.path}.managers[{number}]"
            if spec.has_ended(build.services.now):
                continue
            key, name = ResourceKey(ManagerLevel.ORGANIZATION, self.organization.id), self.organization.primary_domain
            if spec.project is not None:
                project = self._resolve_project(path, spec.project)
                if project is None:
                    continue
                key, name = ResourceKey(ManagerLevel.PROJECT, project.id), project.name
            command = AddGroupManager(level=key.level, resource_id=key.id, roles=spec.roles, until=spec.until)
            build.ensure(
                path,
                self._name(name),
                spec,
                managers,
                ChangeGroupManager,
                find=partial(present.get, key),
                create=partial(managers.add, self.group.id, command, principal=build.principal),
            )
        build.prune_rows(
            f"{self.path}.managers",
            managers.kind_label,
            self._managers,
            key=lambda manager: (manager.id,),
            name=lambda manager: self._name(manager.resource.id),
            remove=lambda manager: managers.remove(manager.id, principal=build.principal),
        )

    def _members(self, *, with_mapped: bool = False) -> Iterable[GroupMember]:
        """Those by hand: mappings of identity providers add and remove the others."""
        members = iterate_rows(partial(self.build.storage.group_members.page, self.group.id))
        return (member for member in members if member.mapping_id is None or with_mapped)

    def _grants(self) -> Iterable[GroupGrant]:
        grants = iterate_rows(partial(self.build.storage.group_grants.page, self.group.id))
        return (grant for grant in grants if grant.project_grant_id is None)

    def _managers(self) -> Iterable[GroupManager]:
        managers = iterate_rows(partial(self.build.storage.group_managers.page, self.group.id))
        return (manager for manager in managers if manager.resource.level is not ManagerLevel.PROJECT_GRANT)

    def _resolve_project(self, path: str, reference: str) -> Project | None:
        """The organization's project with this id or name; None, and a problem, if there is none or several."""
        found = self.build.storage.projects.find(self.build.resolve_id(reference))
        if found is not None and found.organization_id == self.organization.id:
            return found
        with self.build.collect_problems(path):
            rows = iterate_rows(partial(self.build.storage.projects.page, self.organization.id))
            named = [project for project in rows if name_key(project.name) == name_key(reference)]
            project = require_unambiguous(reference, named)
            if project is None:
                raise Invalid({"project": gettext_lazy("There is no project {name}.", name=reference)})
            return project
        return None

    def _name(self, other: str) -> str:
        return f"{other} in {self.organization.primary_domain} / {self.group.name}"

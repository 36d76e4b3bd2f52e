"""User grants in the desired state: direct ones, and those derived from project grants."""

from collections.abc import Iterable
from functools import partial

from identity.domain.messages import gettext_lazy
from identity.domain.projects import UserGrant
from identity.services.commands.desired_state import UserGrantSpec
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.desired_state.projects import RoleSource
from identity.services.desired_state.reconciler import Reconciler
from identity.services.project_grants import refuse_unknown_roles
from identity.storage.paging import iterate_rows


def ensure_user_grants(build: Reconciler, role_source: RoleSource) -> None:
    described = role_source.spec.user_grants
    if described is None:
        return
    grants, principal = build.services.user_grants, build.principal
    build.services.access_control.require(principal, "user_grant.write", role_source.resource)
    present = {} if build.create_all else {grant.user_id: grant for grant in _grants(build, role_source)}
    for number, spec in enumerate(described):
        if spec.has_ended(build.services.now):
            continue
        _ensure_user_grant(build, f"{role_source.path}.user_grants[{number}]", role_source, spec, present)
    build.prune_rows(
        f"{role_source.path}.user_grants",
        grants.kind_label,
        partial(_grants, build, role_source),
        key=lambda grant: (grant.id,),
        name=lambda grant: f"{build.find_login_name(grant.user_id)} in {role_source.name}",
        remove=lambda grant: grants.remove(grant.id, principal=principal),
    )


def _ensure_user_grant(
    build: Reconciler,
    path: str,
    role_source: RoleSource,
    described: UserGrantSpec,
    present: dict[str, UserGrant],
) -> None:
    subject = build.resolve_user(path, described.user, role_source.users_organization)
    if subject is None:
        with build.collect_problems(path):
            refuse_unknown_roles(described.roles, _roles(build, role_source))
        return
    if subject.organization.id != role_source.users_organization.id:
        sentence = gettext_lazy(
            "This user belongs to another organization. Describe the grant under the project "
            "grant for that organization."
        )
        build.add_problem(f"{path}.user", sentence)
        return
    command = AddUserGrant(
        user_id=subject.user.id, project_id=role_source.project.id, roles=described.roles, until=described.until
    )
    build.ensure(
        path,
        f"{subject.login_name} in {role_source.name}",
        described,
        build.services.user_grants,
        ChangeUserGrant,
        find=partial(present.get, subject.user.id),
        create=partial(build.services.user_grants.add, command, principal=build.principal),
    )


def _roles(build: Reconciler, role_source: RoleSource) -> Iterable[str]:
    if role_source.grant:
        return role_source.grant.roles
    return (role.key for role in build.services.projects.list_roles(role_source.project.id))


def _grants(build: Reconciler, role_source: RoleSource) -> Iterable[UserGrant]:
    stored = build.storage.user_grants
    if role_source.grant is not None:
        return iterate_rows(partial(stored.page, "project_grant_id", role_source.grant.id))
    return (
        grant
        for grant in iterate_rows(partial(stored.page, "project_id", role_source.project.id))
        if grant.project_grant_id is None
    )

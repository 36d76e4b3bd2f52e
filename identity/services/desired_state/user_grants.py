"""User grants as described: a project's own, and those that derive from its grants to other organizations."""

from collections.abc import Iterable
from functools import partial

from identity.domain.messages import gettext_lazy
from identity.domain.projects import UserGrant
from identity.services.commands.desired_state import UserGrantSpec
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.desired_state.projects import RoleScope
from identity.services.desired_state.reconciler import EntityKind, Reconciler
from identity.services.project_grants import refuse_unknown_roles
from identity.storage.paging import iterate_rows


def ensure_user_grants(build: Reconciler, place: RoleScope) -> None:
    """The roles that users have there."""
    described = place.spec.user_grants
    if described is None:
        return
    grants, by = build.services.user_grants, build.principal
    build.services.access_control.require(by, "user_grant.write", place.resource)
    kind: EntityKind[UserGrant] = EntityKind(grants, ChangeUserGrant)
    present = {} if build.create_all else {grant.user_id: grant for grant in _grants(build, place)}
    for number, one in enumerate(described):
        _ensure_user_grant(build, f"{place.path}.user_grants[{number}]", place, one, kind, present)
    build.prune_rows(
        f"{place.path}.user_grants",
        kind.name,
        partial(_grants, build, place),
        key=lambda grant: (kind.name, grant.id),
        name=lambda grant: f"{_login_name(build, grant)} in {place.name}",
        remove=lambda grant: grants.remove(grant.id, by=by),
    )


def _ensure_user_grant(
    build: Reconciler,
    path: str,
    place: RoleScope,
    described: UserGrantSpec,
    kind: EntityKind[UserGrant],
    present: dict[str, UserGrant],
) -> None:
    subject = build.resolve_user(path, described.user, place.users_organization)
    if subject is None:
        with build.collect_problems(path):
            refuse_unknown_roles(described.roles, _roles(build, place))
        return
    if subject.organization.id != place.users_organization.id:
        sentence = gettext_lazy(
            "This user belongs to another organization. Describe it under a grant of the project to that one."
        )
        build.add_problem(f"{path}.user", sentence)
        return
    command = AddUserGrant(user_id=subject.user.id, project_id=place.project.id, roles=described.roles)
    build.ensure(
        path,
        f"{subject.login_name} in {place.name}",
        described,
        kind,
        find=partial(present.get, subject.user.id),
        create=partial(build.services.user_grants.add, command, by=build.principal),
    )


def _roles(build: Reconciler, place: RoleScope) -> Iterable[str]:
    return (
        place.grant.roles if place.grant else (one.key for one in build.services.projects.list_roles(place.project.id))
    )


def _grants(build: Reconciler, place: RoleScope) -> Iterable[UserGrant]:
    stored = build.storage.user_grants
    if place.grant is not None:
        return iterate_rows(partial(stored.page, "project_grant_id", place.grant.id))
    return (
        one
        for one in iterate_rows(partial(stored.page, "project_id", place.project.id))
        if one.project_grant_id is None
    )


def _login_name(build: Reconciler, grant: UserGrant) -> str:
    subject = build.storage.users.find_subject(grant.user_id)
    return grant.user_id if subject is None else subject.login_name

"""User grants as described: a project's own, and those that derive from its grants to other organizations."""

from collections.abc import Iterable
from functools import partial

from identity.domain.projects import UserGrant
from identity.domain.words import say
from identity.services.commands.descriptions import DescribedUserGrant
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.described.build import Build, Kind
from identity.services.described.projects import Place
from identity.services.project_grants import refuse_unknown_roles
from identity.storage.paging import every_row


def ensure_user_grants(build: Build, place: Place) -> None:
    """The roles that users have there."""
    described = place.described.user_grants
    if described is None:
        return
    grants, by = build.services.user_grants, build.by
    build.services.access.require(by, "user_grant.write", place.resource)
    kind: Kind[UserGrant] = Kind(grants, ChangeUserGrant)
    present = {} if build.fresh else {grant.user_id: grant for grant in _grants(build, place)}
    for number, one in enumerate(described):
        _ensure_user_grant(build, f"{place.path}.user_grants[{number}]", place, one, kind, present)
    build.prune(
        f"{place.path}.user_grants",
        kind.name,
        partial(_grants, build, place),
        key=lambda grant: (kind.name, grant.id),
        name=lambda grant: f"{_login_name(build, grant)} in {place.name}",
        remove=lambda grant: grants.remove(grant.id, by=by),
    )


def _ensure_user_grant(
    build: Build,
    path: str,
    place: Place,
    described: DescribedUserGrant,
    kind: Kind[UserGrant],
    present: dict[str, UserGrant],
) -> None:
    subject = build.user(path, described.user, place.users_of)
    if subject is None:
        with build.refusals_at(path):
            refuse_unknown_roles(described.roles, _roles(build, place))
        return
    if subject.organization.id != place.users_of.id:
        sentence = say(
            "This user belongs to another organization. Describe it under a grant of the project to that one."
        )
        build.problem(f"{path}.user", sentence)
        return
    command = AddUserGrant(user_id=subject.user.id, project_id=place.project.id, roles=described.roles)
    build.ensure(
        path,
        f"{subject.login_name} in {place.name}",
        described,
        kind,
        find=partial(present.get, subject.user.id),
        make=partial(build.services.user_grants.add, command, by=build.by),
    )


def _roles(build: Build, place: Place) -> Iterable[str]:
    return place.grant.roles if place.grant else (one.key for one in build.services.projects.roles(place.project.id))


def _grants(build: Build, place: Place) -> Iterable[UserGrant]:
    stored = build.storage.user_grants
    if place.grant is not None:
        return every_row(partial(stored.page, "project_grant_id", place.grant.id))
    return (
        one for one in every_row(partial(stored.page, "project_id", place.project.id)) if one.project_grant_id is None
    )


def _login_name(build: Build, grant: UserGrant) -> str:
    subject = build.storage.users.find_subject(grant.user_id)
    return grant.user_id if subject is None else subject.login_name

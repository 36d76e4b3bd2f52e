"""What users have effectively is what they have themselves and through each of their groups, by a simple model."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.expirations import earliest
from identity.domain.permissions import INSTANCE_KEY, ManagerLevel, ResourceKey
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory", "sqlite")

USERS, GROUPS, PROJECTS, RESOURCES = range(2), range(3), range(3), range(3)
#: The last project belongs to another organization, which grants it; the last resource is that project grant.
GRANTED, AT_GRANT = PROJECTS[-1], RESOURCES[-1]

ends = st.sampled_from([None, *(NOW + timedelta(days=days) for days in (-1, 0, 1, 2, 3))])
roles = st.frozensets(st.sampled_from(["buyer", "seller", "clerk"]))


def pairs(first: range, second: range, value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[tuple[int, int], Any]]:
    keys = st.tuples(st.sampled_from(first), st.sampled_from(second))
    return st.dictionaries(keys, value)


@dataclass(frozen=True)
class RoleState:
    """By the numbers of users, groups, projects and resources."""

    active_groups: tuple[bool, bool, bool]
    project_grant: tuple[frozenset[str], bool, datetime | None]
    members: dict[tuple[int, int], datetime | None]
    group_grants: dict[tuple[int, int], tuple[frozenset[str], datetime | None]]
    user_grants: dict[tuple[int, int], tuple[frozenset[str], bool, datetime | None]]
    group_managers: dict[tuple[int, int], datetime | None]
    managers: dict[tuple[int, int], datetime | None]

    def project_roles(self, user: int) -> Counter[Any]:
        """(project, roles, end) as often as the user has them."""
        direct = [
            (project, names, end)
            for (holder, project), (names, active, end) in self.user_grants.items()
            if holder == user and active and is_open(end)
        ]
        through = [
            (project, names, earliest((end, until)))
            for group, until in self._groups(user)
            for (holder, project), (names, end) in self.group_grants.items()
            if holder == group and is_open(end)
        ]
        allowed, active, granted_until = self.project_grant
        found: Counter[Any] = Counter()
        for project, names, end in (*direct, *through):
            if project != GRANTED:
                found[project, names, end] += 1
            elif active and is_open(granted_until):
                found[project, names & allowed, earliest((end, granted_until))] += 1
        return found

    def manager_roles(self, user: int) -> Counter[Any]:
        """(resource, end) as often as the user has roles there."""
        direct = [
            (resource, end) for (holder, resource), end in self.managers.items() if holder == user and is_open(end)
        ]
        through = [
            (resource, earliest((end, until)))
            for group, until in self._groups(user)
            for (holder, resource), end in self.group_managers.items()
            if holder == group and is_open(end)
        ]
        granted_until = self.project_grant[2]
        return Counter(
            (resource, earliest((end, granted_until)) if resource == AT_GRANT else end)
            for resource, end in (*direct, *through)
            if resource != AT_GRANT or is_open(granted_until)
        )

    def _groups(self, user: int) -> list[tuple[int, datetime | None]]:
        return [
            (group, end)
            for (group, member), end in self.members.items()
            if member == user and self.active_groups[group] and is_open(end)
        ]


def is_open(end: datetime | None) -> bool:
    return end is None or end > NOW


states = st.builds(
    RoleState,
    active_groups=st.tuples(*(st.booleans() for _ in GROUPS)),
    project_grant=st.tuples(roles, st.booleans(), ends),
    members=pairs(GROUPS, USERS, ends),
    group_grants=pairs(GROUPS, PROJECTS, st.tuples(roles, ends)),
    user_grants=pairs(USERS, PROJECTS, st.tuples(roles, st.booleans(), ends)),
    group_managers=pairs(GROUPS, RESOURCES, ends),
    managers=pairs(USERS, RESOURCES, ends),
)


class DiscardedRoles(Exception):
    """Rolls back a transaction."""


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(state=states)
def test_effective_roles_are_the_direct_ones_and_those_of_active_groups(world: World, state: RoleState) -> None:
    with suppress(DiscardedRoles), world.transaction_services() as services:
        check(services.storage, state)
        raise DiscardedRoles


def check(storage: Storage, state: RoleState) -> None:
    home, other = make.organization(), make.organization()
    projects = [make.project(home), make.project(home), make.project(other)]
    users = [make.human_user(home), make.service_user(home)]
    groups = [make.group(home, active=active) for active in state.active_groups]
    names, active, until = state.project_grant
    lent = make.project_grant(projects[GRANTED], home, roles=names, active=active, until=until)
    resources = [
        ResourceKey(ManagerLevel.ORGANIZATION, home.id),
        ResourceKey(ManagerLevel.PROJECT, projects[0].id),
        ResourceKey(ManagerLevel.PROJECT_GRANT, lent.id),
    ]
    source = {GRANTED: lent}
    storage.organizations.add(home)
    storage.organizations.add(other)
    for project in projects:
        storage.projects.add(project)
    for user in users:
        storage.users.add(user)
    for group in groups:
        storage.groups.add(group)
    storage.project_grants.add(lent)
    for (number, user), end in state.members.items():
        storage.group_members.add(make.group_member(groups[number], users[user], until=end))
    for (number, project), (some, end) in state.group_grants.items():
        storage.group_grants.add(
            make.group_grant(groups[number], projects[project], source.get(project), roles=some, until=end)
        )
    for (user, project), (some, is_active, end) in state.user_grants.items():
        storage.user_grants.add(
            make.user_grant(
                users[user],
                projects[project],
                source.get(project),
                organization_id=home.id,
                roles=some,
                active=is_active,
                until=end,
            )
        )
    for (number, resource), end in state.group_managers.items():
        storage.group_managers.add(make.group_manager(groups[number], resources[resource], until=end))
    for (user, resource), end in state.managers.items():
        owner = other if resource == AT_GRANT else home
        storage.managers.add(make.manager(users[user], resources[resource], organization_id=owner.id, until=end))
    of_organization: Counter[Any] = Counter()
    for number, user in enumerate(users):
        grants = storage.user_grants.list_effective(user.id, frozenset(item.id for item in projects), NOW)
        numbers = {item.id: at for at, item in enumerate(projects)}
        assert Counter((numbers[item.project_id], item.roles, item.until) for item in grants) == state.project_roles(
            number
        )
        assert {item.user_id for item in grants} <= {user.id}
        managers = storage.managers.list_effective(user.id, NOW)
        expected = state.manager_roles(number)
        assert Counter((resources.index(item.resource), item.until) for item in managers) == expected
        assert all(
            item.organization_id == (other if item.resource == resources[AT_GRANT] else home).id for item in managers
        )
        assert INSTANCE_KEY not in {item.resource for item in managers}
        of_organization.update((user.id, *key) for key in expected.elements())
    every = storage.managers.list_for_users_of_organization(home.id, NOW)
    assert Counter((item.user_id, resources.index(item.resource), item.until) for item in every) == of_organization
    assert storage.managers.list_for_users_of_organization(other.id, NOW) == ()

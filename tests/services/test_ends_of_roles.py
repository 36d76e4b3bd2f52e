"""Roles that end by themselves: who may give them until when, and what counts after the end."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from identity.application import IdentityApplication
from identity.domain.audit import ActorKind, AuditFilter
from identity.domain.effective_access import AccessEntry
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.expirations import MAX_TERM, TimeLimited
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.instance_bootstrap import ensure_roles
from identity.services.managers import refuse_last_owner
from identity.storage.contract import factories as make
from identity.testing.clock import FakeClock
from tests.services.factories import make_service_user, subject_of
from tests.services.test_access_control import House
from tests.services.test_user_grants import Shop

OPERATOR = Principal.OPERATOR
DAY = timedelta(days=1)


@pytest.fixture
def house(identity: IdentityApplication) -> Iterator[House]:
    with identity.transaction() as services:
        yield House(services)


@pytest.mark.parametrize("offset", [timedelta(), -DAY, MAX_TERM + timedelta(seconds=1)])
def test_end_must_be_in_the_future_and_within_ten_years(identity: IdentityApplication, offset: timedelta) -> None:
    with identity.transaction() as services:
        shop, house = Shop(services), House(services)
        until = services.now + offset
        anna = shop.person(shop.acme)
        grant, manager = shop.give(anna, "reader"), house.manager_of(house.user("u", "ORG_OWNER"))
        fresh = make_service_user(services, house.acme, "fresh")
        attempts = (
            lambda: services.user_grants.add(
                AddUserGrant(user_id=fresh.id, project_id=house.project.id, until=until), principal=OPERATOR
            ),
            lambda: services.user_grants.change(grant.id, ChangeUserGrant(until=until), principal=OPERATOR),
            lambda: services.project_grants.add(
                house.project.id, AddProjectGrant(organization_id=shop.third.id, until=until), principal=OPERATOR
            ),
            lambda: services.project_grants.change(shop.grant.id, ChangeProjectGrant(until=until), principal=OPERATOR),
            lambda: services.managers.add(
                Resource.INSTANCE,
                AddManager(user_id=fresh.id, roles=frozenset({"IAM_OWNER"}), until=until),
                principal=OPERATOR,
            ),
            lambda: services.managers.change(manager.id, ChangeManager(until=until), principal=OPERATOR),
        )
        for attempt in attempts:
            with pytest.raises(Invalid) as refused:
                attempt()
            assert set(refused.value.fields) == {"until"}


def test_roles_of_a_project_end_at_their_moment(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        anna = shop.person(shop.acme)
        grant = shop.give(anna, "reader")
        services.user_grants.change(grant.id, ChangeUserGrant(until=services.now + DAY), principal=OPERATOR)
        assert services.lookup.list_project_roles(anna.id, shop.project.id) == {"reader"}
    for seconds, expected in ((86399, {"reader"}), (1, set())):
        clock.advance(seconds)
        with identity.transaction() as services:
            assert services.lookup.list_project_roles(anna.id, shop.project.id) == expected


def test_roles_through_a_project_grant_end_with_it(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        berta = shop.person(shop.other)
        shop.give(berta, "reader")
        manager = shop.manager("PROJECT_GRANT_OWNER", shop.of_grant, shop.other)
        services.project_grants.change(shop.grant.id, ChangeProjectGrant(until=services.now + DAY), principal=OPERATOR)
    for days, counts in ((0, True), (1, False)):
        clock.advance(days=days)
        with identity.transaction() as services:
            assert bool(services.lookup.list_project_roles(berta.id, shop.project.id)) is counts
            assert (
                bool(services.projects.filter_audience(frozenset({shop.project.id}), manager.subject, None)) is counts
            )
            assert services.projects.is_granted_to(shop.project.id, shop.other.id) is (counts and shop.grant.accepted)
            principal = services.access_control.load_principal(manager.subject)  # type: ignore[arg-type]
            assert services.access_control.is_permitted(principal, "user_grant.write", shop.of_grant) is counts
    with identity.transaction() as services:
        shop.services = services
        carl = shop.person(shop.other, "carl")
        with pytest.raises(Invalid):
            shop.give(carl, "reader")


def test_manager_role_ends_at_its_moment(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        house = House(services)
        user = make_service_user(services, house.acme, "u")
        at = Resource.of_organization(house.acme.id)
        command = AddManager(user_id=user.id, roles=frozenset({"ORG_OWNER"}), until=services.now + DAY)
        services.managers.add(at, command, principal=OPERATOR)
        command = AddManager(user_id=user.id, roles=frozenset({"IAM_OWNER_VIEWER"}), until=services.now + DAY)
        services.managers.add(Resource.INSTANCE, command, principal=OPERATOR)
    for days, counts in ((0, True), (1, False)):
        clock.advance(days=days)
        with identity.transaction() as services:
            principal = services.access_control.load_principal(subject_of(services, user))
            assert services.access_control.is_permitted(principal, "organization.write", at) is counts
            assert services.access_control.can_see_organization(principal, house.other.id) is counts
            holders = services.instance_managers
            assert holders.is_instance_manager(user.id) is (user.id in holders.list_ids()) is counts


def test_manager_with_an_end_gives_no_role_beyond_it(house: House) -> None:
    services, at = house.services, Resource.of_organization(house.acme.id)
    owner, friend = house.user("owner", "ORG_OWNER"), house.user("friend")
    end = services.now + 10 * DAY
    services.managers.change(house.manager_of(owner).id, ChangeManager(until=end), principal=OPERATOR)
    principal = house.principal(owner)
    for until in (None, end + timedelta(seconds=1)):
        command = AddManager(user_id=friend.id, roles=frozenset({"ORG_OWNER"}), until=until)
        with pytest.raises(Denied):
            services.managers.add(at, command, principal=principal)
    manager_id = house.manager_of(owner).id
    for longer in (None, end + DAY):
        with pytest.raises(Denied):
            services.managers.change(manager_id, ChangeManager(until=longer), principal=principal)
    command = AddManager(user_id=friend.id, roles=frozenset({"ORG_OWNER"}), until=end)
    manager = services.managers.add(at, command, principal=principal)
    shorter = services.managers.change(manager.id, ChangeManager(until=end - DAY), principal=principal)
    assert shorter.until == end - DAY


def test_manager_with_an_end_may_take_roles_from_one_without(house: House) -> None:
    services = house.services
    owner, friend = house.user("owner", "ORG_OWNER"), house.user("friend", "ORG_OWNER", "ORG_USER_MANAGER")
    services.managers.change(house.manager_of(owner).id, ChangeManager(until=services.now + DAY), principal=OPERATOR)
    command = ChangeManager(roles=frozenset({"ORG_USER_MANAGER"}))
    changed = services.managers.change(house.manager_of(friend).id, command, principal=house.principal(owner))
    assert changed.roles == {"ORG_USER_MANAGER"}
    assert changed.until is None


def test_owner_with_an_end_is_not_the_last_owner(house: House) -> None:
    services = house.services
    first, second = house.user("first", "IAM_OWNER"), house.user("second", "IAM_OWNER")
    services.managers.change(house.manager_of(second).id, ChangeManager(until=services.now + DAY), principal=OPERATOR)
    manager = house.manager_of(first)
    owners = services.storage.managers.lock_by_role(Resource.INSTANCE.key, "IAM_OWNER")
    assert [owner.id for owner in owners] == [manager.id]
    for attempt in (
        lambda: services.managers.remove(manager.id, principal=OPERATOR),
        lambda: services.managers.change(manager.id, ChangeManager(until=services.now + DAY), principal=OPERATOR),
        lambda: services.service_users.deactivate(first.id, principal=OPERATOR),
        lambda: refuse_last_owner(services.storage, lambda owner: owner.user_id == first.id),
    ):
        with pytest.raises(Conflict):
            attempt()
    services.managers.remove(house.manager_of(second).id, principal=OPERATOR)


@pytest.mark.parametrize("until_day", [None, 1, 2, 3])
def test_lasting_roles_are_those_without_an_end_or_with_a_later_one(house: House, until_day: int | None) -> None:
    now, manager = house.services.now, house.manager_of(house.user("u", "ORG_OWNER"))
    ends = (None, 1, 2, 3)
    entries = tuple(replace(manager, id=str(end), until=None if end is None else now + end * DAY) for end in ends)
    principal = Principal(None, entries).lasting(None if until_day is None else now + until_day * DAY)
    expected = [str(end) for end in ends if end is None or (until_day is not None and end >= until_day)]
    assert [entry.id for entry in principal.manager_entries] == expected


def test_ends_are_announced_once_and_ended_roles_removed(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        until = services.now + 8 * DAY
        anna, berta = shop.person(shop.acme), shop.person(shop.other)
        derived, ended = shop.give(berta, "reader"), shop.give(anna, "reader")
        services.user_grants.change(ended.id, ChangeUserGrant(until=until), principal=OPERATOR)
        services.project_grants.change(shop.grant.id, ChangeProjectGrant(until=until + DAY), principal=OPERATOR)
        at = Resource.of_organization(shop.acme.id)
        command = AddManager(user_id=anna.id, roles=frozenset({"ORG_OWNER"}), until=until)
        manager = services.managers.add(at, command, principal=OPERATOR)

    def events(name: str) -> list[tuple[str | None, str | None]]:
        with identity.transaction() as services:
            found = services.storage.audit.page(filter=AuditFilter(event=name)).items
        assert {event.actor.kind for event in found} <= {ActorKind.SYSTEM}
        return [(event.object_id, event.organization_id) for event in found]

    jobs = identity.background_jobs
    jobs.tidy_ended_roles()
    assert events("user_grant.ending") == [], "it is too early"
    clock.advance(days=2)
    assert jobs.tidy_ended_roles() == jobs.tidy_ended_roles() == 0
    assert events("user_grant.ending") == [(ended.id, shop.acme.id)]
    assert events("manager.ending") == [(manager.id, shop.acme.id)]
    assert sorted(events("project_grant.ending")) == sorted(
        (shop.grant.id, organization.id) for organization in (shop.acme, shop.other)
    )
    clock.advance(days=6)
    assert jobs.tidy_ended_roles() == 2
    assert events("user_grant.removed") == [(ended.id, shop.acme.id)]
    assert events("manager.removed") == [(manager.id, shop.acme.id)]
    clock.advance(days=1)
    assert jobs.tidy_ended_roles() == 1
    with identity.transaction() as services:
        assert services.storage.user_grants.find(derived.id) is None
        assert services.storage.project_grants.find(shop.grant.id) is None


def test_synchronized_roles_are_given_anew_after_their_end(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        shop = Shop(services)
        anna = shop.person(shop.acme)
        services.user_grants.change(
            shop.give(anna, "reader").id, ChangeUserGrant(until=services.now + DAY), principal=OPERATOR
        )
        at = Resource.of_organization(shop.acme.id)
        command = AddManager(user_id=anna.id, roles=frozenset({"ORG_OWNER"}), until=services.now + DAY)
        services.managers.add(at, command, principal=OPERATOR)
    clock.advance(days=1)
    with identity.transaction() as services:
        subject = subject_of(services, anna)
        services.user_grants.sync_roles(anna.id, shop.project.id, {"reader": True})
        services.managers.sync_roles(subject, {"ORG_OWNER": True})
        assert services.lookup.list_project_roles(anna.id, shop.project.id) == {"reader"}
        principal = services.access_control.load_principal(subject)
        assert services.access_control.is_permitted(principal, "organization.write", at)


@pytest.mark.parametrize("days", [0, 1])
def test_recovered_owner_has_no_end(identity: IdentityApplication, clock: FakeClock, days: int) -> None:
    with identity.transaction() as services:
        house = House(services)
        robot = house.user("robot", "IAM_OWNER")
        house.user("other", "IAM_OWNER")
        command = ChangeManager(until=services.now + DAY)
        services.managers.change(house.manager_of(robot).id, command, principal=OPERATOR)
    clock.advance(days=days)
    with identity.transaction() as services:
        manager = ensure_roles(services, robot.id, Resource.INSTANCE, frozenset({"IAM_OWNER"}))
        assert manager.until is None
        principal = services.access_control.load_principal(subject_of(services, robot))
        assert services.access_control.is_permitted(principal, "instance.write", Resource.INSTANCE)


@pytest.mark.parametrize(
    "kind", sorted({kind.__name__ for kind in TimeLimited.__subclasses__()} - {AccessEntry.__name__})
)
def test_everything_with_an_end_is_listed_announced_and_ends(
    kind: str, identity: IdentityApplication, clock: FakeClock
) -> None:
    name = re.sub("(?<!^)(?=[A-Z])", "_", kind).lower()
    with identity.transaction() as services:
        shop = Shop(services)
        until = {kind: services.now + 7 * DAY}
        anna, team = shop.person(shop.other), make.group(shop.other)
        stranger = shop.manager("ORG_OWNER", Resource.of_organization(shop.third.id))
        at = Resource.of_organization(shop.other.id)
        grant = make.group_grant(team, shop.project, project_grant_id=shop.grant.id, until=until.get("GroupGrant"))
        manager = make.group_manager(team, roles=frozenset({"ORG_OWNER"}), until=until.get("GroupManager"))
        services.storage.groups.add(team)
        services.storage.group_members.add(make.group_member(team, anna, until=until.get("GroupMember")))
        services.storage.group_grants.add(replace(grant, roles=frozenset({"reader"})))
        services.storage.group_managers.add(manager)
        if not kind.startswith("Group"):
            services.storage.groups.delete(team.id)
            user_grant = shop.give(anna, "reader")
            services.user_grants.change(
                user_grant.id, ChangeUserGrant(until=until.get("UserGrant")), principal=OPERATOR
            )
            change = ChangeProjectGrant(until=until.get("ProjectGrant"))
            services.project_grants.change(shop.grant.id, change, principal=OPERATOR)
            add = AddManager(user_id=anna.id, roles=frozenset({"ORG_OWNER"}), until=until.get("Manager"))
            services.managers.add(at, add, principal=OPERATOR)

    def has_roles() -> tuple[bool, bool]:
        with identity.transaction() as services:
            principal = services.access_control.load_principal(subject_of(services, anna))
            project_roles = services.lookup.list_project_roles(anna.id, shop.project.id)
            return bool(project_roles), services.access_control.is_permitted(principal, "organization.write", at)

    with identity.transaction() as services:
        for organization_id in (shop.other.id, None):
            [listed] = services.overview.list_ending(organization_id, principal=OPERATOR)
            assert (listed.kind, type(listed.entity).__name__, listed.ends_at) == (name, kind, services.now + 7 * DAY)
        assert services.overview.list_ending(None, principal=stranger) == ()
    identity.background_jobs.tidy_ended_roles()
    with identity.transaction() as services:
        assert services.storage.audit.page(filter=AuditFilter(event=f"{name}.ending")).items
    clock.advance(days=7, seconds=-1)
    assert has_roles() == (True, True)
    clock.advance(1)
    gives_project_roles, gives_manager_roles = "Manager" not in kind, "Grant" not in kind
    assert has_roles() == (not gives_project_roles, not gives_manager_roles)

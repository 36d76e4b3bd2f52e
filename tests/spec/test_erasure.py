"""A deleted user is removed from every table, and the audit trail keeps only an id; see
``docs/explanation/privacy.rst``.
"""

import pytest

from identity.domain.audit import ERASED
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

TRAIL = "audit_events"


def tables_that_name(world: World, text: str) -> set[str]:
    """Tables with a row that contains this text in any column."""
    with world.identity.backend.dump() as dump:
        return {part.table for part in dump.tables for row in part.rows if text in repr(row)}


def make_named_user(world: World) -> HumanUser:
    """A renamed user whom many tables reference."""
    project = world.make_project()
    person = world.make_human_user()
    world.make_user_grant(person, project)
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    party = RelyingParty.register(world)
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(set_password(world, person))
    party.sign_in_silently(browser, "code", "openid profile offline_access")
    with world.transaction_services() as services:
        for name in ("Formerly", "Ada Later"):
            command = ChangeHumanUser(family_name=name, email="ada.later@mail.example")
            person = services.users.change(person.id, command, principal=Principal.OPERATOR)
    return person


@pytest.mark.thorough
@pytest.mark.storages("sqlite", "postgresql")  # memory has no tables
def test_deleted_user_remains_only_as_id_in_audit_trail(make_world: WorldFactory) -> None:
    world = make_world()
    person = make_named_user(world)
    tables = {"users", "passwords", "sessions", "user_grants", "managers", "access_tokens", "token_families", TRAIL}
    names = (person.user_name, "Formerly", "Ada Later", "ada.later@mail.example")
    assert tables_that_name(world, person.id) >= tables
    for item in names:
        assert TRAIL in tables_that_name(world, item)
    world.operator_services.users.remove(person.id)
    assert tables_that_name(world, person.id) == {TRAIL}
    for item in names:
        assert tables_that_name(world, item) == set()


def test_audit_trail_keeps_events_of_deleted_user(make_world: WorldFactory) -> None:
    world = make_world()
    person, user = make_named_user(world), world.make_human_user()
    before = {event.id: event for event in world.audit_events()}
    world.operator_services.users.remove(person.id)
    after = {event.id: event for event in world.audit_events()}
    # Applications are notified that the sessions have ended.
    ended, removed = sorted(after.keys() - before.keys(), key=lambda id: after[id].sequence)
    assert after[ended].event == "session.ended"
    about = [event for event in after.values() if event.object_id == person.id and event.detail]
    assert {event.event for event in about} >= {"user.created", "user.changed", "session.started", "user.removed"}
    assert {tuple(event.detail.items()) for event in about} == {tuple(ERASED.items())}
    assert after[removed].event == "user.removed"
    for event in about:
        if event.id in before:
            was = before[event.id]
            assert (event.at, event.event, event.actor, event.sequence) == (was.at, was.event, was.actor, was.sequence)
    [created] = [event for event in after.values() if (event.event, event.object_id) == ("user.created", user.id)]
    assert created == before[created.id]


def test_deleted_organization_erases_its_users(make_world: WorldFactory) -> None:
    world = make_world()
    organization = world.make_organization()
    person, user = world.make_human_user(organization=organization), world.make_human_user()
    world.operator_services.organizations.remove(organization.id)
    details = {event.object_id: event.detail for event in world.audit_events(event="user.created")}
    assert details[person.id] == ERASED
    assert details[user.id] != ERASED

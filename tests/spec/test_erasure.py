"""Whoever is deleted is gone from every table but the audit trail, as ``docs/operators/privacy.rst`` says."""

import pytest

from identity.domain.permissions import INSTANCE
from identity.testing.browser import Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

TRAIL = "audit_events"


def tables_that_name(world: World, text: str) -> set[str]:
    """Tables with a row in which this stands anywhere."""
    with world.identity.backend.dump() as dump:
        return {part.table for part in dump.tables for row in part.rows if text in repr(row)}


@pytest.mark.storages("sqlite", "postgresql")  # memory has no tables
def test_whoever_is_deleted_is_in_no_table_but_the_trail(make_world: MakeWorld) -> None:
    world = make_world()
    project = world.a_project()
    person = world.a_person()
    world.a_user_grant(person, project)
    world.make_manager(person, "IAM_OWNER", resource=INSTANCE)
    party = RelyingParty.of(world)
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(give_password(world, person))
    party.signed_in(browser, "code", "openid profile offline_access")
    kept = {"users", "passwords", "sessions", "user_grants", "managers", "access_tokens", "token_families", TRAIL}
    assert tables_that_name(world, person.id) >= kept
    assert tables_that_name(world, person.user_name) >= {"users", TRAIL}
    world.operator.users.remove(person.id)
    assert tables_that_name(world, person.id) == {TRAIL}
    assert tables_that_name(world, person.user_name) == {TRAIL}

"""Several processes of one service at once, as behind a load balancer: on databases that processes can share."""

from collections import Counter

import pytest

from identity.domain.permissions import INSTANCE_KEY
from identity.testing import nodes as acts
from identity.testing.clock import RunningClock
from identity.testing.fixtures import Databases
from identity.testing.nodes import PROCESSES, Nodes
from identity.testing.world import KeyPool, World

pytestmark = pytest.mark.storages("sqlite", "postgresql")  # memory belongs to one process


def test_of_fifty_uses_of_one_assertion_one_succeeds(own_world: World, nodes: Nodes) -> None:
    """Security 2.6: the unique index decides across nodes."""
    robot = own_world.a_robot()
    assertion = robot.assertion(jti="once", exp=own_world.clock.seconds + 3600)
    each = -(-50 // PROCESSES)
    answers = [one for outcome in nodes.all(acts.present, own_world.settings, assertion, each) for one in outcome]
    assert Counter(answers) == {(200, "openid"): 1, (400, "invalid_grant"): each * PROCESSES - 1}


def test_without_a_jti_all_of_them_succeed(own_world: World, nodes: Nodes) -> None:
    """And nobody waits so long for another that it is given up."""
    robot = own_world.a_robot()
    assertion = robot.assertion(exp=own_world.clock.seconds + 3600)
    answers = [one for outcome in nodes.all(acts.present, own_world.settings, assertion, 16) for one in outcome]
    assert Counter(answers) == {(200, "openid"): 16 * PROCESSES}


def test_a_revoked_token_is_dead_on_every_node_at_once(own_world: World, nodes: Nodes) -> None:
    """Security 7.4: whoever was told that it is revoked never sees it live again."""
    client = own_world.introspector
    token = own_world.a_robot().managing_token()
    outcomes = nodes.all(acts.revoke_and_ask, own_world.settings, token, client)
    assert {one for outcome in outcomes for one in outcome} == {(200, "False")}


def test_an_empty_database_is_bootstrapped_once(
    databases: Databases, key_pool: KeyPool, nodes: Nodes, storage_name: str
) -> None:
    """Security 8.3 and 14.6: one instance, one first key, one owner, whoever comes first."""
    settings = databases.empty(storage_name)
    outcomes = nodes.all(acts.bootstrap, settings)
    assert len({(organization, project) for organization, project, _, _ in outcomes}) == 1
    assert [made for _, _, made, _ in outcomes].count(True) == 1
    assert {len(kids) for _, _, _, kids in outcomes} == {1}
    assert len({tuple(kids) for _, _, _, kids in outcomes}) == 1
    world = World(settings, clock=RunningClock(), key_pool=key_pool)
    with world.reading() as services:
        assert len(services.storage.organizations.page().items) == 1
        assert len(services.storage.signing_keys.all()) == 1
        assert len(services.storage.managers.page(INSTANCE_KEY).items) == 1
    assert world.a_robot().access_token()
    world.close()
    databases.drop(settings)


def test_concurrent_rotation_makes_one_new_key(own_world: World, nodes: Nodes) -> None:
    """Security 8.3: the key sets are equal on every node."""
    seen = {kids for outcome in nodes.all(acts.rotate, own_world.settings, 5) for kids in outcome}
    assert len(seen) == 1
    assert len(seen.pop()) == 2
    with own_world.reading() as services:
        assert [key.generation for key in services.storage.signing_keys.all()] == [1, 2]

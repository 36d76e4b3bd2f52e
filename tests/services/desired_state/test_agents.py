"""Agents in documents: created stopped and without keys, never of another owner, and exported without keys."""

import json
from typing import Any

import pytest

from identity.crypto.signature_keys import PublicKey
from identity.domain.errors import Invalid
from identity.domain.users import Agent
from identity.services.access_control import Principal
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")


def apply(world: World, domain: str, *described: dict[str, Any]) -> list[str]:
    people = [{"user_name": "ada", "given_name": "Ada", "family_name": "L"}]
    people.append({"user_name": "bob", "given_name": "Bob", "family_name": "L"})
    organization = {"name": "Acme", "primary_domain": domain, "users": people, "service_users": list(described)}
    with world.transaction_services() as services:
        state = parse_desired_state({"version": 1, "organizations": [organization]})
        applied = apply_desired_state(services, state, principal=Principal.OPERATOR)
    return [f"{change.kind} {change.name} {change.detail}" for change in applied.state_changes]


def test_agents_are_created_stopped_and_keep_their_owner(world: World) -> None:
    agent = {"user_name": "bot", "display_name": "Bot", "owner": "ada", "may_manage": True}
    apply(world, "agents.example", agent)
    assert apply(world, "agents.example", agent) == []
    with world.read_only_services() as services:
        organization = services.storage.organizations.find_by_domain("agents.example")
        assert organization is not None
        stored = services.storage.users.find_by_name(organization.id, "bot")
        ada = services.storage.users.find_by_name(organization.id, "ada")
        assert isinstance(stored, Agent)
        assert ada is not None
        assert (stored.owner_user_id, stored.may_manage) == (ada.id, True)
        assert stored.stopped_at is not None
    key = {"public_key": PublicKey(world.key_pool.next().public_key()).to_pem()}
    for other, member in (
        ({**agent, "owner": "bob"}, "owner"),
        ({**agent, "owner": None}, "owner"),
        ({**agent, "keys": [key]}, "keys"),
        ({**agent, "generated_key": {}}, "keys"),
        ({**agent, "user_name": "new", "jwks_uri": "https://keys.example/jwks"}, "jwks_uri"),
        ({**agent, "user_name": "new", "owner": "bot"}, "owner"),
        ({"user_name": "robot", "display_name": "Robot", "may_manage": True}, "may_manage"),
    ):
        with pytest.raises(Invalid) as refusal:
            apply(world, "agents.example", other)
        assert [path.rpartition(".")[2] for path in refusal.value.fields] == [member], other


def test_export_names_the_owner_and_no_keys(world: World) -> None:
    owner = world.make_human_user()
    agent = world.make_agent(owner)
    with world.read_only_services() as services:
        transfer = OrganizationTransfer(services)
        text = "".join(transfer.export_document(owner.organization_id, principal=Principal.OPERATOR))
    [described] = json.loads(text)["organization"]["service_users"]
    assert (described["owner"], described["user_name"]) == (owner.id, agent.user.user_name)
    assert "keys" not in described

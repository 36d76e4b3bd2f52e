"""Identity provider service: what responses contain, permissions, and documents."""

import json
from typing import Any

import pytest

from identity.domain.errors import Denied, Invalid
from identity.domain.upstream_providers import UpstreamAuthentication, UpstreamKind
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory", "sqlite")

SECRET = "a-secret-of-the-provider"
PEM = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"""


def test_secret_is_write_only(world: World) -> None:
    provider = world.make_upstream_provider(client_secret=SECRET)
    with world.read_only_services() as services:
        assert services.upstream_providers.open_secret(provider) == SECRET
    assert SECRET.encode() not in provider.secret
    assert SECRET not in repr(CreateUpstreamProvider(name="a", client_id="b", client_secret=SECRET))
    [event] = world.audit_events(event="upstream_provider.created", object_id=provider.id)
    assert SECRET not in json.dumps(dict(event.detail))
    assert event.detail["secret_changed_at"]


def test_only_another_secret_is_a_change(world: World) -> None:
    provider = world.make_upstream_provider(client_secret=SECRET)
    change = world.operator_services.upstream_providers.change
    assert change(provider.id, ChangeUpstreamProvider(client_secret=SECRET)).version == 1
    world.clock.advance(60)
    after = change(provider.id, ChangeUpstreamProvider(client_secret="another"))
    assert after.version == 2
    [event] = world.audit_events(event="upstream_provider.changed", object_id=provider.id)
    assert set(event.detail) == {"secret_changed_at"}


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"issuer": ""}, "issuer"),
        ({"issuer": "http://login.example.com"}, "issuer"),
        ({"issuer": "https://login.example.com?x=1"}, "issuer"),
        ({"issuer": "https://user@login.example.com"}, "issuer"),
        ({"issuer": "javascript:alert(1)"}, "issuer"),
        ({"kind": UpstreamKind.ENTRA, "issuer": "https://login.microsoftonline.com/common/v2.0"}, "issuer"),
        ({"kind": UpstreamKind.GOOGLE, "issuer": "https://accounts.gooogle.com"}, "issuer"),
        ({"kind": UpstreamKind.APPLE, "issuer": "", "client_secret": None}, "team_id"),
        ({"kind": UpstreamKind.APPLE, "issuer": "", "client_secret": "no key"}, "client_secret"),
        ({"claims": ("nickname: nick",)}, "claims"),
        ({"claims": ("email_verified = yes",)}, "claims"),
        ({"client_id": "a b"}, "client_id"),
    ],
)
def test_conflicting_settings_are_refused(world: World, members: dict[str, Any], field: str) -> None:
    with pytest.raises((Invalid, ValueError)) as refused:
        world.make_upstream_provider(**members)
    if isinstance(refused.value, Invalid):
        assert field in refused.value.fields
    else:
        assert field in str(refused.value)


def test_only_instance_managers_create_instance_wide_providers(isolated_world: World) -> None:
    world = isolated_world
    organization = world.make_organization()
    owner = world.make_human_user(organization)
    manager = world.assign_manager_role(owner, "ORG_OWNER")
    principal = Principal(Subject(owner, organization), (manager,))
    command = CreateUpstreamProvider.build(
        name="For all", client_id="a", issuer="https://login.example.com", client_secret="s", everywhere=True
    )
    with world.transaction_services() as services, pytest.raises(Denied):
        services.upstream_providers.create(organization.id, command, principal=principal)
    for_all = world.make_upstream_provider(organization, everywhere=True)
    with world.transaction_services() as services, pytest.raises(Denied):
        services.upstream_providers.change(for_all.id, ChangeUpstreamProvider.build(name="Mine"), principal=principal)
    with world.transaction_services() as services, pytest.raises(Denied):
        services.upstream_providers.remove(for_all.id, principal=principal)


def test_provider_without_required_secret_is_not_offered(world: World) -> None:
    organization = world.make_organization()
    world.make_upstream_provider(organization, client_secret=None)
    by_key = world.make_upstream_provider(
        organization, client_secret=None, authentication=UpstreamAuthentication.PRIVATE_KEY_JWT
    )
    with world.read_only_services() as services:
        providers = [
            provider
            for provider in services.upstream_providers.list_available(organization.id)
            if not provider.everywhere
        ]
    assert providers == [by_key]


def test_export_omits_the_secret(world: World) -> None:
    organization = world.make_organization()
    provider = world.make_upstream_provider(organization, client_secret=SECRET, claims=("family_name = sn",))
    with world.read_only_services() as services:
        text = "".join(OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR))
    assert SECRET not in text
    [described] = json.loads(text)["organization"]["upstream_providers"]
    assert described["name"] == provider.name
    assert described["claims"] == ["family_name = sn"]
    assert "client_secret" not in described


def test_secret_replaced_within_a_second_is_kept(world: World) -> None:
    provider = world.make_upstream_provider(client_secret=SECRET)
    with world.transaction_services() as services:
        command = ChangeUpstreamProvider(client_secret="an-other-one")
        services.upstream_providers.change(provider.id, command, principal=Principal.OPERATOR)
    with world.read_only_services() as services:
        stored = services.upstream_providers.get(provider.id)
        assert services.upstream_providers.has_secret(stored, "an-other-one")

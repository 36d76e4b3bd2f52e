"""A newcomer's first half hour: service description §5.1 and §5.2 with only the files of the first start."""

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from identity import bootstrap
from identity.domain.permissions import Resource
from identity.services import instance_bootstrap
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.clock import FakeClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.jwt_assertions import assertion_claims, sign_assertion
from identity.testing.response_checks import check_api_error, check_inactive_token, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import World

pytestmark = pytest.mark.every_storage


def test_quickstart_from_first_start_to_first_management_call(
    database_factory: DatabaseFactory,
    key_pool: RsaKeyPool,
    storage_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "data"
    settings = database_factory.empty_database_settings(storage_name) | {"identity.data": str(data)}
    world = World(settings, clock=FakeClock(), key_pool=key_pool)
    outcome = bootstrap.prepare_development(world.identity, print_getting_started=True)
    announced = capsys.readouterr().out

    # The output names the next step, and contains the owner's password once.
    assert outcome.owner is not None
    assert outcome.owner.password in announced
    assert f"{world.issuer}/.well-known/openid-configuration" in announced
    assert "PRIVATE KEY" not in announced

    # Only the owner can read the key file and the client file.
    key_path, client_path = data / "example-service-user.json", data / "introspection-client.json"
    for path in (key_path, client_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file = json.loads(key_path.read_text())
    client = Credentials(*json.loads(client_path.read_text()).values())
    key = load_pem_private_key(file["key"].encode(), password=None)
    assert isinstance(key, RSAPrivateKey)

    def ask(scope: str) -> str:
        right = assertion_claims(file["userId"], world.issuer, world.clock.seconds)
        answer = world.client.exchange_assertion(sign_assertion(right, key, key_id=file["keyId"]), scope)
        token: str = check_token_response(answer)["access_token"]
        return token

    # §5.1: a first token, and its introspection.
    token = ask("openid profile")
    assert world.client.fetch_userinfo(token).json["preferred_username"] == "example"
    check_inactive_token(world.client.introspect(token, client))

    # §5.2: the audience scope alone permits nothing; ORG_OWNER does, with the same token.
    token = ask(f"openid {world.audience_scope(outcome.project_id)}")
    assert world.client.introspect(token, client).json["aud"] == [outcome.project_id]
    check_api_error(world.client.call_management_api("/instance", token), 403, "forbidden")
    with world.transaction_services() as services:
        resource = Resource.of_organization(outcome.organization_id)
        instance_bootstrap.ensure_roles(services, file["userId"], resource, frozenset({"ORG_OWNER"}))
    assert world.client.call_management_api("/me", token).json["roles"][0]["roles"] == ["ORG_OWNER"]
    assert world.client.call_management_api("/instance", token).json["project_id"] == outcome.project_id

    # A second start changes nothing and prints no password.
    before = {path: path.read_bytes() for path in (key_path, client_path)}
    again = bootstrap.prepare_development(world.identity, print_getting_started=True)
    assert again.owner is None
    assert outcome.owner.password not in capsys.readouterr().out
    assert {path: path.read_bytes() for path in before} == before
    assert world.client.fetch_userinfo(token).status_int == 200
    world.close()
    database_factory.drop(settings)

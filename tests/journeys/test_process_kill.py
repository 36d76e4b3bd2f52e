"""Security 18.1: revoked, rotated and used credentials stay so when every process is killed and others start."""

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest

from identity.testing.assembled_service import RsaKeyPool
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.service_test_client import encode_form
from identity.testing.world import World

pytestmark = [pytest.mark.storages("sqlite", "postgresql"), pytest.mark.thorough]  # memory ends with its process

#: Runs the commands that it reads, prints the responses, and is killed without warning.
NODE = """
import json, os, pickle, signal, sys
from identity.testing.clock import TickingClock
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.world import World
settings, requests = pickle.load(sys.stdin.buffer)
world = World(settings, clock=TickingClock(), key_pool=RsaKeyPool(0))
for method, url, headers, body in requests:
    answer = world.client.request(method, url, headers=headers, body=body)
    print(json.dumps([answer.status_int, answer.text]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(world: World, requests: list[tuple[str, str, dict[str, str], bytes]]) -> list[tuple[int, str]]:
    """The responses of another process of the service, which is killed afterwards."""
    node = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NODE],
        input=pickle.dumps((world.settings, requests)),
        stdout=subprocess.PIPE,
        check=False,
        timeout=300,
    )
    assert node.returncode == -9
    return [(status, text) for status, text in map(json.loads, node.stdout.splitlines())]


@pytest.mark.sampled(1, thorough=1)
def test_revoked_tokens_stay_revoked_after_a_kill(
    database_factory: DatabaseFactory, key_pool: RsaKeyPool, storage_name: str
) -> None:
    settings = database_factory.new_database_settings(storage_name) | {"identity.authorization_code_lifetime": "10m"}
    before = World(settings, clock=TickingClock(), key_pool=key_pool)
    before.bootstrap()
    application, robot = before.make_web_application(), before.make_service_user_program()
    manager = before.make_manager_program()
    live_tokens, ended = before.obtain_tokens(application), before.obtain_tokens(application)
    revoked = before.obtain_tokens(application)["access_token"]
    code = before.make_code(application, scope="openid offline_access").form()
    assertion = robot.assertion(jti="once", exp=before.clock.seconds + 3600)
    discovery, api = before.client.discovery, before.client.management_url
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    _, known = before.client_credentials(application)

    def posted(url: str, **members: str) -> tuple[str, str, dict[str, str], bytes]:
        return "POST", url, {**form, **known}, encode_form(members)

    token = discovery["token_endpoint"]
    once: list[Any] = [
        posted(discovery["revocation_endpoint"], token=revoked),
        posted(discovery["revocation_endpoint"], token=ended["refresh_token"]),
        posted(token, grant_type="refresh_token", refresh_token=live_tokens["refresh_token"]),
        posted(token, grant_type="authorization_code", **code),
        posted(token, grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer", assertion=assertion, scope="openid"),
    ]
    made_up = {"Authorization": f"Bearer {manager.management_token()}", "Content-Type": "application/json"}
    program = before.make_service_user_program(manager.organization)
    left = program.access_token("openid")
    once.append(("POST", f"{api}/service-users/{program.id}/deactivate", made_up, b""))
    before.close()

    answered = killed_after(before, once)
    assert [status for status, _ in answered] == [200] * len(once), answered
    refreshed, redeemed = json.loads(answered[2][1]), json.loads(answered[3][1])

    after = World(settings, clock=TickingClock(), key_pool=key_pool)
    try:
        # Everything that the killed process acknowledged is stored.
        for access_token in (refreshed["access_token"], redeemed["access_token"]):
            assert after.client.fetch_userinfo(access_token).status_int == 200
        for access_token in (revoked, ended["access_token"], left):
            assert after.client.fetch_userinfo(access_token).status_int == 401
        replayed = [(status, json.loads(text)["error"]) for status, text in killed_after(after, once[2:5])]
        assert replayed == [(400, "invalid_grant")] * 3
        # A replay revokes the family, even if the process that saw the first use is gone.
        for tokens in (refreshed, redeemed):
            assert after.client.fetch_userinfo(tokens["access_token"]).status_int == 401
            assert after.refresh(tokens["refresh_token"], application).json["error"] == "invalid_grant"
        assert after.refresh(ended["refresh_token"], application).json["error"] == "invalid_grant"
    finally:
        after.close()
        database_factory.drop(settings)

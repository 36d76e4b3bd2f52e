"""A third-party provider over real HTTP: oidc-provider from npm, which is OpenID certified.

The environment variable OIDC_PROVIDER names its folder; ``.ci/run`` installs it there: ``npm install --prefix FOLDER
oidc-provider``.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import requests

from identity.domain.upstream_providers import UpstreamAuthentication
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from tests.http_server import loopback_socket

NODE, FOLDER = shutil.which("node"), os.environ.get("OIDC_PROVIDER", "")
CLIENT_ID, SECRET = "identity", "a secret with: signs/+ %"

pytestmark = [
    pytest.mark.skipif(not NODE, reason="node is not installed"),
    pytest.mark.skipif(
        not Path(FOLDER, "node_modules", "oidc-provider").is_dir() or not FOLDER,
        reason="OIDC_PROVIDER names no folder in which oidc-provider was installed by npm",
    ),
    # The exchange does not depend on the storage.
    pytest.mark.storages("memory"),
]


@contextmanager
def running(port: int, client: dict[str, Any]) -> Iterator[None]:
    """Run the provider for the duration of the block."""
    script = Path(__file__).with_name("oidc_provider.mjs")
    command = [str(NODE), str(script), str(port), json.dumps(client)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        output = ""
        for line in process.stdout:
            output += line
            if line.strip() == "ready":
                break
        else:
            raise AssertionError(output)
        yield
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def approve(url: str, login: str, back: str) -> str:
    """Sign in and consent on the provider's pages; returns the redirect URL."""
    with requests.Session() as session:
        answer = session.get(url, allow_redirects=False, timeout=30)
        for _ in range(20):
            target = answer.headers.get("Location", "")
            if target.startswith(back):
                return target
            if target:
                answer = session.get(requests.compat.urljoin(answer.url, target), allow_redirects=False, timeout=30)
                continue
            action = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
            assert action is not None, answer.text
            hidden = re.findall(r'<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"', answer.text)
            form = dict(hidden) | {"login": login, "password": "any"}
            answer = session.post(
                requests.compat.urljoin(answer.url, unescape(action[1])), form, allow_redirects=False, timeout=30
            )
    raise AssertionError("the provider sends nobody back")


@pytest.mark.thorough
@pytest.mark.parametrize("method", list(UpstreamAuthentication))
def test_node_oidc_provider_sign_in(make_world: WorldFactory, method: UpstreamAuthentication) -> None:
    world = make_world(**{"identity.outgoing_networks": "127.0.0.0/8"})
    bound = loopback_socket()
    port = bound.getsockname()[1]
    bound.close()
    organization = world.make_organization()
    provider = world.make_upstream_provider(
        organization,
        issuer=f"http://127.0.0.1:{port}",
        client_id=CLIENT_ID,
        client_secret=SECRET,
        authentication=method,
        create_accounts=True,
    )
    callback = f"{world.identity.settings.login_url}{provider.callback_path}"
    client: dict[str, Any] = {
        "client_id": CLIENT_ID,
        "redirect_uris": [callback],
        "token_endpoint_auth_method": method.value,
    }
    if method is UpstreamAuthentication.PRIVATE_KEY_JWT:
        client["jwks"] = world.client.get(world.client.discovery["jwks_uri"]).json
        client["token_endpoint_auth_signing_alg"] = "RS256"
    else:
        client["client_secret"] = SECRET
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    with running(port, client):
        subjects = []
        for login in ("ada", "ada", "grace"):
            browser = Browser(world)
            authorization = party.open_request(browser, scope="openid profile email")
            browser.click(f"Sign in with {provider.name}")
            url = approve(str(browser.external_redirect), login, callback)
            subjects.append(
                party.obtain_tokens(browser.open(url, initiator=provider.issuer), authorization).claims["sub"]
            )
    assert subjects[0] == subjects[1] != subjects[2]
    profile = world.operator_services.users.get(subjects[0]).profile
    assert (profile.name, profile.email, profile.email_verified) == ("Ada Lovelace", "ada@elsewhere.example", False)

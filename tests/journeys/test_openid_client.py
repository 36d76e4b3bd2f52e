"""A third-party client over real HTTP: openid-client from npm, in the folder that OIDC_PROVIDER names."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from identity.crypto.signature_keys import PrivateKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import base64url
from identity.testing.relying_party import RelyingParty
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import World
from tests.plugins.device_authorization.device import GRANT_TYPES, enter_code, signed_in_browser
from tests.plugins.dynamic_registration.test_dynamic_registration import add_token

NODE, FOLDER = shutil.which("node"), os.environ.get("OIDC_PROVIDER", "")

pytestmark = [
    pytest.mark.skipif(
        not NODE or not FOLDER or not Path(FOLDER, "node_modules", "openid-client").is_dir(),
        reason="OIDC_PROVIDER names no folder in which openid-client was installed by npm, or node is missing",
    ),
    pytest.mark.storages("memory"),
]


@pytest.mark.thorough
def test_openid_client_signs_people_in_on_devices(served: World) -> None:
    person = served.make_human_user()
    client_id = served.make_public_application(grant_types=GRANT_TYPES, response_types=frozenset())
    command = [str(NODE), str(Path(__file__).with_name("openid_client_device.mjs")), served.issuer, client_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as device:
        assert device.stdout is not None
        browser = signed_in_browser(served, person)
        enter_code(browser, device.stdout.readline().strip())
        browser.submit(button=("decision", "approve"))
        output, _ = device.communicate()
    assert json.loads(output) == {"sub": person.id, "renewed": True}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("uses", "members"),
    [
        ("par dpop", {"required_sender_constraint": "dpop", "require_pushed_authorization_requests": True}),
        ("par jar jarm", {"require_signed_request_object": True, "require_encoded_response": True}),
        ("hybrid", {"response_types": ("code id_token",)}),
    ],
)
def test_openid_client_signs_people_in(served: World, uses: str, members: dict[str, Any]) -> None:
    """With private_key_jwt: pushed and signed requests, signed responses, bound tokens, the hybrid flow.

    Then it renews, exchanges, introspects and revokes tokens.
    """
    key = PrivateKey.generate(algorithm=SignatureAlgorithm.ES256)
    public = key.public_key().to_jwk("one")
    party = RelyingParty.register(
        served,
        redirect_uri="http://127.0.0.1:1/cb",
        development=True,
        authentication_method="private_key_jwt",
        jwks=json.dumps({"keys": [public]}),
        grant_types=("authorization_code", "refresh_token", TOKEN_EXCHANGE),
        **{"response_types": ("code",), **members},
    )
    private = base64url(key.native.private_numbers().private_value.to_bytes(32))
    settings = {
        "clientId": party.client_id,
        "redirectUri": party.redirect_uri,
        "key": {**public, "d": private},
        "uses": uses.split(),
    }
    browser, person = Browser(served), served.make_human_user()
    browser.start_session(person)
    program = str(Path(__file__).with_name("openid_client_sign_in.mjs"))
    command = [str(NODE), program, served.issuer, json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as application:
        assert application.stdout is not None
        browser.open(application.stdout.readline().strip(), initiator="http://127.0.0.1:1")
        output, _ = application.communicate(f"{browser.external_redirect}\n")
    bound = "dpop" in uses
    kind = "dpop" if bound else "bearer"
    assert json.loads(output) == {
        "sub": person.id,
        "type": kind,
        "exchanged": kind,
        "active": [True, False],
        "bound": bound,
    }


@pytest.mark.thorough
@pytest.mark.parametrize("served_settings", [{"identity.plugins": f"memory {DEFAULT_PLUGINS} dynamic_registration"}])
def test_openid_client_registers_itself(served: World) -> None:
    """With an initial access token (RFC 7591); it signs a person in, reads its metadata and deletes itself."""
    policy = {"client_registration": "initial_access_token", "registration_redirect_hosts": ["localhost"]}
    project_id = served.make_project().id
    with served.transaction_services() as services:
        project = services.projects.change(project_id, ChangeProject.decode(policy), principal=Principal.OPERATOR)
    redirect_uri, browser, person = "http://127.0.0.1:1/cb", Browser(served), served.make_human_user()
    browser.start_session(person)
    program = str(Path(__file__).with_name("openid_client_registration.mjs"))
    command = [str(NODE), program, served.issuer, add_token(served, project)["token"], redirect_uri]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as application:
        assert application.stdout is not None
        browser.open(application.stdout.readline().strip(), initiator="http://127.0.0.1:1")
        browser.submit(button=("decision", "allow"))
        output, _ = application.communicate(f"{browser.external_redirect}\n")
    assert json.loads(output) == {"sub": person.id, "name": "Reports", "deleted": 204}

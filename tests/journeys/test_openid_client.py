"""A third-party client over real HTTP: openid-client from npm, in the folder that OIDC_PROVIDER names."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from identity.testing.world import World
from tests.plugins.device_authorization.device import GRANT_TYPES, enter_code, signed_in_browser

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

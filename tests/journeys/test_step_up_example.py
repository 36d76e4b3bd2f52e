"""The example of an API that requires a second factor (RFC 9470), as the documentation has it."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from webtest import TestApp

from identity.domain.applications import ApplicationType
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.factors.authenticator_app import enrol
from tests.plugins.login.conftest import LoginUser, opened

EXAMPLE = Path(__file__).parents[2] / "docs/how-to/application-developers/examples/step_up_api.py"


def example_api(world: World, project_id: str) -> TestApp:
    """The example, registered as an API of the project."""
    spec = importlib.util.spec_from_file_location("step_up_api", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    credentials = world.make_application(project_id, type=ApplicationType.API)
    return TestApp(module.Api(world.issuer, credentials.client_id, credentials.secret), lint=False)


def challenge(api: TestApp, token: str) -> dict[str, str]:
    """The parameters with which the application goes back to the service."""
    header = api.get("/", headers={"Authorization": f"Bearer {token}"}, status=401).headers["WWW-Authenticate"]
    assert 'error="insufficient_user_authentication"' in header
    found = dict(re.findall(r'(acr_values|max_age)="?([^",]+)', header))
    assert found == {"acr_values": "urn:service:iam:acr:2", "max_age": "300"}
    return found


@pytest.mark.storages("memory")
def test_application_returns_with_a_second_factor(served: World) -> None:
    person, browser = LoginUser(served), Browser(served)
    project = served.make_project(person.organization)
    party, api = RelyingParty.register(served, project_id=project.id), example_api(served, project.id)
    app = enrol(Browser(served), person)
    browser.start_session(person.user)
    token = party.sign_in_silently(browser, response_type="code").access_token or ""
    request = opened(browser, party, response_type="code", **challenge(api, token))
    tokens = party.obtain_tokens(browser.submit({"code": app.code()}), request)
    answer = api.get("/", headers={"Authorization": f"Bearer {tokens.access_token}"})
    assert answer.text == f"Hello {person.user.id}"
    api.get("/", headers={"Authorization": "Bearer unknown"}, status=401)
    api.get("/", status=401)

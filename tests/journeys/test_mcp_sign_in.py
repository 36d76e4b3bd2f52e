"""The tutorial of MCP: its server and its client, of the package ``mcp``, sign a person in without registration."""

import asyncio
import logging
import runpy
import traceback
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
import uvicorn
from mcp.shared.auth import AuthorizationCodeResult

from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.asgi_server import running_server
from tests.http_server import loopback_socket
from tests.plugins.metadata_host import URL, install_url_client

EXAMPLES = Path(__file__).parents[2] / "docs" / "tutorials" / "examples" / "mcp"
CALLBACK = "http://127.0.0.1:8002/callback"

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def served_settings() -> dict[str, str]:
    return {
        "identity.plugins": f"memory {DEFAULT_PLUGINS} mcp",
        "identity.plugin.client_id_metadata_documents.allowed_hosts": "*",
    }


def test_agent_calls_a_tool_as_the_person_who_signed_in(served: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # The package logs what its callback raises, with the state.
    monkeypatch.setattr(logging.getLogger("mcp.client.auth.oauth2"), "disabled", True)
    bound = loopback_socket()
    mcp_url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
    organization = served.make_organization()
    project, person = served.make_project(organization), served.make_human_user(organization)
    api = served.make_application(project.id)
    install_url_client(served, "*", redirect_uris=["http://127.0.0.1/callback"])
    browser = Browser(served)
    browser.start_session(person)
    for name, value in {
        "ISSUER": served.issuer,
        "MCP_URL": mcp_url,
        "CLIENT_ID": api.client_id,
        "CLIENT_SECRET": api.secret,
    }.items():
        monkeypatch.setenv(name, value)
    server, agent = (runpy.run_path(str(EXAMPLES / f"{name}.py")) for name in ("server", "agent"))

    async def visit(url: str) -> None:
        assert dict(parse_qsl(urlsplit(url).query))["resource"] == mcp_url
        await asyncio.to_thread(browser.open, url, initiator="http://127.0.0.1:8002")
        if browser.sign_in_step == "consent":
            assert project.name in browser.page.html.get_text()
            await asyncio.to_thread(browser.submit, button=("decision", "allow"))

    async def callback() -> AuthorizationCodeResult:
        assert browser.external_redirect is not None, browser.page
        answer = dict(parse_qsl(urlsplit(browser.external_redirect).query))
        assert "code" in answer, answer
        return AuthorizationCodeResult(**answer)

    def call() -> str:
        return str(asyncio.run(agent["call_whoami"](mcp_url, URL, visit=visit, callback=callback)))

    def open_project(is_open: bool) -> None:
        with served.transaction_services() as services:
            command = ChangeProject.decode({"resource_uris": [mcp_url], "open_to_dynamic_clients": is_open})
            services.projects.change(project.id, command, principal=Principal.OPERATOR)

    config = uvicorn.Config(server["app"], log_config=None, timeout_graceful_shutdown=5)
    with running_server(uvicorn.Server(config), bound):
        open_project(False)
        with pytest.raises(ExceptionGroup) as refusal:
            call()
        assert "invalid_target" in "".join(traceback.format_exception(refusal.value))
        open_project(True)
        assert call() == person.id
        assert requests.post(mcp_url, json={}, timeout=10).status_code == 401

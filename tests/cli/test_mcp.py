"""identity mcp: an MCP client on its stdin and stdout, against a service that listens on a port."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import INI

pytest.importorskip("mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.thorough


@pytest.fixture
def talk(service: Any) -> Callable[..., Any]:
    """Runs a conversation with the server of a manager of the instance."""

    def talk(conversation: Callable[[ClientSession], Awaitable[Any]], *options: str) -> Any:
        program = Path(sys.executable).with_name("identity")
        arguments = ["mcp", "--issuer", service.issuer, "--key-file", str(service.key_file), *options]

        async def run() -> Any:
            parameters = StdioServerParameters(command=str(program), args=arguments)
            async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
                await session.initialize()
                return await conversation(session)

        return asyncio.run(run())

    return talk


@pytest.fixture
def owner(run: Callable[..., Any], service: Any) -> None:
    """Makes the service user a manager of the instance."""
    user_id = json.loads(service.key_file.read_text())["userId"]
    assert run("add-manager", "-c", INI, f"data={service.data}", "--user", user_id, "--role", "IAM_OWNER").status == 0


async def call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    answer = await session.call_tool(tool, arguments)
    text = "".join(part.text for part in answer.content)
    if answer.is_error:
        raise AssertionError(text)
    return json.loads(text)


def test_without_permission_to_change_only_reading_tools_are_offered(talk):
    async def conversation(session):
        return {tool.name: tool.annotations.read_only_hint for tool in (await session.list_tools()).tools}

    assert talk(conversation) == {"find_operations": True, "describe_operation": True, "read": True}
    assert talk(conversation, "--allow-changes")["change"] is False


def test_reads_with_the_roles_of_the_service_user(talk, owner):
    async def conversation(session):
        operations = (await call(session, "find_operations", query="list organizations"))["operations"]
        (found,) = [entry for entry in operations if entry["path"] == "/organizations"]
        described = await call(session, "describe_operation", operation=found["operation"])
        listed = await call(session, "read", operation=found["operation"], parameters={"limit": 1})
        return found, described, listed

    found, described, listed = talk(conversation)
    assert (found["method"], described["permission"]) == ("GET", "any manager")
    assert "limit" in {parameter["name"] for parameter in described["parameters"]}
    assert len(listed["items"]) == 1


def test_changes_are_recorded_as_the_service_users(talk, owner, service, run):
    async def conversation(session):
        described = await call(session, "describe_operation", operation="create_organization")
        created = await call(session, "change", operation="create_organization", body={"name": "Made by a model"})
        with pytest.raises(AssertionError, match='"error": "invalid"'):
            await call(session, "change", operation="create_organization", body={"name": ""})
        return described, created

    described, created = talk(conversation, "--allow-changes")
    assert "name" in described["body"]["properties"]
    assert created["name"] == "Made by a model"
    user_id = json.loads(service.key_file.read_text())["userId"]
    events = run("audit", "-c", INI, f"data={service.data}", "--event", "organization.created").out
    assert any(created["id"] in line and user_id in line for line in events.splitlines())


def test_secrets_are_left_out(talk, owner, service):
    user_id = json.loads(service.key_file.read_text())["userId"]

    async def conversation(session):
        parameters = {"service_user": user_id}
        body = {"name": "night job", "expires_at": None}
        return await call(session, "change", operation="add_personal_access_token", parameters=parameters, body=body)

    added = talk(conversation, "--allow-changes")
    assert "token" not in added
    assert added["left_out"].startswith("token: shown to people only.")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read", {"operation": "burn_everything"}, "There is no operation burn_everything"),
        ("read", {"operation": "create_organization"}, "it is not an operation to read"),
        ("read", {"operation": "show_organization"}, "These parameters are missing: organization"),
        ("read", {"operation": "list_organizations", "parameters": {"colour": "red"}}, "Unknown parameters: colour"),
        ("read", {"operation": "show_organization", "parameters": {"organization": "../me"}}, '"error": "not_found"'),
        ("change", {"operation": "create_organization"}, "Unknown tool"),
    ],
)
def test_wrong_calls_are_refused(talk, owner, tool, arguments, message):
    async def conversation(session):
        with pytest.raises(AssertionError, match=message):
            await call(session, tool, **arguments)

    talk(conversation)


def test_reports_a_rejected_key_at_start(run, service, tmp_path):
    members = json.loads(service.key_file.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**members, "keyId": "unknown"}))
    ran = run("mcp", "--issuer", service.issuer, "--key-file", other)
    assert ran.status == 1
    assert "The service refused: invalid_grant" in ran.err

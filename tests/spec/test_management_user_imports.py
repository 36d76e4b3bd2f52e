"""Management API: imports of people from CSV."""

import csv
import io
from typing import Any

import pytest

from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

TEXT = "user_name,given_name,family_name,roles\nanna,Anna,Ahlers,\nbert,Bert,Brandt,{project}:writer\n,No,Name,\n"


@pytest.fixture
def imports(owner: ServiceUserProgram) -> str:
    return f"/organizations/{owner.organization.id}/user-imports"


def _work(world: World) -> None:
    world.identity.background_jobs.user_importer.run()


def _counts(answer: Any) -> tuple[str, int, int, int]:
    return answer["state"], answer["created"], answer["existing"], answer["refused"]


def test_file_is_imported_with_options(world: World, owner: ServiceUserProgram, api: ApiClient, imports: str) -> None:
    project = world.make_project(owner.organization, roles=["reader", "writer"])
    path, text = f"{imports}?roles={project.id}:reader", TEXT.format(project=project.id)
    answer = api.ask("POST", path, body=text.encode(), content_type="text/csv", Idempotency_Key="once")
    again = api.ask("POST", path, body=text.encode(), content_type="text/csv", Idempotency_Key="once")
    assert (answer.status_int, answer.json) == (201, again.json)
    started = answer.json
    assert (_counts(started), started["line_count"]) == (("running", 0, 0, 0), 3)
    assert answer.headers["Location"].endswith(f"{imports}/{started['id']}")
    _work(world)
    assert _counts(api.get(f"{imports}/{started['id']}")) == ("finished", 2, 0, 1)
    assert [item["id"] for item in api.list(imports)] == [started["id"]]
    report = api.ask("GET", f"{imports}/{started['id']}/report")
    assert report.content_type == "text/csv"
    assert [row[:3] for row in csv.reader(io.StringIO(report.text))] == [
        ["line", "user_name", "result"],
        ["2", "anna", "created"],
        ["3", "bert", "created"],
        ["4", "", "refused"],
    ]
    with world.read_only_services() as services:
        users = [services.storage.users.find_by_name(owner.organization.id, name) for name in ("anna", "bert")]
        roles = [
            sorted(grant.roles)
            for user in users
            if user is not None
            for grant in services.storage.user_grants.page("user_id", user.id)
        ]
    assert roles == [["reader"], ["reader", "writer"]]
    assert len(world.audit_events(event="user_import.started", object_id=started["id"])) == 1
    api.delete(f"{imports}/{started['id']}")
    assert api.list(imports) == []


def test_dry_run_creates_nobody_until_it_is_run(world: World, api: ApiClient, imports: str) -> None:
    text = "user_name,given_name,family_name\nanna,Anna,Ahlers\n"
    started = api.post(imports, {"csv": text, "dry_run": True})
    _work(world)
    path = f"{imports}/{started['id']}"
    assert _counts(api.get(path)) == ("checked", 1, 0, 0)
    assert api.list(imports.replace("user-imports", "users")) == []
    assert api.post(f"{path}/run", status=200)["state"] == "running"
    _work(world)
    assert _counts(api.get(path)) == ("finished", 1, 0, 0)
    check_api_error(api.ask("POST", f"{path}/cancel"), 409, "conflict")


def test_cancelled_import_goes_no_further(world: World, api: ApiClient, imports: str) -> None:
    started = api.post(imports, {"csv": "user_name,given_name,family_name\nanna,Anna,Ahlers\n"})
    assert api.post(f"{imports}/{started['id']}/cancel", status=200)["state"] == "stopped"
    _work(world)
    assert api.get(f"{imports}/{started['id']}")["problem"] == "This import was cancelled."
    assert api.list(imports.replace("user-imports", "users")) == []


def test_import_is_run_by_its_starter_alone(
    world: World, owner: ServiceUserProgram, api: ApiClient, imports: str
) -> None:
    started = api.post(imports, {"csv": "user_name,given_name,family_name\nanna,Anna,Ahlers\n", "dry_run": True})
    _work(world)
    other = world.make_manager_program()
    foreign = f"/organizations/{other.organization.id}/user-imports/{started['id']}"
    check_api_error(ApiClient.for_user(other).ask("GET", foreign), 404, "not_found")
    colleague = world.make_service_user_program(owner.organization)
    world.assign_manager_role(colleague, "ORG_OWNER")
    check_api_error(ApiClient.for_user(colleague).ask("POST", f"{imports}/{started['id']}/run"), 403, "forbidden")


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"name\nanna\n", "text/csv", 422),
        (b"\xff\xfe", "text/csv", 422),
        (b"", "text/csv", 422),
        (b"x", "text/plain", 415),
    ],
)
def test_unreadable_file_is_refused(api: ApiClient, imports: str, body: bytes, content_type: str, status: int) -> None:
    assert api.ask("POST", imports, body=body, content_type=content_type).status_int == status

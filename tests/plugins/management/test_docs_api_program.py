"""The documentation's example program works against a real server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from identity.domain.projects import Project
from identity.testing.fixtures import WorldFactory
from identity.testing.world import pkcs1_pem
from tests.http_server import loopback_socket, running_http_server

EXAMPLE = Path(__file__).parents[3] / "docs" / "how-to" / "application-developers" / "examples" / "first_project.py"


@pytest.mark.storages("memory")
def test_docs_example_creates_project_with_application(make_world: WorldFactory, tmp_path: Path) -> None:
    bound = loopback_socket()
    issuer = f"http://127.0.0.1:{bound.getsockname()[1]}"
    world = make_world(**{"identity.issuer_url": issuer, "identity.development": "true"})
    robot = world.make_manager_program("ORG_OWNER")
    key_file = tmp_path / "key.json"
    members = {"type": "serviceaccount", "keyId": robot.key_id, "key": pkcs1_pem(robot.key), "userId": robot.id}
    key_file.write_text(json.dumps(members))
    with running_http_server(world.app, bound):
        run = subprocess.run(
            [sys.executable, EXAMPLE, issuer, key_file], capture_output=True, text=True, check=False, timeout=60
        )
    assert run.returncode == 0, run.stderr
    output = json.loads(run.stdout)
    world.client.secrets.add(output["application"]["client_secret"])
    with world.read_only_services() as services:
        project: Project = services.projects.get(output["project"]["id"])
        application = services.applications.get(output["application"]["client_id"])
    assert (project.organization_id, project.check_roles) == (robot.organization.id, True)
    assert application.project_id == project.id

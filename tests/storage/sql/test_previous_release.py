"""The previous release keeps working after the newest schema revision: its own code, from the git history."""

import configparser
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from identity.plugin_host import ENTRY_POINT_GROUP
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.migrations.runner import oldest_compatible_revision, script_directory
from identity.testing.mariadb import drop_database as drop_from_mariadb
from identity.testing.mariadb import new_database as new_in_mariadb
from identity.testing.postgresql import drop_database, new_database

ROOT = Path(__file__).resolve().parents[3]
_NEWEST, _BEFORE = [item for _, item in zip(range(2), script_directory().walk_revisions(), strict=False)]

#: Runs with the code and the names of the previous release. The migration happens between its two lines of output.
_PROGRAM = """
import json, sys
from identity.plugins.sql.migrations import HEAD
from identity.testing.clock import FakeClock
from identity.testing.response_checks import check_token_response
from identity.testing.assembled_service import DEFAULT_PLUGINS, ONE_HOST_SETTINGS, RsaKeyPool
from identity.testing.world import World

given = json.loads(sys.argv[1])
settings = ONE_HOST_SETTINGS | given | {"identity.plugins": f"sql {DEFAULT_PLUGINS}"}
world = World(settings, clock=FakeClock(), key_pool=RsaKeyPool(1))
world.bootstrap()
scope = "openid profile offline_access"
manager = world.make_manager_program()
client = world.make_web_application(grant_types=frozenset({"authorization_code", "refresh_token"}))
person = world.make_human_user(manager.organization)
session = world.make_browser_session(person)
held = check_token_response(world.redeem(world.make_code(client, session, scope=scope), client))
print(HEAD, flush=True)
sys.stdin.readline()

found = {}
world.identity.backend.check()
token = manager.management_token()
found["introspection"] = world.client.introspect(token, world.introspector).json["active"]
found["userinfo"] = world.client.fetch_userinfo(held["access_token"]).json["sub"] == person.id
brought = check_token_response(world.refresh(held["refresh_token"], client))
found["refresh"] = world.client.fetch_userinfo(brought["access_token"]).status_int
found["replay"] = world.refresh(held["refresh_token"], client).json["error"]
found["after the replay"] = world.client.fetch_userinfo(brought["access_token"]).status_int
held = check_token_response(world.redeem(world.make_code(client, session, scope=scope), client))
found["revoked"] = world.client.revoke(held["refresh_token"], client).status_int
found["after it"] = world.client.fetch_userinfo(held["access_token"]).status_int
projects = f"/organizations/{manager.organization.id}/projects"
made = world.client.call_management_api(projects, token, "POST", {"name": "Made meanwhile"})
found["made"] = made.status_int
path = f"/projects/{made.json['id']}"
found["renamed"] = world.client.call_management_api(path, token, "PATCH", {"name": "Renamed"}).json["name"]
found["deleted"] = world.client.call_management_api(path, token, "DELETE").status_int
found["gone"] = world.client.call_management_api(path, token).status_int
found["person deleted"] = world.client.call_management_api(f"/users/{person.id}", token, "DELETE").status_int
found["person gone"] = world.refresh(brought["refresh_token"], client).json["error"]
found["audited"] = sorted(event.event for event in world.audit_events(object_id=made.json["id"]))
print(json.dumps(found), flush=True)
world.close()
"""


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the last commit before the newest revision was added."""
    file = Path(script_directory().get_revision(_NEWEST.revision).path).relative_to(ROOT)
    # The commit on the first-parent history, which may be a merge.
    added = (
        _git("log", "--first-parent", "-m", "--diff-filter=A", "--format=%H", "-1", "--", str(file)).decode().strip()
    )
    commit = f"{added}^" if added else "HEAD"
    folder = tmp_path_factory.mktemp("before")
    archive = _git("archive", commit, "identity", "setup.cfg")
    subprocess.run(["tar", "--extract", "--directory", folder], input=archive, check=True)
    # Metadata of the previous release hides the entry points of the installed one, which name current classes.
    config = configparser.ConfigParser()
    config.read(folder / "setup.cfg")
    lines = "".join(f"[{group}]{points}\n" for group, points in config["options.entry_points"].items())
    for name in {point.dist.name for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist}:
        metadata = folder / f"{name.replace('-', '_')}-0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 0\n")
        (metadata / "entry_points.txt").write_text(lines)
    return folder


def _git(*arguments: str) -> bytes:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the code before this one can be had from the history of a whole clone alone.")


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.thorough)])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/identity.db"
    elif request.param == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        yield (url := new_database(server))
        drop_database(server, url)
    else:
        server = request.getfixturevalue("mariadb_server")
        yield (url := new_in_mariadb(server))
        drop_from_mariadb(server, url)


@pytest.mark.thorough
@pytest.mark.skipif(
    oldest_compatible_revision(_NEWEST) > _BEFORE.revision, reason="the newest revision says that nodes stop for it"
)
def test_previous_release_works_with_current_schema(before: Path, new_url: str, tmp_path: Path) -> None:
    key = tmp_path / "master.key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    settings = {
        "identity.storage": "sql",
        "identity.plugin.sql.url": new_url,
        "identity.master_keys": f"1:{key}",
        "identity.data": str(tmp_path),
    }
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, json.dumps(settings)],
        cwd=before,
        env={"PYTHONPATH": str(before), "PATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        first = program.stdout.readline().strip()
        if not first:
            pytest.fail(program.stderr.read())
        assert oldest_compatible_revision(_NEWEST) <= first < _NEWEST.revision, (
            "it is a release before, and made its own schema"
        )
        backend = SqlBackend(SqlPluginSettings(url=new_url))
        assert backend.migrate(), "there is something newer"
        backend.close()
        output, problems = program.communicate("\n", timeout=120)
    assert program.returncode == 0, problems
    assert json.loads(output) == {
        "introspection": True,
        "userinfo": True,
        "refresh": 200,
        "replay": "invalid_grant",
        "after the replay": 401,
        "revoked": 200,
        "after it": 401,
        "made": 201,
        "renamed": "Renamed",
        "deleted": 204,
        "gone": 404,
        "person deleted": 204,
        "person gone": "invalid_grant",
        "audited": ["project.changed", "project.created", "project.removed"],
    }

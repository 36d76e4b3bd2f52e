"""Deferred imports: a process responds before it imports what most of its requests never need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from identity.cli import main as identity_program

ROOT = Path(__file__).resolve().parents[2]

#: Modules that no start imports, with their users.
LATER = {
    "oic": "the first token, error or authorization request",
    "jwkest": "pyoidc imports it",
    "Cryptodome": "pyoidc imports it",
    "pydantic_settings": "pyoidc imports it",
    "defusedxml": "pyoidc imports it",
    "requests": "pyoidc, and the commands for clients",
    "urllib3": "requests imports it",
    "alembic": "migrations",
    "sqlalchemy.orm": "plugins with a session of their own",
    "zope.sqlalchemy": "the same plugins",
    "psycopg": "PostgreSQL",
    "sqlalchemy.dialects.mysql": "MariaDB",
    "mako": "alembic imports it",
    "zxcvbn": "new passwords",
    "yaml": "state files",
    "pyotp": "authenticator apps",
    "segno": "authenticator apps",
    "webauthn": "passkeys",
    "authlib": "other identity providers",
    "ldap3": "directories",
    "scim2_models": "provisioning",
    "PIL": "logos",
    "webtest": "tests",
    "pytest": "tests",
    "identity.cli": "the program identity",
    "identity.testing": "tests",
}
_PROGRAM = """
import json, sys
import pyramid.scripts.pserve
from paste.deploy import loadapp, loadserver
from identity.application_factory import main
from identity.ini_file import read_section
from webob import Request

application = main({}, **read_section(sys.argv[1], "app:main", {"http_port": "8080", "data": sys.argv[2]}))
for path in ("/healthz", "/readyz", "/.well-known/openid-configuration", "/oauth/v2/keys", "/login"):
    answer = Request.blank(f"http://localhost:8080{path}").get_response(application)
    assert answer.status_int in (200, 303), (path, answer)
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """All modules of a process that has started with development.ini and answered its first request."""
    data, ini = tmp_path_factory.mktemp("start"), str(ROOT / "development.ini")
    assert identity_program(["migrate", "-c", ini, f"data={data}"]) == 0
    assert identity_program(["bootstrap", "-c", ini, f"data={data}"]) == 0
    ran = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", _PROGRAM, ini, str(data)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"},
    )
    assert ran.returncode == 0, ran.stderr
    return frozenset(json.loads(ran.stdout.splitlines()[-1]))


@pytest.mark.thorough
def test_optional_modules_are_imported_on_demand(imported: frozenset[str]) -> None:
    for name in LATER:
        assert not {item for item in imported if item == name or item.startswith(f"{name}.")}, (
            f"it is for {LATER[name]}"
        )

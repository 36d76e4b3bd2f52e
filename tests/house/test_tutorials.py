"""The code of the tutorials runs against the service that `make run` starts, with the commands on the pages."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.external_programs import judge
from tests.house.docs_programs import submitted
from tests.house.service_processes import DEVELOPMENT, ROOT, free_port
from tests.http_server import self_signed_certificate

TUTORIALS = ROOT / "docs" / "tutorials"
EXAMPLES = TUTORIALS / "examples"
BIN = Path(sys.prefix) / "bin"
NEW_PASSWORD = "not the one that was printed"


@dataclass(frozen=True)
class RunningService:
    """The service after its first start; the first owner has chosen a password."""

    issuer: str
    data: Path
    login_name: str

    @property
    def variables(self) -> list[str]:
        return [f"http_port={self.issuer.rpartition(':')[2]}", f"data={self.data}"]

    def identity(self, command: str, *arguments: object) -> str:
        """The output of a command."""
        ini = [] if command == "token" else ["-c", DEVELOPMENT, *self.variables]
        return output_of([BIN / "identity", command, *arguments, *ini])

    def register(self, home: str) -> dict[str, str]:
        """Register a web application as in the tutorials; returns its environment variables."""
        script = ROOT / "docs" / "how-to" / "administrators" / "examples" / "register_application.py"
        output = output_of([sys.executable, script, DEVELOPMENT, "Example", home, *self.variables])
        registered = dict(re.findall(r"^(client id|client secret) +(\S+)$", output, re.MULTILINE))
        return {
            "ISSUER": self.issuer,
            "CLIENT_ID": registered["client id"],
            "CLIENT_SECRET": registered["client secret"],
        }

    def sign_in(self, browser: requests.Session, address: str) -> requests.Response:
        """Follow a URL that leads to the service and sign in; returns the final page."""
        response = submitted(browser, browser.get(address, timeout=30), login_name=self.login_name)
        return submitted(browser, response, password=NEW_PASSWORD)


def output_of(command: list[object]) -> str:
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@contextmanager
def started(command: list[object], address: str, log: Path, folder: Path = ROOT, **variables: str) -> Iterator[None]:
    """Run a server in a separate process during the block, which starts once the server responds."""
    with (
        log.open("w") as output,
        subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, cwd=folder, env=os.environ | variables
        ) as process,
    ):
        try:
            answered = False
            while not answered:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
                with suppress(requests.ConnectionError, requests.Timeout):
                    answered = requests.get(address, timeout=30).status_code < 500
            yield
        finally:
            process.terminate()


def shown_command(page: str, command: str) -> list[str]:
    """The arguments of a command on a page, without the program's path and the port."""
    text = (TUTORIALS / page).read_text()
    assert f".venv/bin/{command} --port 8000\n" in text or f".venv/bin/{command} 8000\n" in text, command
    return command.split()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """As in the first tutorial: start the service, sign in as the first owner, choose a password."""
    folder = tmp_path_factory.mktemp("tutorials")
    port, data, log = free_port(), folder / "data", folder / "log"
    issuer = f"http://localhost:{port}"
    command = [BIN / "identity", "serve", "-c", DEVELOPMENT, f"http_port={port}", f"data={data}"]
    with started(command, f"{issuer}/readyz", log), requests.Session() as browser:
        (login_name,) = re.findall(r"first owner +(\S+)", log.read_text())
        (one_time_password,) = re.findall(r"password +(\S+)", log.read_text())
        response = submitted(browser, browser.get(f"{issuer}/", timeout=30), login_name=login_name)
        response = submitted(browser, response, password=one_time_password)
        response = submitted(browser, response, new_password=NEW_PASSWORD)
        assert response.url.startswith(f"{issuer}/console"), response.text
        yield RunningService(issuer, data, login_name)


def check_sign_in_and_out(service: RunningService, home: str) -> None:
    """Sign in and out with the links of the application, as in a browser."""
    with requests.Session() as browser:
        assert "You are not signed in." in browser.get(home, timeout=30).text
        response = service.sign_in(browser, f"{home}/sign-in")
        assert "Hello First Owner." in response.text, response.text
        assert response.url == f"{home}/"
        response = browser.get(f"{home}/sign-out", timeout=30)
        assert "You are not signed in." in response.text
        assert "login_name" in browser.get(f"{home}/sign-in", timeout=30).text, "the session at the service ended too"
        refused = browser.get(f"{home}/callback?code=stolen&state=foreign", timeout=30)
        assert refused.status_code == 400
    with requests.Session() as browser:
        browser.headers["Accept"] = "text/html"
        assert "Notes of First Owner." not in browser.get(f"{home}/notes", timeout=30).text
        response = service.sign_in(browser, f"{home}/notes")
        assert response.url == f"{home}/notes"
        assert "Notes of First Owner." in response.text


@pytest.mark.thorough
def test_fastapi(service: RunningService, tmp_path: Path) -> None:
    port = free_port()
    home = f"http://localhost:{port}"
    command = [BIN / "python", *shown_command("fastapi.rst", "python -m uvicorn app:app")[1:], "--port", port]
    with started(command, home, tmp_path / "log", EXAMPLES / "fastapi", **service.register(home)):
        check_sign_in_and_out(service, home)


@pytest.mark.thorough
def test_flask(service: RunningService, tmp_path: Path) -> None:
    port = free_port()
    home = f"http://localhost:{port}"
    command = [BIN / "python", *shown_command("flask.rst", "python -m flask run")[1:], "--port", port]
    with started(command, home, tmp_path / "log", EXAMPLES / "flask", **service.register(home)):
        check_sign_in_and_out(service, home)


@pytest.mark.thorough
def test_django(service: RunningService, tmp_path: Path) -> None:
    port = free_port()
    home = f"http://localhost:{port}"
    variables = service.register(home) | {"DATABASE": str(tmp_path / "site.sqlite")}
    folder = EXAMPLES / "django"
    subprocess.run([sys.executable, "manage.py", "migrate"], cwd=folder, env=os.environ | variables, check=True)
    command = [BIN / "python", *shown_command("django.rst", "python manage.py runserver")[1:], port, "--noreload"]
    with started(command, home, tmp_path / "log", folder, **variables):
        check_sign_in_and_out(service, home)


@pytest.mark.thorough
def test_single_page_application(service: RunningService, tmp_path: Path) -> None:
    port = free_port()
    home = f"http://localhost:{port}"
    page, script = "single-page-application.rst", {"X-Requested-With": "single-page"}
    command = [BIN / "python", *shown_command(page, "python -m uvicorn backend:app")[1:], "--port", port]
    with (
        started(command, home, tmp_path / "log", EXAMPLES / "single-page", **service.register(home)),
        requests.Session() as browser,
    ):
        assert "app.js" in browser.get(home, timeout=30).text
        assert browser.get(f"{home}/api/me", headers=script, timeout=30).status_code == 401
        assert service.sign_in(browser, f"{home}/sign-in").url == f"{home}/"
        assert browser.get(f"{home}/api/me", headers=script, timeout=30).json() == {"name": "First Owner"}
        assert browser.get(f"{home}/api/me", timeout=30).status_code == 403, "a request of another site"
        signed_out = browser.post(f"{home}/api/sign-out", headers=script, timeout=30)
        assert browser.get(f"{home}/api/me", headers=script, timeout=30).status_code == 401
        assert browser.get(signed_out.json()["location"], timeout=30).url.startswith(f"{home}/")
        assert "login_name" in browser.get(f"{home}/sign-in", timeout=30).text


@pytest.mark.thorough
def test_service_user(service: RunningService, tmp_path: Path) -> None:
    folder, port, page = EXAMPLES / "service-user", free_port(), "service-user.rst"
    command = ["-f", folder / "state.yaml", "--keys-out", tmp_path, "--secrets-out", tmp_path / "secrets.json"]
    service.identity("apply", *command)
    ((client_id, members),) = json.loads((tmp_path / "secrets.json").read_text()).items()
    exported = json.loads(service.identity("export", "--organization", "acme.localhost"))
    (project,) = exported["organization"]["projects"]
    variables = {
        "ISSUER": service.issuer,
        "CLIENT_ID": client_id,
        "CLIENT_SECRET": members["client_secret"],
        "PROJECT_ID": project["id"],
    }
    (key_file,) = tmp_path.glob("nightly-report@*.json")
    command = [BIN / "python", *shown_command(page, "python -m uvicorn api:app")[1:], "--port", port]
    api = f"http://localhost:{port}"
    with started(command, f"{api}/openapi.json", tmp_path / "log", folder, **variables):
        report = [sys.executable, folder / "report.py", service.issuer, key_file, project["id"], api]
        stock = json.loads(output_of(report))
        assert stock == {"apples": 12, "asked_by": "nightly-report@acme.localhost"}
        assert requests.get(f"{api}/stock", timeout=30).status_code in (401, 403)
        foreign = service.identity(
            "token", "--issuer", service.issuer, "--key-file", key_file, "--scope", "openid profile"
        )
        headers = {"Authorization": f"Bearer {json.loads(foreign)['access_token']}"}
        assert requests.get(f"{api}/stock", headers=headers, timeout=30).status_code == 401


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["production.rst", "three-nodes.rst"])
def test_commands_of_a_production_node(page: str, tmp_path: Path) -> None:
    """The commands on the page, in another folder and on SQLite."""
    commands = re.findall(r"^ +\$ identity (.+)$", (TUTORIALS / page).read_text(), re.MULTILINE)
    assert [command.split()[0] for command in commands][:4] == ["init-config", "master-key", "migrate", "bootstrap"]
    database = f"database=sqlite:///{tmp_path}/identity.sqlite"
    for command in [*commands, "check -c /etc/identity/production.ini"]:
        arguments = command.replace("/etc/identity", str(tmp_path)).split()
        if arguments[0] == "init-config":
            arguments = [*(item for item in arguments if not item.startswith("database=")), database]
            arguments += [f"data={tmp_path}", f"secrets={tmp_path}"]
        output = output_of([BIN / "identity", *arguments])
        if arguments[0] == "init-config":
            # A SQLite file has no password.
            ini = tmp_path / "production.ini"
            ini.write_text(ini.read_text().replace("%(database_password_file)s", ""))
        if arguments[0] == "bootstrap":
            assert re.search(r"password +\S+", output)


@pytest.mark.thorough
def test_proxies_of_the_production_tutorials(tmp_path: Path) -> None:
    caddy, haproxy = judge("caddy", "caddy"), judge("haproxy", "haproxy")
    output_of([caddy, "adapt", "--adapter", "caddyfile", "--config", EXAMPLES / "production" / "Caddyfile"])
    certificate = self_signed_certificate(tmp_path, "id.example.com")
    config = tmp_path / "haproxy.cfg"
    text = (EXAMPLES / "three-nodes" / "haproxy.cfg").read_text()
    config.write_text(text.replace("/etc/haproxy/identity.pem", str(certificate)))
    output_of([haproxy, "-c", "-f", config])

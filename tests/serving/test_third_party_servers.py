"""The service under gunicorn and uvicorn, started by their own commands instead of `identity serve`."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

import psutil  # type: ignore[import-untyped]
import pytest

from tests.house.service_processes import DEVELOPMENT, free_port
from tests.process_tree import list_process_tree
from tests.serving.conftest import LONG, PROGRAM, ServeProcess, wait_for

WORKER_OPTION = ("-k", "identity.serving.asgi_worker.AsgiWorker")
#: The commands of docs/how-to/operators/install-and-run, with an address.
COMMANDS = {
    "gunicorn": lambda port: (
        "gunicorn",
        *WORKER_OPTION,
        "-b",
        f"127.0.0.1:{port}",
        "identity.asgi:create_application_from_environment()",
    ),
    "gunicorn-paste": lambda port: ("gunicorn", "--paste", "service.ini", *WORKER_OPTION, "-b", f"127.0.0.1:{port}"),
    "gunicorn-paste-wsgi": lambda port: ("gunicorn", "--paste", "service.ini", "-b", f"127.0.0.1:{port}"),
    "uvicorn": lambda port: (
        *("uvicorn", "--factory", "identity.asgi:create_application_from_environment", "--port", str(port)),
        *("--no-proxy-headers", "--no-server-header", "--no-access-log"),
    ),
}

StartServer = Callable[..., ServeProcess]


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Start one of them with development.ini."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(server: str, *more: str) -> ServeProcess:
        port = free_port()
        text = DEVELOPMENT.read_text().replace("http_port = 8080", f"http_port = {port}")
        (tmp_path / "service.ini").write_text(text)
        program, *arguments = COMMANDS[server](port)
        with (tmp_path / "log").open("ab") as output:
            started.append(
                subprocess.Popen(
                    [str(Path(sys.executable).with_name(program)), *arguments, *more],
                    cwd=tmp_path,
                    env={**os.environ, "IDENTITY_INI": "service.ini", "HOME": str(tmp_path)},
                    stdout=output,
                    stderr=output,
                )
            )
        return ServeProcess(tmp_path, port, started[-1])

    yield begin
    for process in started:
        for item in list_process_tree(process.pid):
            with suppress(psutil.NoSuchProcess):
                item.kill()
        process.wait(LONG)


@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=2)
@pytest.mark.parametrize("server", COMMANDS)
def test_third_party_server_issues_tokens(start_server: StartServer, server: str) -> None:
    service = start_server(server)
    issuer = f"http://localhost:{service.port}"
    address = Request(f"http://127.0.0.1:{service.port}/healthz", headers={"Host": f"localhost:{service.port}"})

    def answers() -> str:
        assert service.process.poll() is None, service.log
        with urlopen(address, timeout=LONG) as answer:  # noqa: S310
            return str(answer.headers["Server"])

    name = wait_for(answers, bool)
    assert name == ("gunicorn" if server == "gunicorn-paste-wsgi" else "identity")
    key = service.folder / "var" / "example-service-user.json"
    command = [PROGRAM, "token", "--issuer", issuer, "--key-file", str(key), "--scope", "openid"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG)
    assert ran.returncode == 0, ran.stderr + service.log
    assert '"access_token"' in ran.stdout
    service.process.terminate()
    # After its shutdown uvicorn raises the signal again.
    assert service.process.wait(LONG) == (-signal.SIGTERM if server == "uvicorn" else 0)
    assert "Traceback" not in service.log
    assert service.log.count("POST /oauth/v2/token 200") == 1


def test_worker_refuses_to_start_if_gunicorn_believes_a_proxy(start_server: StartServer) -> None:
    service = start_server("gunicorn-paste", "--proxy-protocol", "v1")
    assert service.process.wait(LONG) == 3
    assert "identity cannot start. proxy_protocol cannot be set: only identity.trusted_proxy" in service.log


@pytest.mark.thorough
def test_worker_that_cannot_start_ends_gunicorn(start_server: StartServer) -> None:
    service = start_server("gunicorn-paste", "--paste-global", "data=/proc/nowhere")
    assert service.process.wait(LONG) == 3
    assert "identity cannot start." in service.log

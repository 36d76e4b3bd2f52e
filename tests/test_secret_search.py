"""The search of logs finds secrets in every output: recorded ones, and texts that look like a secret."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.secret_search.http_capture import HttpCapture
from tests.secret_search.search import SecretSearch

SECRET = "Zq8-a-secret-token"
TOKEN = "Z4k3fGVaeRbK894yaj96UxqkOxfDoFmx5oH6QVaRfd7"

#: Each of these tests leaks a secret.
PLANTED = """
import logging, subprocess, sys
from identity.testing.browser import Browser, set_password

log = logging.getLogger("planted")

def test_typed_secrets_are_recorded(world):
    name = set_password(world, world.make_human_user(), "pa$$ wörd")
    browser = Browser(world)
    browser.open(f"{world.identity.settings.login_url}/login")
    browser.submit({"login_name": name})
    browser.submit({"password": "a wröng one"})
    log.debug("login_name=ada&password=a+wr%C3%B6ng+one")

def test_issued_secrets_are_recorded(world):
    log.debug("issued %s", world.make_service_user_program().access_token())

def test_master_key(world):
    with open(world.settings["identity.master_keys"].partition(":")[2]) as file:
        log.debug("opened with %r", file.read())

def test_file_of_a_process(world, tmp_path):
    with (tmp_path / "log").open("wb") as output:
        told = f"print({world.make_service_user_program().access_token()!r})"
        subprocess.run([sys.executable, "-c", told], stdout=output, check=True)

def test_unread_process_errors_are_searched(world):
    told = f"import sys; print({world.make_service_user_program().access_token()!r}, file=sys.stderr)"
    subprocess.run([sys.executable, "-c", told], check=True)

def test_errors_of_a_process(world):
    told = f"import sys; print({world.make_service_user_program().access_token()!r}, file=sys.stderr)"
    subprocess.run([sys.executable, "-c", told], check=True, capture_output=True)

def test_errors_of_a_command(world, capsys):
    print(world.make_service_user_program().access_token(), file=sys.stderr)
    capsys.readouterr()

def test_nothing(world):
    log.debug("issued to %s", world.make_service_user_program().id)
    print(world.make_service_user_program().access_token())
"""


def line(message: str, *arguments: object, failed: BaseException | None = None) -> logging.LogRecord:
    exception_info = None if failed is None else (type(failed), failed, failed.__traceback__)
    return logging.LogRecord("some.logger", logging.DEBUG, __file__, 1, message, arguments, exception_info)


@pytest.mark.parametrize(
    "record",
    [
        line("got %s", SECRET),
        line("got %r", {"code": SECRET.encode()}),
        line("failed", failed=ValueError(SECRET)),
        line("code %s", "123456"),
        line("password=%s", "ab3"),
        line("typed %r", "ab3"),
        line("typed %r", "registration"),
        line("key %r", b"\x00\x01\x02\x03 key"),
        line("key %s", b"\x00\x01\x02\x03 key".hex()),
        line("-----BEGIN PRIVATE KEY-----"),
        line("got %s", f"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.{TOKEN}"),
        line("token=%s", TOKEN),
        line("hash %s", "$argon2id$v=19$m=47104"),
        line("to %s", "postgresql://identity:hidden@localhost/identity"),
        line("one-time password %s", "k7wqa-h3mzp-9vtec-x4ns8"),
    ],
)
def test_line_with_a_secret_is_found_once(record: logging.LogRecord) -> None:
    search = SecretSearch()
    for item in (SECRET, "123456", "ab3", "registration", b"\x00\x01\x02\x03 key"):
        search.note(item)
    search.hear(line("nothing of it"))
    search.hear(record)
    assert len(search.found()) == 1
    assert search.found() == []


def test_words_parts_of_numbers_and_digests_are_no_secrets() -> None:
    search = SecretSearch()
    for item in (
        "short",
        "registration",
        "password",
        "123456",
        None,
        "",
        "x",
        "0199f8a2-3c5d-7e1f-8a2b-3c4d5e6f7a8b",
        "https://a.example/",
    ):
        search.note(item)
    for text in (
        "a short password, shorter than 'x'",
        "at 1234567 ms",
        "in a123456b",
        "{'registration': 'off'} of registration",
        "0199f8a2-3c5d-7e1f-8a2b-3c4d5e6f7a8b at https://a.example/",
        "postgresql://identity:***@localhost/identity",
        f"sha256={TOKEN}=",
        f'{{"kty": "EC", "x": "{TOKEN}"}}',
        json.dumps(json.dumps({"y": TOKEN})),
    ):
        search.hear(line(text))
    assert search.found() == []


def test_random_secrets_are_found_in_later_tests() -> None:
    search = SecretSearch()
    search.note("Zq8-a-secret-token-that-is-long")
    search.note("a password of words, and more")
    assert search.found() == []
    search.hear(line("a thread says Zq8-a-secret-token-that-is-long of a password of words, and more"))
    assert len(search.found()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "grant_type=refresh_token&refresh_token=one+value",
        '{"token_type": "Bearer", "access_token": "one value", "expires_in": 3600}',
        '{"client": {"secret": "one\\u0020value"}}',
        '--limit\r\nContent-Disposition: form-data; name="new_password"\r\n\r\none value\r\n--limit--',
    ],
)
def test_bodies_are_read_for_secrets(text: str) -> None:
    search = SecretSearch()
    HttpCapture(search).body(text.encode())
    assert search.secrets == {"one value", "one%20value", "one+value"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer the-one-value"),
        ("authorization", "basic the-one-value"),
        ("Cookie", "a=b; session=the-one-value"),
        ("Set-Cookie", "__Host-session=the-one-value; Secure; Path=/some/where"),
        ("Location", "https://app.example/callback?state=some-state&code=the-one-value&iss=https://id.example"),
        ("Location", "https://app.example/callback#access_token=the-one-value&token_type=Bearer-or-so"),
    ],
)
def test_headers_are_read_for_secrets(name: str, value: str) -> None:
    search = SecretSearch()
    HttpCapture(search).header(name, value)
    assert search.secrets == {"the-one-value"}


@pytest.mark.parametrize(
    "body", [b'{"token_endpoint": "https-or-so", "access_token_type": "reference"}', b"<p>code=some-word</p>", b""]
)
def test_harmless_texts_are_not_secrets(body: bytes) -> None:
    search = SecretSearch()
    HttpCapture(search).body(body)
    assert search.secrets == set()


@pytest.mark.thorough
def test_planted_secrets_are_found_in_every_output(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    planted = tmp_path / "test_planted.py"
    planted.write_text(PLANTED)
    command = [
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-c",
        str(root / "pyproject.toml"),
        "-rA",
        "--tb=no",
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *command, "--rootdir", str(tmp_path), "--search-logs", str(planted)],
        cwd=root,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line.partition(" - ")[0].split() for line in ran.stdout.splitlines() if line.startswith("ERROR ")]
    planted_in = {
        line.partition("(")[0].removeprefix("def ") for line in PLANTED.splitlines() if line.startswith("def ")
    }
    assert {name.rpartition("::")[2].partition("[")[0] for _, name in errors} == planted_in - {"test_nothing"}, (
        ran.stdout
    )
    assert "8 passed, 7 errors" in ran.stdout

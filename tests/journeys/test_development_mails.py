"""Mails of a service without a mail server: readable at /dev/mails, only in development and only on this machine."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from webtest import TestApp

from identity import development_mailbox
from identity.background_worker import BackgroundWorker
from identity.crypto.sealing import create_master_key_file
from identity.development_mailbox import DevelopmentMailbox
from identity.ini_file import load_wsgi_app
from identity.services.commands.users import CreateHumanUser
from identity.services.mails import Mail
from identity.settings import Settings
from tests.asgi_server import serving_asgi
from tests.http_server import loopback_socket

pytestmark = pytest.mark.storages("sqlite")

ROOT = Path(__file__).resolve().parents[2]
PORT = 18080
HOST = f"localhost:{PORT}"
LOCAL_ENVIRON = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": HOST}
PATHS = (
    development_mailbox.MAILBOX_PATH,
    f"{development_mailbox.MAILBOX_PATH}/{'0' * 20}-00000000-0000-7000-8000-000000000000",
)

Start = Callable[..., Any]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def start(data: Path, tmp_path: Path) -> Iterator[Start]:
    """Create the application of development.ini with these changes."""
    started = []

    def start(changed: Mapping[str, str] | None = None) -> Any:
        text = (ROOT / "development.ini").read_text()
        for name, value in (changed or {}).items():
            section, _, key = name.rpartition("/")
            head, found, rest = text.partition(f"[{section or 'app:main'}]\n")
            assert found, name
            section_text, following, remaining = rest.partition("\n[")
            section_text = re.sub(rf"(?m)^{re.escape(key)} *=.*$", "", section_text)
            text = f"{head}{found}{key} = {value}\n{section_text}{following}{remaining}"
        ini = tmp_path / "service.ini"
        ini.write_text(text)
        app = load_wsgi_app(str(ini), {"http_port": str(PORT), "data": str(data)})
        app.registry.application.background_worker = BackgroundWorker([])
        started.append(app.registry.application)
        return app

    yield start
    for identity in started:
        identity.close()


def request_page(app: Any, path: str, **environ: str) -> tuple[int, str, dict[str, str]]:
    """All that a client can compare in the response, without ids and the address."""
    answer = TestApp(app).get(path, extra_environ={**LOCAL_ENVIRON, **environ}, expect_errors=True)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{2}:\d{2}:\d{2}Z?", "…", answer.text)
    hidden = ("X-Request-ID", "Date", "Content-Length")
    return answer.status_int, text, {name: item for name, item in answer.headers.items() if name not in hidden}


def is_absent(app: Any, **environ: str) -> bool:
    """True if the pages respond like a URL that never existed."""
    nothing = request_page(app, "/dev/nothing", **environ)
    assert nothing[0] in (404, 421)
    return all(request_page(app, path, **environ) == nothing for path in PATHS)


@pytest.mark.thorough
def test_reset_with_mail_from_page(
    start: Start, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    app = start()
    assert f"http://{HOST}/dev/mails" in capsys.readouterr().out
    identity = app.registry.application
    browser = TestApp(app, extra_environ=LOCAL_ENVIRON)
    with identity.transaction() as services:
        instance = services.find_instance()
        command = CreateHumanUser.build(
            user_name="ada", given_name="Ada", family_name="Lovelace", email="ada@acme.example"
        )
        person = services.users.create(instance.organization_id, command)
        subject = services.storage.users.find_subject(person.id)
    assert "No mails yet" in browser.get("/dev/mails").text

    form = browser.get("/password/reset").forms["page-form"]
    form["login_name"] = subject.login_name
    assert "/password/reset/sent" in form.submit().headers["Location"]
    with caplog.at_level(logging.INFO):
        identity.senders["mail"].run()
    messages = [record.getMessage() for record in caplog.records if record.name == "identity.development_mailbox"]
    assert messages == [f"no mail server is set: read the mail that was just made at http://{HOST}/dev/mails"]

    page = browser.get("/dev/mails")
    assert "ada@acme.example" in page.text
    # The mail's link can be followed and works.
    [link] = {item["href"] for item in page.html.select(".mailbox__text a") if "/password/reset/" in item["href"]}
    assert "Choose a new password" in browser.get(link).text
    # HTML is shown in a frame that runs no scripts and loads nothing.
    frame = page.html.find("iframe")
    mail = browser.get(frame["src"])
    assert "If it was not you" in mail.text
    policy = mail.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    for opened in ("allow-scripts", "allow-same-origin", "script-src"):
        assert opened not in policy
        assert opened not in frame["sandbox"]


def test_pages_offer_mail_features_in_development(start: Start) -> None:
    app = start()
    with app.registry.application.read_session() as services:
        assert services.mails.is_enabled
    text = TestApp(app, extra_environ=LOCAL_ENVIRON).get("/password/reset").text
    assert "Ask somebody who manages" not in text
    assert 'name="login_name"' in text


#: Each of these settings removes the pages, and the promise that mails are readable there.
NOT_LOCAL = {
    "listens everywhere": {"server:main/listen": f"0.0.0.0:{PORT}"},
    "listens elsewhere too": {"server:main/listen": f"127.0.0.1:{PORT} 192.0.2.1:{PORT}"},
    "listens everywhere by IPv6": {"server:main/listen": f"[::]:{PORT}"},
    "listens in the file system": {"server:main/unix_socket": "/run/identity.sock", "server:main/listen": ""},
    "service believes a proxy": {"identity.trusted_proxy": "127.0.0.1"},
    "issuer elsewhere": {"identity.issuer_url": "https://id.example.com"},
    "sign-in elsewhere": {"identity.login_url": "https://login.example.com"},
    "APIs elsewhere": {"identity.base_url": "https://api.example.com"},
    "a mail server": {"identity.smtp.host": "mail.example.com", "identity.smtp.sender": "no-reply@example.com"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("changed", NOT_LOCAL.values(), ids=NOT_LOCAL)
def test_absent_unless_local(start: Start, changed: Mapping[str, str]) -> None:
    identity = start(changed).registry.application
    assert is_absent(start(changed))
    assert not isinstance(identity.mailer, DevelopmentMailbox)
    with identity.read_session() as services:
        assert services.mails.is_enabled is ("identity.smtp.host" in changed)


@pytest.mark.thorough
def test_absent_in_production(start: Start, data: Path, tmp_path: Path) -> None:
    start()
    create_master_key_file(tmp_path / "production.key")
    identity_of = start(
        {
            "identity.development": "false",
            "identity.issuer_url": "https://localhost",
            "identity.master_keys": f"development:{data / 'master.key'}",
        }
    )
    assert is_absent(identity_of, HTTP_HOST="localhost")
    with identity_of.registry.application.read_session() as services:
        assert not services.mails.is_enabled


@pytest.mark.thorough
@pytest.mark.parametrize(
    "environ",
    [
        {"HTTP_X_FORWARDED_FOR": "192.0.2.1"},
        {"HTTP_X_FORWARDED_HOST": HOST},
        {"HTTP_X_FORWARDED": "for=192.0.2.1"},
        {"HTTP_X_FORWARDED_PROTO": "https"},
        {"HTTP_FORWARDED": "for=192.0.2.1"},
        {"HTTP_VIA": "1.1 tunnel"},
        {"HTTP_X_REAL_IP": "127.0.0.1"},
        {"HTTP_CF_CONNECTING_IP": "192.0.2.1"},
        {"REMOTE_ADDR": "192.0.2.1"},
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "localhost"},
        {"HTTP_HOST": "id.example.com"},
        {"HTTP_HOST": f"localhost.example.com:{PORT}"},
        {"HTTP_HOST": f"127.0.0.1.example.com:{PORT}"},
    ],
)
def test_remote_requests_get_no_mails(start: Start, environ: dict[str, str]) -> None:
    app = start()
    assert request_page(app, development_mailbox.MAILBOX_PATH)[0] == 200
    assert is_absent(app, **environ)


def test_mailbox_is_absent_behind_a_proxy(start: Start) -> None:
    import http.client

    app = start()
    bound = loopback_socket()
    with serving_asgi(app, bound):
        statuses = []
        for headers in ({}, {"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}):
            connection = http.client.HTTPConnection(*bound.getsockname())
            connection.request("GET", development_mailbox.MAILBOX_PATH, headers={"Host": HOST, **headers})
            statuses.append(connection.getresponse().status)
            connection.close()
    assert statuses == [200, 404, 404]


def test_mailbox_is_bounded_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(development_mailbox, "MAX_STORED_MAILS", 3)
    settings = Settings(
        issuer_url="http://localhost:8080",
        storage="memory",
        plugins=("memory",),
        development=True,
        data=tmp_path,
    )
    mailbox, other = DevelopmentMailbox(settings), DevelopmentMailbox(settings)
    for number in range(5):
        (mailbox, other)[number % 2].send(Mail(to="ada@acme.example", subject=str(number), text="…"))
    assert [mail.mail.subject for mail in mailbox.mails()] == ["4", "3", "2"]
    files = list((tmp_path / "mails").iterdir())
    assert len(files) == 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    # Other files in the folder are ignored, and no file outside of it is read.
    (tmp_path / "mails" / "notes.json").write_text("{}")
    (tmp_path / "secret.json").write_text('{"to": "", "subject": "", "text": ""}')
    assert len(list(mailbox.mails())) == 3
    assert mailbox.find("../secret") is None

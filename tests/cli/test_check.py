"""identity check: the message for each error in the ini file names the setting."""

import os
import re
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import psycopg
import pytest
from psycopg import sql

from identity.ini_file import APP_SECTION, read_section
from identity.plugin_host import installed_plugins, settings_class
from identity.settings import PLUGIN_PREFIX, PREFIX, Settings, SmtpSettings
from identity.testing.postgresql import PostgresqlServer, running_server
from tests.cli.conftest import INI, Run
from tests.mail_server import USER as POST_USER
from tests.mail_server import ReceivingMailServer

NOWHERE = "/dev/null/nowhere"

#: Settings whose values cannot be validated locally.
ANY = {
    "identity.assertion_audiences",
    "identity.default_domain",
    "identity.smtp.host",
    "identity.smtp.user",
    "identity.plugin.tracing.service_name",
    # Only the directory server can judge them.
    *(
        f"identity.plugin.ldap.{name}"
        for name in ("base", "bind_dn", "id_attribute", "groups_attribute", "organization")
    ),
    # Created when needed.
    "identity.plugin.metrics.directory",
}
#: Invalid values by type.
WRONG: Mapping[type, str] = {int: "x", bool: "perhaps", timedelta: "soon", Path: NOWHERE, str: "no such thing \\"}
#: Other settings that a setting needs to take effect.
BESIDES: Mapping[str, Mapping[str, str]] = {
    "identity.smtp.sender": {"identity.smtp.host": "127.0.0.1"},
    "identity.smtp.password_file": {
        "identity.smtp.host": "127.0.0.1",
        "identity.smtp.sender": "a@example.com",
        "identity.smtp.user": "identity",
    },
    "identity.data": {"identity.master_keys": ""},
}


def every_setting() -> Iterator[tuple[str, str]]:
    """Each setting of the core and of the plugins in development.ini, with an invalid value."""
    listed = read_section(INI, APP_SECTION, {"data": NOWHERE})["identity.plugins"].split()
    available = installed_plugins()
    sections: list[tuple[str, type]] = [(PREFIX, Settings), (f"{PREFIX}smtp.", SmtpSettings)]
    sections += [(f"{PLUGIN_PREFIX}{name}.", settings_class(available[name].load())) for name in listed]
    for prefix, kind in sections:
        hints = get_type_hints(kind)
        for field in fields(kind):
            if "section" not in field.metadata and prefix + field.name not in ANY:
                yield prefix + field.name, wrong(hints[field.name])


def wrong(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "none of them"
    return WRONG[next(item for item in (kind, *get_args(kind)) if item in WRONG)]


@pytest.fixture
def with_settings(data: Path, tmp_path: Path) -> Any:
    """Writes a copy of development.ini with changed settings; returns its name."""

    def make(settings: Mapping[str, str]) -> Path:
        lines = Path(INI).read_text().splitlines()
        at = lines.index(f"[{APP_SECTION}]")
        written = []
        inside = False
        for line in lines:
            inside = line.startswith(tuple(f"{name} =" for name in settings)) or (inside and line[:1] in " \t")
            if not inside:
                written.append(line)
        escaped = {name: value.replace("%", "%%") for name, value in settings.items()}
        written[at + 1 : at + 1] = [f"{name} = {value}" for name, value in escaped.items()]
        file = tmp_path / "other.ini"
        file.write_text("\n".join(written))
        return file

    return make


@pytest.mark.sampled(29)
@pytest.mark.parametrize(("name", "value"), list(every_setting()))
def test_invalid_value_is_reported_with_its_setting(
    run: Run, data: Path, with_settings: Any, name: str, value: str
) -> None:
    ini = with_settings({**BESIDES.get(name, {}), name: value})
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    failures = [line for line in (ran.out + ran.err).splitlines() if name in line]
    assert failures, ran.out + ran.err
    assert "Traceback" not in ran.err


def test_all_invalid_values_are_reported_at_once_and_nothing_is_opened(
    run: Run, tmp_path: Path, with_settings: Any
) -> None:
    """Errors of the core, mail and plugins, unknown settings, and errors of the web server."""
    wrong = {
        "identity.purge_interval": "soon",
        "identity.login_url": "ftp://id.example.com",
        "identity.smtp.port": "many",
        "identity.nonsense": "1",
        "identity.plugin.sql.database_connections": "x",
        "identity.plugin.jwt_bearer.max_assertion_age": "never",
    }
    ini = with_settings(wrong)
    text = ini.read_text().replace("\nthreads = ", "\nworker_timeout = 1\nno_such_word = 1\nthreads = some")
    ini.write_text(text.replace("\nlisten = ", "\nlisten = 127.0.0.1:x "))
    ran = run("check", "-c", ini, f"data={tmp_path}/nothing")
    assert (ran.status, ran.err) == (1, "")
    failures = [
        line.removeprefix("FAILED  ").partition(":")[0] for line in ran.out.splitlines() if "[server" not in line
    ]
    assert sorted(failures) == sorted(wrong)
    of_server = [line.partition("[server:main] ")[2].split(":")[0] for line in ran.out.splitlines()]
    assert sorted(filter(None, of_server)) == ["listen", "no_such_word", "threads", "worker_timeout"]
    assert "[server:main] worker_timeout: is now timeout" in ran.out
    assert not (tmp_path / "nothing").exists()


def test_conflicting_settings_are_reported(run: Run, data: Path, with_settings: Any) -> None:
    ini = with_settings({})
    ini.write_text(ini.read_text().replace("\nlisten = ", "\nhost = 127.0.0.1\nlisten = "))
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert ran.out.startswith("FAILED  [server:main]: ")


def test_settings_of_another_web_server_are_ignored(run: Run, data: Path, with_settings: Any) -> None:
    ini = with_settings({})
    ini.write_text(ini.read_text().replace("use = egg:identity-iam#waitress", "use = egg:other\nx = 1"))
    ran = run("check", "-c", ini, f"data={data}")
    assert (ran.status, ran.err) == (0, "")
    assert "FAILED" not in ran.out


def test_missing_plugin_hides_no_other_failure(run: Run, data: Path, with_settings: Any) -> None:
    ini = with_settings({"identity.plugins": "sql nowhere", "identity.purge_interval": "soon"})
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert "identity.purge_interval: must be a span" in ran.out
    assert 'identity.plugins lists "nowhere", which is not installed' in ran.out


URL, PASSWORD_FILE = "identity.plugin.sql.url", "identity.plugin.sql.password_file"


@pytest.fixture
def failures(run: Run, data: Path, with_settings: Any) -> Any:
    """The failures with these settings, by check."""

    def failures(settings: Mapping[str, str]) -> dict[str, str]:
        ran = run("check", "-c", with_settings(settings), f"data={data}")
        assert (ran.status, ran.err) == (1, "")
        failed = (line.removeprefix("FAILED  ") for line in ran.out.splitlines() if line.startswith("FAILED"))
        return dict(re.split(r"(?<!^outbox): ", line, maxsplit=1) for line in failed)

    return failures


@pytest.fixture
def port_of_nobody() -> Iterator[int]:
    """A loopback port without a listener."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def port_without_tls() -> Iterator[int]:
    """A port where a PostgreSQL server answers that it has no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = threading.Thread(target=_say_no, args=[listening], daemon=True)
        answering.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        answering.join()


def _say_no(listening: socket.socket) -> None:
    while True:
        try:
            connection = listening.accept()[0]
        except OSError:
            return
        with connection:
            connection.recv(8)
            connection.sendall(b"N")


@pytest.fixture
def guarded_server() -> Iterator[PostgresqlServer]:
    """A server that asks the role "asker" for its password and always rejects the role "barred"."""
    folder = Path(tempfile.mkdtemp(prefix="identity-postgresql-"))
    with running_server(folder) as server:
        server.execute(sql.SQL("CREATE ROLE asker LOGIN PASSWORD 'right'"))
        server.execute(sql.SQL("CREATE ROLE barred LOGIN"))
        rules = folder / "pg_hba.conf"
        rules.write_text("local all asker scram-sha-256\nlocal all barred reject\n" + rules.read_text())
        server.execute(sql.SQL("SELECT pg_reload_conf()"))
        _wait_until_refused(server.url().replace("postgres@", "barred@"))
        yield server


def _wait_until_refused(url: str) -> None:
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return


def assert_reported(failures: dict[str, str], text: str, *settings: str) -> None:
    """The cause is reported once, with the settings to check."""
    assert text in failures["storage"], failures
    assert all(setting in failures["storage"] for setting in settings), failures
    other_failures = {name: sentence for name, sentence in failures.items() if name != "storage"}
    assert other_failures
    assert set(other_failures.values()) == {"Not checked: fix storage first."}
    assert not any(
        secret in failures["storage"] for secret in ("127.0.0.1", "asker", "barred", "no-such-host", "nowhere")
    )


@pytest.mark.thorough
def test_postgresql_failures_are_reported(
    failures: Any, tmp_path: Path, guarded_server: PostgresqlServer, port_of_nobody: int, port_without_tls: int
) -> None:
    url = guarded_server.url()
    assert_reported(failures({URL: f"postgresql://asker@127.0.0.1:{port_of_nobody}/x"}), "nobody listens", URL)
    assert_reported(failures({URL: f"postgresql://asker@/x?host={tmp_path}"}), "nobody listens", URL)
    assert_reported(failures({URL: "postgresql://asker@no-such-host.invalid/x"}), "host is not known", URL)
    assert_reported(failures({URL: url.replace("postgres@", "asker@")}), "wants a password", PASSWORD_FILE)
    assert_reported(failures({URL: url.replace("postgres@", "barred@")}), "does not let the user", URL)
    assert_reported(failures({URL: url.replace("postgres@", "nowhere@")}), "does not let the user", URL)
    assert_reported(failures({URL: url.replace("/postgres?", "/nowhere?")}), "no database of that name", URL)
    assert_reported(failures({URL: f"postgresql://asker@127.0.0.1:{port_without_tls}/x?sslmode=require"}), "TLS", URL)
    assert_reported(failures({URL: f"{url}&sslmode=perhaps"}), "No connection", URL)
    assert_reported(failures({URL: f"{url}&no_such_word=1"}), "No connection", URL)
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("wrong")
    wanting = {URL: url.replace("postgres@", "asker@"), PASSWORD_FILE: str(password)}
    assert_reported(failures(wanting), "refuses the user or the password", URL, PASSWORD_FILE)
    password.write_text("right")
    assert_reported(failures(wanting), "identity migrate")


def test_silent_postgresql_server_is_reported(failures: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = {
            URL: f"postgresql://asker@127.0.0.1:{listening.getsockname()[1]}/x?connect_timeout=2",
            "identity.plugin.sql.connect_timeout": "2s",
        }
        assert_reported(failures(settings), "does not answer in time", URL)


@pytest.mark.thorough
def test_mariadb_failures_are_reported(failures: Any, tmp_path: Path, port_of_nobody: int) -> None:
    pytest.importorskip("pymysql")
    from identity.testing import mariadb

    with mariadb.running_server() as server:
        server.execute("CREATE USER asker@localhost IDENTIFIED BY 'right'")
        url = mariadb.new_database(server)
        query = url.partition("?")[2]
        assert_reported(failures({URL: f"mariadb://asker@127.0.0.1:{port_of_nobody}/x"}), "nobody listens", URL)
        assert_reported(
            failures({URL: f"mariadb://asker@localhost/x?unix_socket={tmp_path}/none"}), "nobody listens", URL
        )
        assert_reported(failures({URL: "mariadb://asker@no-such-host.invalid/x"}), "host is not known", URL)
        assert_reported(
            failures({URL: url.replace("root@", "nowhere@")}), "refuses the user or the password", URL, PASSWORD_FILE
        )
        assert_reported(failures({URL: url.replace("root@", "asker:right@")}), "does not let the user", URL)
        assert_reported(failures({URL: f"mariadb://root@localhost/nowhere?{query}"}), "no database of that name", URL)
        assert_reported(failures({URL: f"{url}&ssl_verify_cert=true"}), "TLS", URL)
        assert_reported(failures({URL: f"{url}&ssl_ca={tmp_path}/none"}), "No connection", URL)
        assert_reported(failures({URL: f"{url}&no_such_word=1"}), "No connection", URL)


def test_sqlite_failures_are_reported(failures: Any, tmp_path: Path) -> None:
    assert_reported(failures({URL: f"sqlite:///{tmp_path}/none/identity.sqlite"}), "no database file", URL)
    assert_reported(failures({URL: f"sqlite:///{tmp_path}"}), "cannot be opened", URL)
    (tmp_path / "other.sqlite").write_text("no database at all" * 100)
    assert_reported(failures({URL: f"sqlite:///{tmp_path}/other.sqlite"}), "not an SQLite database", URL)


@pytest.mark.thorough
def test_mail_server_failures_are_reported(failures: Any, tmp_path: Path, port_of_nobody: int) -> None:
    post = ReceivingMailServer()
    post.start()
    try:
        password = tmp_path / "password"
        password.write_text("wrong")
        cases = {
            "not known": ({"host": "no-such-host.invalid"}, ["host"]),
            "nobody listens": ({"port": str(port_of_nobody)}, ["host", "port"]),
            "lacks what is asked": ({"security": "starttls"}, ["security"]),
            "there is no TLS": ({"security": "tls"}, ["port", "security"]),
            "(identity.smtp.user)": ({"user": POST_USER, "password_file": str(password)}, ["user"]),
        }
        for text, (settings, names) in cases.items():
            smtp_settings = {f"identity.smtp.{name}": value for name, value in settings.items()}
            sentence = failures({**post.settings, **smtp_settings})["mail"]
            assert text in sentence
            assert all(f"identity.smtp.{name}" in sentence for name in names), sentence
    finally:
        post.stop()


@pytest.mark.parametrize(
    ("server", "settings", "message"),
    [
        (
            "identity-iam#waitress",
            "listen = 127.0.0.1:1\ntrusted_proxy = 10.0.0.2",
            "trusted_proxy: is gone: only identity.trus",
        ),
        ("gunicorn#main", "bind = 127.0.0.1:1\ntrusted_proxy = 10.0.0.2", "trusted_proxy: is gone: only identity.trus"),
        (
            "gunicorn#main",
            "bind = 127.0.0.1:1\nforwarded_allow_ips = *",
            "forwarded_allow_ips: cannot be set: only identity.trus",
        ),
        ("gunicorn#main", "listen = 127.0.0.1:1", "listen: is now bind"),
        (
            "gunicorn#main",
            "bind = 127.0.0.1:1\nheader_timeout = 10",
            "header_timeout: is gone: set this limit in the proxy",
        ),
    ],
)
def test_invalid_server_settings_are_refused(
    run: Run, data: Path, with_settings: Any, server: str, settings: str, message: str
) -> None:
    ini = with_settings({})
    head, _, rest = ini.read_text().partition("[server:main]")
    following = rest.partition("\n[")[2]
    ini.write_text(f"{head}[server:main]\nuse = egg:{server}\n{settings}\n[{following}")
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert f"FAILED  [server:main] {message}" in ran.out


def test_unlisted_master_keys_in_use_are_reported(
    run: Run, failures: Any, data: Path, with_settings: Any, tmp_path: Path
) -> None:
    key = tmp_path / "new.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(32))
    failed = failures({"identity.master_keys": f"new:{key}"})
    assert failed.keys() == {"signing key", "master keys"}
    assert all("identity.master_keys" in sentence for sentence in failed.values())
    assert "development (1)" in failed["master keys"]
    both = with_settings({"identity.master_keys": f"new:{key} development:{data}/master.key"})
    assert "ok      master keys" in run("check", "-c", both, f"data={data}").out


def test_readable_development_master_key_is_reported(failures: Any, data: Path) -> None:
    (data / "master.key").chmod(0o644)
    failed = failures({})
    assert failed.keys() == {"identity.data"}
    assert "chmod 600" in failed["identity.data"]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            "identity.storage = sql",
            "idenity.storage = sql",
            "idenity.storage: is not read by anybody; is identity.storage",
        ),
        (
            "identity.storage = sql",
            "identity.storag = sql",
            "identity.storag: is not known; is storage meant? Known are:",
        ),
        ("\nlisten = ", "\nlisten = 127.0.0.1:80800 ", "[server:main] listen: 80800 is no port; the last one is 65535"),
    ],
)
def test_mistyped_settings_are_reported(
    run: Run, data: Path, with_settings: Any, before: str, after: str, sentence: str
) -> None:
    ini = with_settings({})
    assert ini.read_text().count(before) == 1
    ini.write_text(ini.read_text().replace(before, after))
    ran = run("check", "-c", ini, f"data={data}")
    assert (ran.status, ran.err) == (1, "")
    assert f"FAILED  {sentence}" in ran.out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[app:main]\nidentity.storage = sql\na hidden word\n", "no NAME = VALUE in line 3"),
        ("url = hidden\n[app:main]\n", "line 1 stands below no [section]"),
        ("[app:main]\nurl = %(nowhere)s hidden\n", "url in [app:main] needs nowhere, which [DEFAULT] does not have"),
        (
            "[app:main]\nurl = postgresql://a:%40hidden@b/c\n",
            "url in [app:main] has a % that stands for itself: write %%",
        ),
    ],
)
def test_ini_file_errors_are_reported_without_values(run: Run, tmp_path: Path, text: str, sentence: str) -> None:
    """A line could contain a password."""
    ini = tmp_path / "some.ini"
    ini.write_text(text)
    ran = run("check", "-c", ini)
    assert (ran.status, ran.err) == (1, f"identity: some.ini: cannot be used as an ini file: {sentence}\n")


def test_ini_file_is_known_by_its_ending(run: Run, tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("[app:main]\n")
    assert "its name has to end in .ini" in run("check", "-c", tmp_path / "settings").err


def test_all_failures_are_reported_at_once(run: Run, tmp_path: Path) -> None:
    """A new production.ini, before the files that it names exist."""
    ini = tmp_path / "production.ini"
    ini.write_text((Path(INI).parent / "production.ini").read_text())
    ran = run("check", "-c", ini, f"secrets={tmp_path}", f"data={tmp_path}/data", "http_port=99999")
    assert ran.status == 1
    failed = [line.removeprefix("FAILED  ") for line in ran.out.splitlines() if line.startswith("FAILED")]
    for beginning in ("identity.master_keys: ", "[server:main] bind: ", "storage: ", "files: ", "proxy: "):
        assert sum(line.startswith(beginning) for line in failed) == 1, (beginning, failed)
    # The remedy is an `identity` command that can be copied.
    assert f"`identity master-key {tmp_path}/master.key`" in ran.out
    assert "openssl" not in ran.out
    # Checks that need the missing keys must not report success.
    assert "signing key" not in ran.out
    assert not (tmp_path / "master.key").exists()

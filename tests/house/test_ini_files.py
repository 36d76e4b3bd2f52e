"""Both ini files have the same keys, and the service starts and responds with both."""

import json
import re
import signal
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from configparser import RawConfigParser
from dataclasses import dataclass
from pathlib import Path

import pytest

from identity.cli import main as identity_program
from identity.server_settings import build_gunicorn_settings
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database
from tests.house.service_processes import DEVELOPMENT, PRODUCTION

PASSWORD = re.compile(r"password +(\S+) +\(one-time; shown only now\)")


def sections(ini: Path) -> RawConfigParser:
    parser = RawConfigParser(default_section="never")
    parser.optionxform = str
    parser.read(ini)
    return parser


class TestKeys:
    def test_variables_are_the_same_in_both_files(self):
        development, production = sections(DEVELOPMENT), sections(PRODUCTION)
        assert development.sections() == production.sections()
        for section in development.sections():
            # Two servers: waitress in one file, gunicorn in the other.
            if section not in ("DEFAULT", "server:main"):
                assert list(development[section]) == list(production[section]), section

    def test_production_is_production(self):
        settings = sections(PRODUCTION)
        assert settings["app:main"]["identity.development"] == "false"
        assert settings["DEFAULT"]["database"].startswith("postgresql+psycopg://")
        assert len({settings["DEFAULT"][name] for name in ("issuer", "base", "login")}) == 3

    def test_server_is_limited(self):
        server = dict(sections(PRODUCTION)["server:main"])
        assert [int(server[name]) for name in ("timeout", "graceful_timeout", "keepalive")] == [30, 25, 30]
        settings = build_gunicorn_settings({**server, "bind": "127.0.0.1:8080"}, Path())
        assert settings["limit_request_line"] + 2 * settings["limit_request_field_size"] <= 64 * 1024
        assert settings["forwarded_allow_ips"] == ""
        assert sections(DEVELOPMENT)["server:main"]["clear_untrusted_proxy_headers"] == "false"


class TestDevelopment:
    @pytest.mark.thorough
    def test_first_start_creates_everything_and_second_start_reuses_it(self, pserve, tmp_path):
        data = tmp_path / "some folder" / "data"
        first = pserve(DEVELOPMENT, data=data)
        assert json.loads(first.get("/readyz")) == {"status": "ready", "failed": []}
        issuer = json.loads(first.get("/.well-known/openid-configuration"))["issuer"]
        assert issuer == f"http://localhost:{first.port}"
        assert first.stop() == 0
        assert len(PASSWORD.findall(first.output)) == 1
        assert "Traceback" not in first.output

        # Only the owner may read secrets.
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()}
        assert {"identity.sqlite", "master.key", "example-service-user.json", "introspection-client.json"} <= set(modes)
        assert set(modes.values()) == {0o600}
        files = {path.name: path.read_bytes() for path in data.glob("*.json")}
        members = json.loads(files["example-service-user.json"])
        assert set(members) == {"type", "keyId", "key", "userId"}
        assert members["type"] == "serviceaccount"
        assert members["key"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")

        # The output names the next step.
        assert f"http://localhost:{first.port}/.well-known/openid-configuration" in first.output
        assert "token --issuer" in first.output
        assert "Warning" not in first.output
        assert f"make demo PORT={first.port} DATA='some folder/data'" in first.output

        second = pserve(DEVELOPMENT, data=data)
        assert second.stop(signal.SIGINT) == 0
        assert "Traceback" not in second.output
        assert not PASSWORD.search(second.output)
        assert {path.name: path.read_bytes() for path in data.glob("*.json")} == files

    def test_used_port_is_reported_in_one_line_and_creates_nothing(self, serve, tmp_path):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            served = serve(DEVELOPMENT, port=listener.getsockname()[1], data=tmp_path / "data")
            assert served.process.wait(60) == 1
        assert served.output.count("\n") == 1
        assert f"cannot listen on 127.0.0.1:{served.port}: Address already in use" in served.output
        assert not (tmp_path / "data").exists()

    @pytest.mark.thorough
    def test_uncreatable_data_folder_is_reported_in_one_line(self, pserve, tmp_path):
        (tmp_path / "file").write_text("")
        served = pserve(DEVELOPMENT, data=tmp_path / "file" / "data")
        assert served.process.wait(60) == 1
        assert re.search(r"^identity cannot start\. .*Not a directory", served.output, re.MULTILINE)
        assert "Traceback" not in served.output


@dataclass
class SettingLocation:
    """What production.ini needs besides the file."""

    secrets: Path
    data: Path
    database: str
    proxy: str = "none"

    @property
    def variables(self) -> dict[str, object]:
        return {
            "secrets": self.secrets,
            "data": self.data,
            "database": self.database.replace("%", "%%"),
            "proxy": self.proxy,
        }

    def run(self, command: str, *arguments: str) -> int:
        assignments = [f"{name}={value}" for name, value in self.variables.items()]
        return identity_program([command, "-c", str(PRODUCTION), *assignments, *arguments])


@pytest.fixture
def empty_place(postgresql_server: PostgresqlServer, tmp_path: Path) -> Iterator[SettingLocation]:
    """An empty PostgreSQL database, and a folder with secrets."""
    url = new_database(postgresql_server)
    setting_location = SettingLocation(tmp_path / "secrets", tmp_path / "data", url)
    setting_location.secrets.mkdir(mode=0o700)
    assert identity_program(["master-key", str(setting_location.secrets / "master.key")]) == 0
    password = setting_location.secrets / "database.password"
    password.write_text("not needed by this server\n")
    password.chmod(0o600)
    yield setting_location
    drop_database(postgresql_server, url)


@pytest.fixture
def location(empty_place: SettingLocation) -> SettingLocation:
    """A migrated and bootstrapped database and the secrets, as production.ini requires."""
    assert empty_place.run("migrate") == 0
    assert empty_place.run("bootstrap") == 0
    return empty_place


class TestProduction:
    @pytest.mark.thorough
    def test_serves_three_hosts_on_postgresql(self, serve, location):
        assert location.run("check") == 0
        served = serve(PRODUCTION, **location.variables)
        document = json.loads(served.get("/.well-known/openid-configuration", host="id.example.com"))
        assert document["issuer"] == "https://id.example.com"
        assert document["token_endpoint"] == "https://api.example.com/oauth/v2/token"
        assert json.loads(served.get("/oauth/v2/keys", host="api.example.com"))["keys"]
        assert served.status("/oauth/v2/keys", host="id.example.com") == 404
        assert served.status("/oauth/v2/keys", host="elsewhere.example.com") == 421
        assert served.stop() == 0

    @pytest.mark.thorough
    def test_check_requires_the_proxy_setting(self, location, capsys):
        assert sections(PRODUCTION)["DEFAULT"]["proxy"] == ""
        for decision, status in (("", 1), ("none", 0), ("10.0.0.2", 0), ("2001:db8::2", 0)):
            location.proxy = decision
            assert location.run("check") == status
            output = capsys.readouterr().out
            assert (
                "FAILED  proxy: identity.trusted_proxy does not say whether there is a proxy in front." in output
            ) == bool(status)

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("decision", "address"), [("none", "127.0.0.1"), ("10.0.0.2", "127.0.0.1"), ("127.0.0.1", "192.0.2.7")]
    )
    def test_trusts_only_the_configured_proxy(self, serve, location, capsys, decision, address):
        """The client put a value into the header before the proxy appended its own; the first one is ignored."""
        location.proxy = decision
        served = serve(PRODUCTION, **location.variables)
        request = urllib.request.Request(
            f"http://127.0.0.1:{served.port}/oauth/v2/introspect",
            b"token=x",
            {"Host": "api.example.com", "X-Forwarded-For": "203.0.113.9, 192.0.2.7", "Authorization": "Basic eDp5"},
        )
        with pytest.raises(urllib.error.HTTPError, match="401") as refusal:
            urllib.request.urlopen(request, timeout=30)  # noqa: S310
        refusal.value.close()
        assert served.stop() == 0
        capsys.readouterr()
        assert location.run("audit", "--event", "authentication.refused") == 0
        [event] = map(json.loads, capsys.readouterr().out.splitlines())
        assert event["actor"]["client_address"] == address

    @pytest.mark.thorough
    def test_logs_json(self, serve, location):
        served = serve(PRODUCTION, **location.variables)
        served.stop()
        lines = [json.loads(line) for line in served.output.splitlines() if not line.startswith("Starting server")]
        assert lines
        for line in lines:
            assert {"time", "level", "logger", "message"} <= set(line)

    @pytest.mark.thorough
    def test_does_not_migrate_or_bootstrap_by_itself(self, serve, empty_place):
        self.refused(serve, empty_place, "identity migrate")
        assert empty_place.run("migrate") == 0
        self.refused(serve, empty_place, "identity bootstrap")

    @pytest.mark.thorough
    @pytest.mark.sampled(1, thorough=2)
    @pytest.mark.parametrize("name", ["master.key", "database.password"])
    @pytest.mark.parametrize("mode", [0o640, 0o604])
    def test_refuses_a_secret_readable_by_others(self, serve, location, name, mode):
        (location.secrets / name).chmod(mode)
        self.refused(serve, location, "chmod 600")

    @pytest.mark.thorough
    @pytest.mark.sampled(1, thorough=1)
    @pytest.mark.parametrize("content", ["change me", "0" * 64, "A" * 43 + "="])
    def test_refuses_a_default_secret(self, serve, location, content):
        (location.secrets / "master.key").write_text(content)
        self.refused(serve, location, "master key")

    @pytest.mark.thorough
    def test_refuses_a_missing_secret(self, serve, location):
        (location.secrets / "master.key").unlink()
        self.refused(serve, location, "does not exist")

    @pytest.mark.thorough
    def test_refuses_a_master_key_of_another_database(self, serve, location):
        (location.secrets / "master.key").unlink()
        assert identity_program(["master-key", str(location.secrets / "master.key")]) == 0
        self.refused(serve, location, "key")

    @pytest.mark.thorough
    def test_refuses_an_unreachable_database(self, serve, location):
        location.database = "postgresql://identity@127.0.0.1:1/identity"
        self.refused(serve, location, "database")

    @pytest.mark.thorough
    @pytest.mark.sampled(2, thorough=4)
    @pytest.mark.parametrize(
        ("before", "after", "sentence"),
        [
            ("identity.storage = sql", "identity.storage = paper", 'identity.storage: "paper" is offered by no'),
            ("identity.development = false", "identity.developing = false", "identity.developing: is not known"),
            ("%(issuer)s", "http://id.example.com", "identity.issuer_url: must start with https://"),
            ("%(issuer)s", "https://id.example.com/path", "identity.issuer_url: must be scheme and host alone"),
            ("1:%(secrets)s/master.key", "", "identity.master_keys: is missing"),
            ("= sql client", "= nonsense sql client", '"nonsense", which is not installed'),
            ("identity.trusted_proxy = %(proxy)s", "identity.trusted_proxy = *", "must be such as 10.0.0.2"),
            ("identity.attempts_per_address = 100", "identity.attempts_per_address = -1", "must be at least 0"),
            ("timeout = 30", "timeout = long", "[server:main]"),
            ("timeout = 30", "timeuot = 30", "[server:main]"),
        ],
    )
    def test_refuses_bad_settings(self, serve, location, tmp_path, before, after, sentence):
        ini = tmp_path / "bad.ini"
        text = PRODUCTION.read_text()
        assert before in text
        ini.write_text(text.replace(before, after))
        self.refused(serve, location, sentence, ini)

    @staticmethod
    def refused(serve, setting_location: SettingLocation, sentence: str, ini: Path = PRODUCTION) -> None:
        served = serve(ini, **setting_location.variables)
        assert served.process.wait(60) == 1
        # Log lines of the server surround it.
        [message_line] = [
            line for line in served.output.splitlines() if line.startswith(("identity cannot start. ", "identity: "))
        ]
        assert sentence in message_line
        assert "Traceback" not in served.output

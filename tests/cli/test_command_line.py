"""What all commands share: help, one-line errors, exit status, variables, and commands of plugins."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from identity import hookimpl, plugin_host
from identity.extension_points import CliCommand

ROOT = Path(__file__).resolve().parents[2]
INI = str(ROOT / "development.ini")


class GreetingPlugin:
    """Offers the command "greet", which counts organizations."""

    hookspecs = 1

    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Settings:
        """No settings."""

    def __init__(self, settings):
        self.settings = settings

    @hookimpl
    def identity_commands(self):
        return [CliCommand("greet", "greet somebody", self.add_arguments, self.run)]

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True)

    @staticmethod
    def run(arguments: Namespace) -> int:
        with arguments.identity.read_session() as services:
            print(f"Hello {arguments.name} of {services.storage.organizations.page().items[0].name}")  # noqa: T201
        return 3


@pytest.fixture
def greeting_ini(monkeypatch, tmp_path):
    """development.ini with the plugin "greeting" installed and listed."""
    real = plugin_host.installed_plugins()
    point = EntryPoint("greeting", "unused", plugin_host.ENTRY_POINT_GROUP)
    monkeypatch.setattr(EntryPoint, "load", _load(EntryPoint.load))
    monkeypatch.setattr(plugin_host, "installed_plugins", lambda: {**real, "greeting": point})
    path = tmp_path / "greeting.ini"
    path.write_text((ROOT / "development.ini").read_text().replace("= sql client", "= greeting sql client"))
    return path


def _load(real):
    return lambda point: GreetingPlugin if point.name == "greeting" else real(point)


class TestHelp:
    def test_lists_every_command_by_purpose(self, run):
        ran = run("--help")
        assert ran.status == 0
        for command in ("bootstrap", "check", "migrate", "add-manager", "rotate-keys", "purge", "plugins", "token"):
            assert f"\n  {command} " in ran.out
        assert max(map(len, ran.out.splitlines())) <= 110

    def test_help_is_printed_without_arguments(self, run):
        ran = run()
        assert ran.status == 2
        assert ran.err.startswith("usage: identity")

    def test_help_of_a_command_begins_with_its_summary(self, run):
        for command in ("bootstrap", "add-manager", "token", "demo", "recover-admin"):
            ran = run(command, "--help")
            assert ran.status == 0
            assert f"usage: identity {command}" in ran.out

    def test_prints_the_version(self, run):
        assert run("--version").out.startswith("identity 0.")


class TestErrors:
    def test_unusable_ini_file_is_reported_in_one_line(self, run, tmp_path):
        path = tmp_path / "some.ini"
        for text, sentence in (
            (None, "No such file or directory"),
            ("[app:main", "cannot be used as an ini file"),
            ("[app:other]\nuse = egg:identity-iam\n", "has no section [app:main]"),
            ("[app:main]\nidentity.issuer_url = %(nowhere)s\n", "cannot be used as an ini file"),
            ("[app:main]\nidentity.storage = sql\n", "identity.issuer_url: is missing"),
            ("[app:main]\nidentity.colour = red\n", "identity.colour: is not known"),
        ):
            if text is not None:
                path.write_text(text)
            ran = run("purge", "-c", path)
            assert ran.status == 1
            assert sentence in ran.err
            assert ran.err.startswith("identity: ")
            assert ran.err.count("\n") == 1

    def test_unknown_plugin_error_lists_installed_plugins(self, run, tmp_path):
        path = tmp_path / "some.ini"
        path.write_text((ROOT / "development.ini").read_text().replace("= sql client", "= nonsense sql client"))
        ran = run("purge", "-c", path, f"data={tmp_path}")
        assert (ran.status, ran.err.count("\n")) == (1, 1)
        assert '"nonsense", which is not installed' in ran.err

    def test_usage_error_exits_with_2(self, run):
        check = ["check", "-c", INI]
        both = ["apply", "-c", INI, "--keep-ids", "--new-ids"]
        incomplete = (["chek"], ["check"], ["token"], ["token", "--key-file", "x", "a=b"])
        for arguments in (*incomplete, [*check, "--nonsense"], [*check, "not-a-variable"], both):
            ran = run(*arguments)
            assert ran.status == 2
            assert "--help" in ran.err

    def test_database_without_schema_error_names_the_command(self, run, tmp_path):
        ran = run("purge", "-c", INI, f"data={tmp_path}")
        assert ran.status == 1
        assert "identity migrate" in ran.err


class TestVariables:
    def test_may_stand_anywhere_after_the_command(self, run, data):
        for arguments in (
            ["-c", INI, f"data={data}"],
            [f"data={data}", "-c", INI],
            ["-c", INI, "http_port=1", f"data={data}"],
        ):
            assert run("check", *arguments).status == 0

    def test_are_written_as_in_the_file(self, run, data, tmp_path):
        odd = data.rename(tmp_path / "100%")
        assert run("check", "-c", INI, f"data={odd}%").status == 0
        ran = run("check", "-c", INI, f"data={odd}")
        assert (ran.status, ran.err.count("\n")) == (1, 1)


class TestPluginCommands:
    def test_run_with_the_service_that_the_ini_describes(self, run, greeting_ini, data):
        ran = run("greet", "-c", greeting_ini, f"data={data}", "--name", "Ada")
        assert (ran.status, ran.out) == (3, "Hello Ada of Identity\n")

    def test_stand_in_the_help_when_an_ini_file_is_named(self, run, greeting_ini, data):
        ran = run("--help", "-c", greeting_ini, f"data={data}")
        assert "From plugins:" in ran.out
        assert "greet somebody" in ran.out
        assert "greet" not in run("--help").out

    def test_plugin_cannot_replace_a_core_command(self, run, greeting_ini, data, monkeypatch):
        offer = [CliCommand("check", "look the other way", GreetingPlugin.add_arguments, GreetingPlugin.run)]
        monkeypatch.setattr(GreetingPlugin, "identity_commands", hookimpl(lambda self: offer))
        ran = run("--help", "-c", greeting_ini, f"data={data}")
        assert (ran.status, ran.err) == (
            1,
            "identity: A plugin offers the command check, which the program has already.\n",
        )


def test_client_commands_load_neither_web_nor_database():
    code = (
        "import sys\nfrom identity.cli import main\n"
        "assert main(['token', '--key-file', 'no-such-file']) == 1\n"
        "import identity.cli.service_client\n"
        "assert not {'pyramid', 'sqlalchemy', 'oic', 'identity.application_factory'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


class TestMistypedVariables:
    def test_command_suggests_name(self, run):
        for command in ("check", "migrate", "bootstrap"):
            ran = run(command, "-c", INI, "http_prot=8081")
            assert ran.status == 1
            assert ran.err == "identity: http_prot: is no variable of development.ini. Is http_port meant?\n"

    @pytest.mark.thorough
    def test_server_refuses_to_start(self, tmp_path):
        command = [sys.executable, "-m", "pyramid.scripts.pserve", INI, f"dta={tmp_path}", "http_port=0"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 1
        assert "identity cannot start. dta: is no variable of development.ini. Is data meant?" in ran.stderr
        assert "Traceback" not in ran.stderr

    def test_variable_without_default_is_known(self, run, tmp_path):
        ini = tmp_path / "own.ini"
        text = (ROOT / "development.ini").read_text().replace("http_port = 8080\n", "")
        ini.write_text(text)
        ran = run("check", "-c", str(ini), f"data={tmp_path}", "http_port=8080")
        assert "is no variable" not in ran.err

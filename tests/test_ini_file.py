"""Variables of an ini file, as PasteDeploy and the `identity` commands substitute them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plaster
import pytest
from plaster_pastedeploy import Loader

from identity.ini_file import apply_variables, check_variables, load_wsgi_app, read_server_settings, save_last_run
from identity.settings_parser import InvalidSetting

INI = """
[DEFAULT]
data = var

[app:main]
paste.app_factory = tests.test_ini_file:factory
folder = %(data)s
word = %(greeting)s
share = 100%%(percent)s
get taken = borrowed

[server:main]
use = egg:gunicorn#main
bind = 127.0.0.1:%(http_port)s

[handler_file]
class = FileHandler
args = ("%(logs)s/log",)

[formatter_lines]
format = %(message)s
"""
VARIABLES = {"greeting": "hello", "http_port": "1", "borrowed": "lent", "logs": "."}


def factory(global_config: Mapping[str, str], **settings: str) -> Any:
    """Return the settings of application and server instead of an application."""
    return apply_variables(global_config, settings), read_server_settings(global_config)


@pytest.fixture
def ini(tmp_path: Path) -> str:
    path = tmp_path / "own.ini"
    path.write_text(INI)
    return str(path)


def started(ini: str, variables: Mapping[str, str]) -> Any:
    """Load the file as pserve does."""
    return Loader(plaster.parse_uri(ini)).get_wsgi_app(None, dict(variables))


@pytest.mark.parametrize("name", ["data", "greeting", "http_port", "borrowed", "logs", "here", "__file__"])
def test_variable_used_anywhere_is_known(ini: str, name: str) -> None:
    check_variables(ini, [name])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("http_prot", "Is http_port meant?"),
        ("percent", "It knows borrowed, data, greeting, http_port, logs."),
        ("message", "It knows borrowed, data, greeting, http_port, logs."),
        ("folder", "It knows borrowed, data, greeting, http_port, logs."),
    ],
)
def test_variable_without_effect_is_refused_with_suggestion(ini: str, name: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=r"is no variable of own\.ini") as refused:
        check_variables(ini, [name])
    assert message in str(refused.value)
    with pytest.raises(InvalidSetting, match=r"is no variable of own\.ini"):
        started(ini, {**VARIABLES, name: "x"})


@pytest.mark.parametrize("start", [started, load_wsgi_app])
def test_variables_without_default_reach_application_and_server(ini: str, start: Any) -> None:
    settings, server = start(ini, {**VARIABLES, "data": "elsewhere"})
    assert settings == {"folder": "elsewhere", "word": "hello", "share": "100%(percent)s", "taken": "lent"}
    assert server == {"use": "egg:gunicorn#main", "bind": "127.0.0.1:1"}


def test_removed_variable_does_not_stop_reload(ini: str) -> None:
    """Variables given on the command line were checked at the start."""
    settings, _ = load_wsgi_app(ini, {**VARIABLES, "gone": "x"})
    assert settings["word"] == "hello"


def test_application_in_a_pipeline_starts(ini: str) -> None:
    text = INI.replace("[app:main]", "[app:identity]")
    Path(ini).write_text(f"{text}\n[pipeline:main]\npipeline = identity\n")
    settings, server = started(ini, {**VARIABLES, "data": "elsewhere"})
    assert (settings["folder"], server) == ("elsewhere", {"use": "egg:gunicorn#main", "bind": "127.0.0.1:1"})
    with pytest.raises(InvalidSetting, match="Is greeting meant"):
        started(ini, {**VARIABLES, "greetin": "x"})


def test_option_of_a_section_is_no_mistyped_variable(ini: str) -> None:
    text = INI.replace("[app:main]", "[app:identity]")
    Path(ini).write_text(f"{text}\n[pipeline:main]\nset debug = true\npipeline = identity\n")
    settings, _ = started(ini, VARIABLES)
    assert settings["word"] == "hello"


def test_noting_an_unknown_variable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="noted: names http_prot"):
        save_last_run({"noted": "http_prot", "last_run": str(tmp_path / "last"), "http_port": "1"})
    assert not (tmp_path / "last").exists()


def test_variable_of_a_file_that_is_used_is_known(ini: str, tmp_path: Path) -> None:
    user = tmp_path / "user.ini"
    user.write_text(f"[app:main]\nuse = config:{Path(ini).name}\n[server:main]\nuse = config:user.ini#other\n")
    check_variables(str(user), ["data", "greeting", "http_port"])
    settings, _ = started(str(user), VARIABLES)
    assert settings["word"] == "hello"
    with pytest.raises(InvalidSetting, match="Is http_port meant"):
        started(str(user), {**VARIABLES, "http_prot": "1"})

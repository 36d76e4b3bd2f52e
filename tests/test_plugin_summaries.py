"""Summaries of plugins: what they add, where settings come from, and no secrets."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from identity.plugin_summaries import SettingSummary, summarize_settings
from identity.settings_parser import parse_settings, setting
from identity.testing.fixtures import WorldFactory


@dataclass(frozen=True, kw_only=True)
class ExampleSettings:
    url: str = setting("Where it is.", default="")
    urls: tuple[str, ...] = setting("Where they are.", default=())
    api_key: str = setting("What opens it.", default="")
    conninfo: str = setting("How to connect.", default="")
    secret_file: Path | None = setting("A file.", default=None)
    limit: int = setting("How many.", default=5)


def summaries(**values: str) -> dict[str, SettingSummary]:
    settings = parse_settings(ExampleSettings, values, "identity.plugin.example.")
    return {item.name.rpartition(".")[2]: item for item in summarize_settings("identity.plugin.example.", settings)}


@pytest.mark.parametrize(
    ("name", "text", "rendered"),
    [
        (
            "url",
            "postgresql://user:confidential@db.example:5432/identity?key=confidential",
            "postgresql://db.example:5432/…",
        ),
        ("url", "https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("url", "https://user:confidential@[::1", None),
        ("urls", "https://a.example/confidential https://b.example/", "https://a.example/… https://b.example/"),
        ("api_key", "confidential", None),
        ("conninfo", "host=db password=confidential", None),
        ("conninfo", "host=db", "host=db"),
        ("secret_file", "/etc/identity/secret", "/etc/identity/secret"),
        ("limit", "7", "7"),
    ],
)
def test_secret_settings_are_not_shown(name: str, text: str, rendered: str | None) -> None:
    summary = summaries(**{name: text})[name]
    assert (summary.value, summary.is_default) == (rendered, False)
    assert summary.name == f"identity.plugin.example.{name}"


def test_unset_settings_are_defaults() -> None:
    assert {(item.value, item.default, item.is_default) for item in summaries().values()} == {
        ("none", "none", True),
        ("5", "5", True),
    }


@pytest.mark.storages("memory")
def test_plugins_are_summarized_with_what_they_add(make_world: WorldFactory) -> None:
    world = make_world()
    plugins = {item.name: item for item in world.identity.plugin_host.summarize_plugins()}
    assert list(plugins) == list(world.identity.plugin_host.plugin_names)
    assert plugins["refresh_token"].offers["grant type"] == ["refresh_token"]
    assert plugins["introspection"].offers["endpoint"] == ["/oauth/v2/introspect"]
    assert plugins["totp"].offers["factor"] == ["totp"]
    assert plugins["manager_roles"].distribution
    assert "identity_manager_roles" in plugins["manager_roles"].hooks

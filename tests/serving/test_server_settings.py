"""[server:main]: settings of earlier servers are refused, each with its replacement."""

from pathlib import Path

import pytest
from gunicorn.config import Config
from waitress.adjustments import Adjustments

from identity.server_settings import build_gunicorn_settings, find_invalid_settings
from identity.settings_parser import InvalidSettings

#: As in earlier ini files and documentation.
OLD_SETTINGS = {
    "listen": ("127.0.0.1:8080", "is now bind"),
    "threads": ("8", "is gone"),
    "connection_limit": ("1000", "LimitNOFILE"),
    "connections_per_address": ("100", "in the proxy"),
    "channel_timeout": ("30", "is now keepalive"),
    "header_timeout": ("10", "in the proxy"),
    "max_request_header_size": ("32768", "is now limit_request_line"),
    "max_request_body_size": ("1048576", "limit of its own"),
    "trusted_proxy": ("10.0.0.2", "identity.trusted_proxy"),
    "trusted_proxy_headers": ("x-forwarded-for", "identity.trusted_proxy"),
    "trusted_proxy_count": ("1", "identity.trusted_proxy"),
    "clear_untrusted_proxy_headers": ("true", "identity.trusted_proxy"),
    "log_untrusted_proxy_headers": ("true", "identity.trusted_proxy"),
    "expose_tracebacks": ("false", "is gone"),
    "ident": ("identity", "is gone"),
    "worker_timeout": ("30", "is now timeout"),
    "workers": ("auto", "is now empty"),
    "host": ("127.0.0.1", "is now bind"),
    "port": ("8080", "is now bind"),
    "ipv4": ("true", "is now bind"),
    "ipv6": ("true", "is now bind"),
    "unix_socket": ("/run/identity/socket", "is now bind"),
    "unix_socket_perms": ("600", "is now umask"),
    "server_name": ("id.example.com", "is now bind"),
    "url_scheme": ("https", "identity.issuer_url"),
    "url_prefix": ("/id", "identity.issuer_url"),
}
GUNICORN_SETTINGS = {"use": "egg:gunicorn#main", "bind": "127.0.0.1:8080"}


@pytest.mark.parametrize(("name", "value", "message"), [(name, *rest) for name, rest in OLD_SETTINGS.items()])
def test_old_setting_is_refused_with_its_replacement(name: str, value: str, message: str) -> None:
    problems = {
        invalid_setting.key: invalid_setting.message
        for invalid_setting in find_invalid_settings({**GUNICORN_SETTINGS, name: value})
    }
    assert problems.keys() == {f"[server:main] {name}"}
    assert message in problems[f"[server:main] {name}"]


def test_all_old_settings_are_refused_at_once() -> None:
    old = {name: value for name, (value, _) in OLD_SETTINGS.items() if not name.startswith("unix")}
    with pytest.raises(InvalidSettings) as refused:
        build_gunicorn_settings({"paste.server_factory": "identity.server:listen", **old}, Path())
    keys = {invalid_setting.key for invalid_setting in refused.value.errors}
    assert "[server:main] paste.server_factory" in keys
    assert {f"[server:main] {name}" for name in old} <= keys


def test_settings_of_waitress_are_refused() -> None:
    for name in {name for name, _ in Adjustments._params} - Config().settings.keys():
        [problem] = find_invalid_settings({**GUNICORN_SETTINGS, name: "1"})
        assert problem.key == f"[server:main] {name}"


def test_empty_setting_is_the_default() -> None:
    settings = build_gunicorn_settings({**GUNICORN_SETTINGS, "workers": "", "timeout": ""}, Path("/data"))
    assert "workers" not in settings
    assert settings["timeout"] == 30
    assert settings["control_socket"] == "/data/gunicorn.ctl"

"""[server:main] of the ini file: gunicorn's settings with our defaults."""

import os
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from identity.settings_parser import InvalidSetting, InvalidSettings

_SECTION = "[server:main]"
_FACTORY = "paste.server_factory"
_LAST_PORT = 65535
#: May be missing or not writable in containers.
_MEMORY = "/dev/shm"  # noqa: S108
_WAITRESS_FACTORIES = ("egg:waitress", "egg:identity-iam#waitress")

#: 16384 bytes each are far above gunicorn's documented 8190, which its ASGI parsers do not enforce.
DEFAULTS: Mapping[str, Any] = {
    "worker_class": "identity.serving.asgi_worker.AsgiWorker",
    "logger_class": "identity.serving.gunicorn_server.GunicornLogger",
    "timeout": 30,
    "graceful_timeout": 25,
    "keepalive": 30,
    "limit_request_line": 16384,
    "limit_request_field_size": 16384,
    "asgi_lifespan": "on",
    "header_map": "refuse",
    # Only identity.trusted_proxy decides on the client's address.
    "forwarded_allow_ips": "",
    "forwarder_headers": "",
    "secure_scheme_headers": {},
    # A heartbeat must not wait for a disk.
    "worker_tmp_dir": _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None,
}

PROXY_SETTINGS = ("forwarded_allow_ips", "forwarder_headers", "secure_scheme_headers")
PROXY_UNSUPPORTED = "cannot be set: only identity.trusted_proxy decides which proxy is believed"
_PROXY_REMOVED = "is gone: only identity.trusted_proxy decides which proxy is believed"
_MOVED_TO_PROXY = "is gone: set this limit in the proxy (docs/how-to/operators/reverse-proxy)"
_LOGGING_UNSUPPORTED = "cannot be set here: [loggers] and the sections it names decide what is logged"
_RENAMED_TO_BIND = "is now bind, such as bind = 127.0.0.1:8080 or bind = unix:/run/identity/socket"

#: Settings of the server before gunicorn, and gunicorn settings that would break guarantees of the service.
UNSUPPORTED_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("listen", "host", "port", "ipv4", "ipv6", "unix_socket", "server_name"), _RENAMED_TO_BIND),
    "unix_socket_perms": "is now umask",
    "worker_timeout": "is now timeout",
    "channel_timeout": "is now keepalive; limit slow bodies in the proxy",
    "max_request_header_size": "is now limit_request_line, limit_request_fields and limit_request_field_size",
    "max_request_body_size": "is gone: each address of the service has a limit of its own (docs/reference/limits)",
    "connection_limit": "is gone: the number of open files is the limit (LimitNOFILE= in the systemd unit)",
    "connections_per_address": _MOVED_TO_PROXY,
    "header_timeout": _MOVED_TO_PROXY,
    "threads": "is gone: the ASGI worker has no threads of its own",
    **dict.fromkeys(("trusted_proxy", "trusted_proxy_headers", "trusted_proxy_count"), _PROXY_REMOVED),
    **dict.fromkeys(("clear_untrusted_proxy_headers", "log_untrusted_proxy_headers"), _PROXY_REMOVED),
    **dict.fromkeys(("expose_tracebacks", "ident"), "is gone: the service never sends either"),
    **dict.fromkeys((*PROXY_SETTINGS, "proxy_protocol", "proxy_allow_ips"), PROXY_UNSUPPORTED),
    **dict.fromkeys(
        ("accesslog", "access_log_format", "errorlog", "loglevel", "logger_class", "syslog"), _LOGGING_UNSUPPORTED
    ),
    **dict.fromkeys(("logconfig", "logconfig_dict", "logconfig_json", "capture_output"), _LOGGING_UNSUPPORTED),
    **dict.fromkeys(
        ("url_scheme", "url_prefix"), "is gone: identity.issuer_url, identity.base_url and identity.login_url are used"
    ),
    "preload_app": "cannot be set: after SIGHUP the workers would serve the old code and settings",
    "reload": "cannot be set: pserve --reload is for development",
    "daemon": "cannot be set: systemd or a container runs the service in the background",
}


def build_gunicorn_settings(settings: Mapping[str, str], data: Path) -> dict[str, Any]:
    """Raises InvalidSetting for all settings that cannot be used. The control socket is created in ``data``."""
    validate_server_settings(settings)
    options = _server_options(settings) if _is_gunicorn(settings) else {}
    return {**DEFAULTS, "control_socket": str(data / "gunicorn.ctl"), **options, "bind": listen_addresses(settings)}


def validate_server_settings(settings: Mapping[str, str]) -> None:
    """Raise InvalidSetting if the configured server cannot use the settings."""
    problems = list(find_invalid_settings(settings))
    if problems:
        raise InvalidSettings.combine(problems)


def find_invalid_settings(settings: Mapping[str, str]) -> Iterator[InvalidSetting]:
    """Every setting that the configured server cannot use."""
    if not settings:
        return
    yield from _invalid_ports(settings)
    if settings.get(_FACTORY, "").startswith("identity.server:"):
        yield InvalidSetting(f"{_SECTION} {_FACTORY}", "is gone: write use = egg:gunicorn#main")
    elif not _is_gunicorn(settings):
        yield from _invalid_waitress_settings(settings)
        return
    for name, value in _server_options(settings).items():
        problem = UNSUPPORTED_OPTIONS.get(name) or _option_error(name, value)
        if problem is not None:
            yield InvalidSetting(f"{_SECTION} {name}", problem)
    if not listen_addresses(settings):
        yield InvalidSetting(f"{_SECTION} bind", "is missing, such as bind = 127.0.0.1:8080")


def _invalid_ports(settings: Mapping[str, str]) -> Iterator[InvalidSetting]:
    for address in listen_addresses(settings):
        port = address.rpartition(":")[2]
        if port.isdecimal() and int(port) > _LAST_PORT:
            name = "bind" if "bind" in settings else "listen"
            yield InvalidSetting(f"{_SECTION} {name}", f"{port} is no port; the last one is {_LAST_PORT}")


def listen_addresses(settings: Mapping[str, str]) -> list[str]:
    """The addresses of the configured server: ``bind`` of gunicorn, ``listen`` of waitress."""
    if "bind" in settings:
        return [item.strip() for item in settings["bind"].split(",") if item.strip()]
    if "unix_socket" in settings:
        return [f"unix:{settings['unix_socket']}"]
    return settings.get("listen", "").split() or [
        f"{settings[name]}:{settings['port']}" for name in ("host",) if name in settings and "port" in settings
    ]


def is_loopback_only(settings: Mapping[str, str]) -> bool:
    """False if the section does not say, and for Unix sockets, which may have a proxy behind them."""
    found = listen_addresses(settings)
    try:
        return bool(found) and all(ip_address(item.rpartition(":")[0].strip("[]")).is_loopback for item in found)
    except ValueError:
        return False


def _server_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Without PasteDeploy's keys; an empty value stands for the default."""
    return {name: value for name, value in settings.items() if name not in ("use", _FACTORY) and value}


def _is_gunicorn(settings: Mapping[str, str]) -> bool:
    return settings.get("use", "").startswith("egg:gunicorn")


def _option_error(name: str, value: str) -> str | None:
    from gunicorn.config import Config

    config = Config()
    if name not in config.settings:
        return "is no setting of gunicorn"
    if name == "workers" and value == "auto":
        return "is now empty for one worker per processor, or a number"
    try:
        config.set(name, value)
        if name == "bind":
            _ = config.address
    except (ValueError, TypeError, RuntimeError, OSError) as problem:
        return f"{value} cannot be used: {problem}"
    return None


def _invalid_waitress_settings(settings: Mapping[str, str]) -> Iterator[InvalidSetting]:
    """For stock waitress, which pserve starts."""
    if not settings.get("use", "").startswith(_WAITRESS_FACTORIES):
        return
    from waitress.adjustments import Adjustments

    problems = dict(_check_each_option(settings))
    for name, problem in problems.items():
        yield InvalidSetting(f"{_SECTION} {name}", problem)
    if not problems:
        try:
            Adjustments(**_server_options(settings))
        except ValueError as error:
            yield InvalidSetting(_SECTION, str(error))


def _check_each_option(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from waitress.adjustments import Adjustments

    for name, value in _server_options(settings).items():
        if name.startswith("trusted_proxy"):
            yield name, _PROXY_REMOVED
            continue
        try:
            Adjustments(**{name: value})
        except (ValueError, OverflowError, OSError) as error:
            is_unknown = str(error).startswith("Unknown")
            yield name, (UNSUPPORTED_OPTIONS.get(name) if is_unknown else None) or str(error)

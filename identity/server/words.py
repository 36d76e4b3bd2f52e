"""What will not do in [server:main], every word by itself, before anything listens."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from ipaddress import ip_address

from waitress.adjustments import Adjustments

from identity.ini_values import BadSetting
from identity.server.connections import Limits
from identity.server.listening import PATIENCE, WHERE, WORKERS, read_patience, read_workers
from identity.server.serving import own_limits, without_no_proxy
from identity.settings import NO_PROXY

_SECTION = "[server:main]"
#: The proxy's further words count beside its address alone.
_PROXY = "trusted_proxy"
#: Without any, waitress warns of what it takes for granted.
_HEADERS = "trusted_proxy_headers"
_LAST_PORT = 65535


def bad_words(settings: Mapping[str, str]) -> Iterator[BadSetting]:
    """Each setting that waitress or we cannot read; then what does not fit together, under the name of the section."""
    found = False
    for name in settings:
        problem = _problem(name, settings)
        if problem is not None:
            found = True
            yield BadSetting(f"{_SECTION} {name}", problem)
    if not found:
        try:
            _, words = own_limits(settings)
            Adjustments(**without_no_proxy({_HEADERS: "forwarded", **words}))
        except (ValueError, OSError) as misfit:
            yield BadSetting(_SECTION, str(misfit))


def differing_proxy(settings: Mapping[str, str], trusted: str) -> Iterator[BadSetting]:
    """What makes the server believe another one than ``trusted``, which ``identity.trusted_proxy`` names."""
    own = settings.get(_PROXY, "") or NO_PROXY
    if not settings or not trusted or own == NO_PROXY == trusted:
        return
    if own != trusted:
        yield BadSetting(
            f"{_SECTION} {_PROXY}",
            f"says {own}, and identity.trusted_proxy says {trusted}. They must be the same (production.ini: proxy in"
            " [DEFAULT]): the server decides whose word on people's addresses counts, and all whose address it does not"
            " know share one limit of attempts",
        )
    elif not {"x-forwarded-for", "forwarded"} & {*settings.get(_HEADERS, "").lower().split()}:
        yield BadSetting(
            f"{_SECTION} {_HEADERS}",
            f"must name the header by which {trusted} tells people's addresses, such as x-forwarded-for: without one"
            " all people share one limit of attempts",
        )


def listens_on_loopback(settings: Mapping[str, str]) -> bool:
    """True if these words have the server listen on loopback addresses alone, and believe no proxy.

    Where there are none, as under another web server, nobody knows.
    """
    if not settings or (settings.get(_PROXY, "") or NO_PROXY) != NO_PROXY:
        return False
    try:
        words = Adjustments(**{name: value for name, value in settings.items() if name in WHERE})
        return not words.unix_socket and all(ip_address(one[3][0]).is_loopback for one in words.listen)
    except (ValueError, OSError):
        return False


def _problem(name: str, settings: Mapping[str, str]) -> str | None:
    value = settings[name]
    try:
        if name == PATIENCE:
            read_patience(settings)
        elif name == WORKERS:
            read_workers(value)
        elif name in {one.name for one in fields(Limits)}:
            own_limits({name: value})
        elif name.startswith(_PROXY):
            Adjustments(**without_no_proxy({_PROXY: settings.get(_PROXY, ""), _HEADERS: "forwarded", name: value}))
        else:
            Adjustments(**{name: value})
            _check_ports(name, value)
    except BadSetting as problem:
        return problem.problem
    except (ValueError, OSError) as problem:
        return _said(value, problem)
    return None


def _check_ports(name: str, value: str) -> None:
    """Raise ValueError for a port that there is not: the system would take what is left of it beyond 65535."""
    for word in value.split() if name in ("listen", "port") else ():
        port = word.rpartition(":")[2]
        if port.isdecimal() and int(port) > _LAST_PORT:
            raise ValueError(f"{port} is no port; the last one is {_LAST_PORT}")


def _said(value: str, problem: Exception) -> str:
    """What is wrong, in words that help; Python's own are about its types."""
    told = str(problem)
    if told.startswith("Unknown adjustment"):
        return "is not known; see the settings of the web server"
    with suppress(ValueError):
        int(value)
        return told
    return f"must be a whole number, not {value}" if told.startswith("invalid literal") else told

"""The sockets of a service with several workers: taken once, before anything of it is loaded."""

import errno
import os
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from waitress.adjustments import Adjustments

from identity import processors
from identity.ini_values import BadSetting

#: The words of [server:main] that say where.
WHERE = frozenset({"listen", "host", "port", "ipv4", "ipv6", "unix_socket", "unix_socket_perms"})

#: How many processes answer, and for how many seconds one of them may give no sign of life. No server's own words.
WORKERS, PATIENCE = "workers", "worker_timeout"

_PATIENCE = "30"
_AUTO = "auto"

#: Linux alone spreads connections over the sockets of one address.
_SPREADS = sys.platform == "linux"

Made = TypeVar("Made")


def made(kind: Callable[[Mapping[str, Any]], Made], settings: Mapping[str, Any]) -> Made:
    """Something that listens, by these settings. Raises SystemExit, saying what to change."""
    try:
        return kind(settings)
    except OSError as problem:
        where = settings.get("listen", "the address")
        raise SystemExit(
            f"identity cannot start. It cannot listen on {where}: {problem.strerror or problem}."
            " Stop the program that is there, or choose another port too (make run: PORT=…, pserve: http_port=…)."
        ) from None
    except ValueError as problem:
        raise SystemExit(f"identity cannot start. [server:main]: {problem}") from None


def read_patience(settings: Mapping[str, str]) -> float:
    """For how many seconds a worker may give no sign of life. Raises BadSetting."""
    told = settings.get(PATIENCE, "") or _PATIENCE
    try:
        seconds = float(told)
    except ValueError:
        seconds = 0.0
    # Loops go round once a second.
    if not 2 <= seconds < float("inf"):
        raise BadSetting(PATIENCE, f"must be a number of seconds, 2 or more, not {told}")
    return seconds


def read_workers(told: str) -> int | None:
    """How many processes answer; None where nothing is said of it. Raises BadSetting."""
    word = told.strip()
    if not word:
        return None
    if word == _AUTO:
        return processors.available()
    if not word.isascii() or not word.isdecimal() or not int(word):
        raise BadSetting(WORKERS, f"must be {_AUTO}, or a whole number of 1 or more, not {word}")
    return int(word)


def take(settings: Mapping[str, Any], count: int) -> list[list[socket.socket]]:
    """For each of so many workers the sockets at which it takes connections.

    Where the system spreads connections over them, each worker has its own (SO_REUSEPORT): so none takes what another
    one has the time for, and what waits for one that has died waits for its successor. Otherwise, and on a socket in
    the file system, they share one. Raises OSError if an address is taken, ValueError for a word that does not fit.
    """
    words = Adjustments(**{name: value for name, value in settings.items() if name in WHERE | {"backlog"}})
    if words.unix_socket:
        shared = _in_file_system(words.unix_socket, words.unix_socket_perms, words.backlog)
        return [[shared] for _ in range(count)]
    taken: list[list[socket.socket]] = [[] for _ in range(count)]
    for family, kind, protocol, address in words.listen:
        spread = count > 1 and _SPREADS
        if spread:
            # Sockets that spread what comes also find room beside those of another service: that would share it.
            bind(family, kind, protocol, address).close()
        one = bind(family, kind, protocol, address, spread=spread)
        where = one.getsockname()
        for number, sockets in enumerate(taken):
            if number and spread:
                one = bind(family, kind, protocol, where, spread=True)
            sockets.append(one)
    for sockets in taken:
        for one in sockets:
            one.listen(words.backlog)
    return taken


def bind(family: int, kind: int, protocol: int, address: Any, *, spread: bool = False) -> socket.socket:
    """A socket that has taken the address; others can take it too if it is ``spread``. Raises OSError."""
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if spread:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def _in_file_system(path: str, permissions: int, backlog: int) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.stat(path).st_mode):
                # Whoever still answers there is not pushed aside.
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller, suppress(ConnectionRefusedError):
                    caller.connect(path)
                    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
                os.unlink(path)
        made.bind(path)
        os.chmod(path, permissions)
        made.listen(backlog)
    except OSError:
        made.close()
        raise
    return made

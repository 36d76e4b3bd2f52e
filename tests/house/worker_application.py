"""A small application with several workers: responds with its process ID and a value of its ini file."""

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

#: While this file exists, forking fails (with ``greeting = crowded``).
CROWDED = Path("crowded")


def main(_global_config: dict[str, str], greeting: str = "", **_: str) -> Callable[..., Iterable[bytes]]:
    """The ``paste.app_factory`` entry point."""
    if greeting == "broken":
        raise SystemExit("the greeting is broken")
    if greeting == "crowded":
        os.fork = _unless_crowded(os.fork)

    def application(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if greeting == "dies":
            os._exit(7)
        content = f"{os.getpid()} {greeting}".encode()
        start_response("200 OK", [("Content-Length", str(len(content)))])
        return [content]

    return application


def _unless_crowded(fork: Callable[[], int]) -> Callable[[], int]:
    def forked() -> int:
        if CROWDED.exists():
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    return forked

"""The smallest application with several workers: tells which process answers, and what its ini file says."""

import os
from collections.abc import Callable, Iterable
from typing import Any


def main(_global_config: dict[str, str], word: str = "", **_: str) -> Callable[..., Iterable[bytes]]:
    """What ``paste.app_factory`` names."""
    if word == "broken":
        raise SystemExit("the word is broken")

    def application(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if word == "dies":
            os._exit(7)
        content = f"{os.getpid()} {word}".encode()
        start_response("200 OK", [("Content-Length", str(len(content)))])
        return [content]

    return application

"""The least that a web server can be asked for: its row shows what the server alone costs."""

from collections.abc import Callable, Iterable
from typing import Any

PATH = "/hello"
BODY = b'{"hello": "world"}'
_HEADERS = [("Content-Length", str(len(BODY))), ("Content-Type", "application/json")]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A small JSON answer."""
    start_response("200 OK", list(_HEADERS))
    return [BODY]


def main(global_config: dict[str, str], **settings: str) -> Callable[..., Iterable[bytes]]:
    """The application for ``pserve``."""
    return application

"""The words of [server:main] under granian: each means what it means under waitress, or the start is refused."""

import socket
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from waitress.adjustments import Adjustments

from identity.server.listening import bind

#: The settings of waitress that mean the same here, or the same that they mean there: nothing.
_UNDERSTOOD = frozenset(
    {
        "listen", "host", "port", "ipv4", "ipv6", "sockets", "backlog", "threads", "trusted_proxy",
        "trusted_proxy_count", "trusted_proxy_headers", "log_untrusted_proxy_headers", "clear_untrusted_proxy_headers",
        "url_scheme", "server_name", "ident", "connection_limit", "channel_timeout", "max_request_header_size",
        "max_request_body_size", "expose_tracebacks", "asyncore_use_poll",
    }
)  # fmt: skip


def check(adjustments: Adjustments, settings: Mapping[str, Any]) -> None:
    """Raise ValueError for what granian cannot do."""
    for name in sorted(set(settings) - _UNDERSTOOD):
        raise ValueError(f"granian knows nothing like {name}: leave it out, or serve with waitress")
    if adjustments.expose_tracebacks:
        raise ValueError("expose_tracebacks: granian shows none, so it must be false")
    where = [(one.family, one.getsockname()) for one in adjustments.sockets]
    where = where or [(one[0], one[3]) for one in adjustments.listen]
    if len(where) != 1 or where[0][0] not in (socket.AF_INET, socket.AF_INET6):
        raise ValueError("listen: granian takes one address with a port; localhost may be two")
    [(_, (host, *_))] = where
    if adjustments.trusted_proxy is None and not ip_address(host).is_loopback:
        raise ValueError(
            "connections_per_address: granian does not count them. Put a proxy that does in front and name it in"
            " trusted_proxy, or listen on a loopback address, or serve with waitress"
        )


def listening(adjustments: Adjustments) -> socket.socket:
    """A socket that listens where the settings say. Raises OSError."""
    taken: socket.socket
    [taken] = adjustments.sockets or [bind(*one) for one in adjustments.listen]
    taken.listen(adjustments.backlog)
    return taken


def common(adjustments: Adjustments, bound: socket.socket) -> dict[str, Any]:
    """What all requests have in common."""
    return {
        "SERVER_NAME": adjustments.server_name,
        "SERVER_PORT": str(bound.getsockname()[1]),
        "SERVER_SOFTWARE": adjustments.ident,
        "SCRIPT_NAME": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": adjustments.url_scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }

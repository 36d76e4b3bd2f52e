"""What systemd is told of a service of ``Type=notify-reload`` (sd_notify(3))."""

import os
import socket
import time
from contextlib import suppress


def notify(*words: str) -> None:
    """Tell it; nothing where the service was not started by it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    # One in the abstract name space begins with a zero byte.
    where = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as told:
        told.sendto("\n".join(words).encode(), where)


def reloading() -> None:
    """Say that it reloads, from now on and until it is READY."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

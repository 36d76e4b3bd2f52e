"""A process and its descendants, any of which may end at any moment."""

from contextlib import suppress

import psutil  # type: ignore[import-untyped]


def list_process_tree(number: int) -> list[psutil.Process]:
    """The process with this id and its descendants; empty if it is gone."""
    try:
        first = psutil.Process(number)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def signal_process_tree(number: int, signal: int) -> None:
    """Send a signal to each of them that still exists."""
    for process in list_process_tree(number):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal)

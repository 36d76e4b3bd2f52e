"""A process and those that it started: any of them may end while one looks."""

from contextlib import suppress

import psutil  # type: ignore[import-untyped]


def list_process_tree(number: int) -> list[psutil.Process]:
    """The process of this number and all below it; none if it is gone."""
    try:
        first = psutil.Process(number)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def signal_process_tree(number: int, signal: int) -> None:
    """Send a signal to each of them that is still there."""
    for process in list_process_tree(number):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal)

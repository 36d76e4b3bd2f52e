"""A forked process that acknowledges its writes until it is killed."""

import os
from collections.abc import Callable


def acknowledged_before_kill(write: Callable[[int], object]) -> set[int]:
    """The numbers, separated by spaces, that ``write`` wrote to its file descriptor before its fork was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(writer)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as acknowledged:
        numbers = {int(number) for number in acknowledged.read().split()}
    os.waitpid(child, 0)
    return numbers

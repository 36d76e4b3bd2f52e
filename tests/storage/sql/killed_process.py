"""A forked process that acknowledges what it has written until it is killed."""

import os
from collections.abc import Callable


def acknowledged_before_kill(write: Callable[[int], object]) -> set[int]:
    """Run ``write`` in a fork; it writes numbers, separated by spaces, to the file descriptor it is given."""
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

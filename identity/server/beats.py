"""Signs of life of processes, in memory that they share with whoever started them."""

import mmap
import os
import struct
import time
from contextlib import suppress

_MOMENT = struct.Struct("d")


class Beats:
    """A moment for each worker: when its loop last went round. Made before they are forked."""

    def __init__(self, count: int, ringing: int) -> None:
        self._moments = mmap.mmap(-1, count * _MOMENT.size)
        self._ringing = ringing

    def clear(self, slot: int) -> None:
        """Nobody has beaten there."""
        _MOMENT.pack_into(self._moments, slot * _MOMENT.size, 0.0)

    def last(self, slot: int) -> float:
        """The moment of the last one (time.monotonic); 0 if there was none."""
        found: float = _MOMENT.unpack_from(self._moments, slot * _MOMENT.size)[0]
        return found

    def beat(self, slot: int) -> None:
        """Called by the worker; the first one wakes whoever waits for it."""
        first = not self.last(slot)
        _MOMENT.pack_into(self._moments, slot * _MOMENT.size, time.monotonic())
        if first:
            with suppress(BlockingIOError):
                os.write(self._ringing, b"\0")

"""Signs of life of processes, in memory that they share with whoever started them, and with who may look at it."""

import mmap
import os
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

#: The memory that this process was forked with, if it is a worker of identity serve.
_inherited: "Beats | None" = None

#: By this name the memory is found among the open files of a process.
NAME = "identity-beats"

_PHASE = struct.Struct("q")
_MOMENT = struct.Struct("d")
#: The last beat; the process, when it was started, and how many there were.
_WORKER = struct.Struct("dqdq")
_FACTS = struct.Struct("qdq")


class Phase(IntEnum):
    """Where a generation of workers stands."""

    STARTS = 0
    ANSWERS = 1
    ENDS = 2


@dataclass(frozen=True, slots=True)
class Worker:
    """What is known of a worker; moments are those of time.monotonic. ``pid`` is 0 while there is none."""

    last: float
    pid: int
    since: float
    starts: int


class Beats:
    """For each worker a moment: when its loop last went round, and which process it is. Made before they are forked."""

    def __init__(self, count: int, ringing: int) -> None:
        size = _PHASE.size + count * _WORKER.size
        if hasattr(os, "memfd_create"):
            # Kept open: who may look into this process finds it there.
            file = os.memfd_create(NAME)
            os.truncate(file, size)
        else:
            file = -1
        self._shared = mmap.mmap(file, size)
        self._ringing = ringing
        #: No other generation of this machine's has it.
        self.name = str(time.monotonic_ns())
        global _inherited
        _inherited = self

    def enter(self, phase: Phase) -> None:
        """Tell where the generation stands."""
        _PHASE.pack_into(self._shared, 0, phase)

    def started(self, slot: int, pid: int, since: float, starts: int) -> None:
        """A process has begun there, so many until now."""
        _FACTS.pack_into(self._shared, _at(slot) + _MOMENT.size, pid, since, starts)

    def ended(self, slot: int) -> None:
        """The process is gone."""
        _PHASE.pack_into(self._shared, _at(slot) + _MOMENT.size, 0)

    def clear(self, slot: int) -> None:
        """Nobody has beaten there."""
        _MOMENT.pack_into(self._shared, _at(slot), 0.0)

    def last(self, slot: int) -> float:
        """The moment of the last one (time.monotonic); 0 if there was none."""
        found: float = _MOMENT.unpack_from(self._shared, _at(slot))[0]
        return found

    def seen(self) -> "Seen":
        """All that stands there."""
        return Seen.of(self._shared[:])

    def beat(self, slot: int) -> None:
        """Called by the worker; the first one wakes whoever waits for it."""
        first = not self.last(slot)
        _MOMENT.pack_into(self._shared, _at(slot), time.monotonic())
        if first:
            with suppress(BlockingIOError):
                os.write(self._ringing, b"\0")


@dataclass(frozen=True, slots=True)
class Seen:
    """The memory of a generation as somebody else reads it."""

    phase: Phase
    workers: tuple[Worker, ...]

    @classmethod
    def of(cls, memory: bytes) -> Self:
        """What it says."""
        [phase] = _PHASE.unpack_from(memory)
        return cls(Phase(phase), tuple(Worker(*one) for one in _WORKER.iter_unpack(memory[_PHASE.size :])))


def replaced() -> tuple[str, int] | None:
    """A name for the generation of which this process is a worker, and how often one of it took another's place; None
    if it is no worker."""
    if _inherited is None:
        return None
    return _inherited.name, sum(max(0, one.starts - 1) for one in _inherited.seen().workers)


def _at(slot: int) -> int:
    return _PHASE.size + slot * _WORKER.size

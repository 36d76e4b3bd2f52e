"""How a process that only looks after others waits: for signals, for files, for a moment."""

import os
import select
import signal
from collections import deque
from collections.abc import Collection, Iterable
from contextlib import suppress


class Waking:
    """Until it is closed, these signals are heard here and do nothing by themselves. In the main thread alone."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._heard: deque[int] = deque()
        self._bell, ringing = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(ringing, False)
        #: A byte that is written here ends the wait; processes that were forked may do so as well.
        self.ringing = ringing
        signal.set_wakeup_fd(ringing, warn_on_full_buffer=False)
        self._numbers = tuple(numbers)
        for number in self._numbers:
            signal.signal(number, lambda number, _: self._heard.append(number))

    def wait(self, seconds: float | None, files: Collection[int] = ()) -> tuple[list[int], list[int]]:
        """The signals that have come, and those of the files that have something to say; by then at the latest."""
        ready, _, _ = select.select([self._bell, *files], [], [], seconds)
        if self._bell in ready:
            ready.remove(self._bell)
            with suppress(BlockingIOError):
                while os.read(self._bell, 4096):
                    pass
        heard: list[int] = []
        while self._heard:
            heard.append(self._heard.popleft())
        return heard, ready

    def forget(self) -> None:
        """In a process that was forked: its signals are its own. What it writes to ``ringing`` is still heard."""
        signal.set_wakeup_fd(-1)
        os.close(self._bell)
        for number in self._numbers:
            signal.signal(number, signal.SIG_DFL)

"""Shows the progress of commands that take more than two seconds, on standard error."""

import sys
import time
from contextlib import AbstractContextManager

_INTERVAL_SECONDS = 2


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """Prints every two seconds, in place on a terminal, otherwise in lines."""

    def __init__(self) -> None:
        self._done = 0
        self._next_at = time.monotonic() + _INTERVAL_SECONDS
        self._in_place = sys.stderr.isatty()
        self._has_printed = False

    def add(self, more: int, text: str) -> None:
        """Add completed work; ``text`` renders the total."""
        self._done += more
        self.report(text.format(self._done))

    def report(self, text: str) -> None:
        """Print the progress, if it is time to."""
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + _INTERVAL_SECONDS
            print(f"\r\x1b[K{text}" if self._in_place else text, file=sys.stderr, flush=True, end=self._line_end)
            self._has_printed = True

    def __exit__(self, *_exception: object) -> None:
        if self._has_printed and self._in_place:
            print(file=sys.stderr, flush=True)

    @property
    def _line_end(self) -> str:
        return "" if self._in_place else "\n"

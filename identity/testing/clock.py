"""A clock that moves only when told."""

from datetime import datetime, timedelta

from identity import clock


class FakeClock:
    """The service's clock in tests: starts at the real now, in whole seconds, and stands still there."""

    def __init__(self, start: datetime | None = None) -> None:
        self.start = start or clock.now()
        self._now = self.start

    def __call__(self) -> datetime:
        """The present moment, as the service asks for it."""
        return self._now

    @property
    def seconds(self) -> int:
        """The present moment in seconds since 1970, as it stands in claims."""
        return int(self().timestamp())

    def advance(self, seconds: int = 0, **span: int) -> None:
        """Move on by so many seconds, or by ``minutes=``, ``hours=``, ``days=``; back if negative."""
        self._now += timedelta(seconds=seconds, **span)

    def reset(self) -> None:
        """Go back to the start."""
        self._now = self.start


class TickingClock(FakeClock):
    """Goes with the real time, for clients that have a clock of their own; it can be moved on top of that."""

    def __call__(self) -> datetime:
        """The real moment, shifted by what the clock was moved."""
        return clock.now() + (self._now - self.start)

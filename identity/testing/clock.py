"""A clock that only tests move."""

from datetime import datetime, timedelta

from identity import clock


class FakeClock:
    """The service's clock in tests: stands still at the time of its creation, in whole seconds."""

    def __init__(self, start: datetime | None = None) -> None:
        self.start = start or clock.now()
        self._now = self.start

    def __call__(self) -> datetime:
        return self._now

    @property
    def seconds(self) -> int:
        """The current time in seconds since 1970, as in claims."""
        return int(self().timestamp())

    def advance(self, seconds: int = 0, **span: int) -> None:
        """Move by this many seconds, or by ``minutes=``, ``hours=``, ``days=``; back if negative."""
        self._now += timedelta(seconds=seconds, **span)

    def reset(self) -> None:
        self._now = self.start


class TickingClock(FakeClock):
    """Follows real time, for clients with their own clock; can be moved in addition."""

    def __call__(self) -> datetime:
        return clock.now() + (self._now - self.start)

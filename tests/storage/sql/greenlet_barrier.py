"""A barrier for greenlets."""

from identity.concurrency import Event


class GreenletBarrier:
    """Greenlets wait here until all of them are connected."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._count, self._all_here = 0, Event()

    def wait(self) -> bool:
        """Return when all have arrived; True for the last one, which continues first."""
        self._count += 1
        if self._count < self._number:
            self._all_here.wait()
            return False
        self._all_here.set()
        return True

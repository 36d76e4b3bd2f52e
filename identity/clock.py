"""The one clock of the service."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def now() -> datetime:
    """The present moment: aware, UTC, whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)

"""The one clock of the service."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def now() -> datetime:
    """The present moment: aware, UTC, whole seconds."""
    return datetime.fromtimestamp(int(time.time()), UTC)

"""The clock of the service."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def now() -> datetime:
    """The current time: timezone-aware, UTC, in whole seconds."""
    return datetime.fromtimestamp(int(time.time()), UTC)

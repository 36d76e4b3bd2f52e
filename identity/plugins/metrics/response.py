"""What is answered to whoever asks for metrics, at whichever address."""

from collections.abc import Callable
from dataclasses import dataclass, field

METRICS_PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class MetricsResponse:
    """An answer as both addresses give it."""

    status: int
    body: bytes
    media_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = field(default=())


#: The answer for an Authorization and an Accept header.
ScrapeHandler = Callable[[str | None, str], MetricsResponse]

"""The metrics response, at either address."""

from collections.abc import Callable
from dataclasses import dataclass, field

METRICS_PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class MetricsResponse:
    status: int
    body: bytes
    media_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = field(default=())


#: The response for an Authorization and an Accept header.
ScrapeHandler = Callable[[str | None, str], MetricsResponse]

"""Targets of the benchmarks, and whether they are met."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

#: CPU of a request as a multiple of node-oidc-provider's: on SQLite, and on PostgreSQL including the database.
RATIOS: Mapping[str, Mapping[str, float | None]] = {
    "discovery": {"sqlite": 0.6, "postgresql": None},
    "keys": {"sqlite": 0.6, "postgresql": None},
    "opaque": {"sqlite": 1.1, "postgresql": 1.3},
    "jwt": {"sqlite": 1.1, "postgresql": 1.4},
    "introspection": {"sqlite": 0.9, "postgresql": 0.65},
    "userinfo": {"sqlite": 0.8, "postgresql": 0.6},
    "refresh": {"sqlite": 0.6, "postgresql": 0.9},
    "code-flow": {"sqlite": 0.45, "postgresql": 0.5},
}
#: Megabytes of one process on SQLite after the load.
MEMORY = 105.0
#: CPU seconds until the first response.
START = 1.0
#: The 95th percentile of tokens during a flood of sign-ins, as a multiple of the idle one.
FLOOD = 2.0
#: CPU of a token with two workers on PostgreSQL, as a multiple of that with one.
WORKERS = 1.05
#: CPU of a request with a large database, as a multiple of that with a small one.
GROWTH = 1.15
#: Milliseconds of the longest batch of a purge, and of the increase of the slowest response during it.
PURGE = 50.0


@dataclass(frozen=True)
class TargetResult:
    """A measured value and its target."""

    title: str
    value: float
    target: float

    @property
    def is_met(self) -> bool:
        """True if the value is at most the target, both rounded as printed."""
        return round(self.value, 2) <= self.target

    def __str__(self) -> str:
        return f"{self.value:.2f} (target {self.target:g}{'' if self.is_met else ', missed'})"


def format_summary(results: list[TargetResult]) -> Iterator[str]:
    """The lines at the end of a run."""
    if results:
        yield ""
        yield f"verdict: {sum(target_result.is_met for target_result in results)} of {len(results)} targets hold"
    yield from (
        f"  missed: {target_result.title} {target_result}" for target_result in results if not target_result.is_met
    )

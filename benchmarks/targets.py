"""What is wanted: one row for each figure that has a target, and whether it holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Figure(StrEnum):
    """What is measured."""

    COST = "cost"
    """CPU time of the service per answer, in signatures; on PostgreSQL with the database's."""
    TAIL = "tail"
    """The 99th percentile of the latency, as a multiple of the median."""
    FLOOD = "flood"
    """The 95th percentile during a flood of logins, as a multiple of the idle one."""
    SHARED = "shared commits"
    """Requests per second on a slow disk, as a multiple of those with a commit for each."""
    MEMORY = "memory"
    """Resident megabytes, after the load."""
    WORKER = "memory of a worker"
    """Resident megabytes of the first worker under a supervisor, after the load."""
    PRIVATE = "memory of one more"
    """Megabytes that each further one shares with no other process: the most of them."""
    MEMORY_AT_START = "memory after the start"
    """Resident megabytes when the first answer has come."""
    START = "start"
    """CPU seconds until the first answer."""
    SCALING = "scaling"
    """Requests per second of several workers, as a multiple of those of one."""
    PURGE = "beside a purge"
    """Milliseconds by which the slowest answer beside a purge is slower than the slowest without."""
    BATCH = "batch of a purge"
    """Milliseconds that the longest one took; on SQLite nobody else could write meanwhile."""
    GROWTH = "growth"
    """The cost with a large database, as a multiple of the cost with a small one."""


#: Figures of which there should be much; of the others there should be little.
_MUCH = frozenset({Figure.SHARED, Figure.SCALING})


@dataclass(frozen=True)
class Reading:
    """What one figure turned out to be; ``case`` is empty where it is the whole service's."""

    figure: Figure
    server: str
    storage: str
    case: str
    value: float


@dataclass(frozen=True)
class Target:
    """How large a figure may be, or has to be. What is left empty holds for all."""

    figure: Figure
    limit: float
    case: str = ""
    server: str = ""
    storage: str = ""

    def concerns(self, reading: Reading) -> bool:
        """True if the reading is one of this figure."""
        return self.figure is reading.figure and all(
            getattr(self, one) in ("", getattr(reading, one)) for one in ("case", "server", "storage")
        )

    def met_by(self, reading: Reading) -> bool:
        """True if the reading is as it should be."""
        return reading.value >= self.limit if self.figure in _MUCH else reading.value <= self.limit

    @property
    def shown(self) -> str:
        """The limit, with what it means."""
        return f"{'≥' if self.figure in _MUCH else '≤'} {self.limit:g}"


def _costs(storage: str, **limits: tuple[float, float]) -> list[Target]:
    """For each case what it may cost under waitress and under granian."""
    return [
        Target(Figure.COST, limit, case.replace("_", "-"), server, storage)
        for case, pair in limits.items()
        for server, limit in zip(("waitress", "granian"), pair, strict=True)
    ]


TARGETS = (
    *_costs(
        "sqlite",
        discovery=(0.45, 0.2),
        keys=(0.45, 0.2),
        opaque=(3.0, 2.5),
        jwt=(4.0, 3.5),
        introspection=(1.2, 0.7),
        userinfo=(1.0, 0.5),
        refresh=(3.0, 2.6),
        code_flow=(6.5, 5.5),
    ),
    *_costs("postgresql", opaque=(5.5, 5.5), introspection=(2.0, 2.0), userinfo=(1.5, 1.5), refresh=(6.0, 6.0)),
    Target(Figure.TAIL, 4.0),
    Target(Figure.FLOOD, 2.0),
    Target(Figure.SHARED, 5.0),
    Target(Figure.MEMORY, 105.0, storage="sqlite"),
    Target(Figure.MEMORY_AT_START, 105.0, storage="sqlite"),
    Target(Figure.WORKER, 110.0),
    Target(Figure.PRIVATE, 45.0),
    Target(Figure.START, 1.0, storage="sqlite"),
    Target(Figure.SCALING, 1.8),
    Target(Figure.GROWTH, 1.15),
    Target(Figure.PURGE, 50.0),
    Target(Figure.BATCH, 50.0),
)


def target_of(reading: Reading) -> Target | None:
    """What is wanted of this reading; None if nothing is."""
    return next((one for one in TARGETS if one.concerns(reading)), None)


def verdict(readings: Iterable[Reading]) -> tuple[list[Reading], list[Reading]]:
    """Those of the readings that are as they should be, and those that are not; others have no target."""
    known = sorted(readings, key=lambda one: (one.storage, one.server), reverse=True)
    wanted = [(reading, target) for reading in known if (target := target_of(reading)) is not None]
    held = [reading for reading, target in wanted if target.met_by(reading)]
    return held, [reading for reading, target in wanted if not target.met_by(reading)]

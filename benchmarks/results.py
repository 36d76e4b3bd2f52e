"""Everything that a run found, as readings that targets judge, and as JSON for programs."""

import os
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.flood import Flood
from benchmarks.growth import Growth
from benchmarks.measuring import Figures, Sample, Units
from benchmarks.purging import Purging
from benchmarks.scaling import Scaling
from benchmarks.service import ROOT, Setup
from benchmarks.sharing import Sharing
from benchmarks.targets import Figure, Reading, target_of

#: The case that stands for the web server alone. Nobody is to blame for its latencies.
BARE = "hello"


@dataclass(frozen=True)
class Whole:
    """What a setup takes: CPU seconds until the first answer, bytes then, and bytes after the load.

    Of each of ``workers`` the bytes after the load, and those that it shares with no other process. Of several
    processes together, bytes that they share count for each.
    """

    starts: Sequence[float]
    memory_at_start: int
    memory: int
    workers: Sequence[tuple[int, int]] = ()

    @property
    def figures(self) -> Mapping[Figure, float]:
        """Those of the whole setup."""
        if self.workers:
            private = max(own for _, own in self.workers)
            memory = {Figure.WORKER: self.workers[0][0] / 2**20, Figure.PRIVATE: private / 2**20}
        else:
            memory = {Figure.MEMORY: self.memory / 2**20, Figure.MEMORY_AT_START: self.memory_at_start / 2**20}
        return {**memory, Figure.START: self.start}

    @property
    def start(self) -> float:
        """The median of the starts."""
        return statistics.median(self.starts)


@dataclass(frozen=True)
class Result:
    """Figures of all setups; ``titles`` are those of cases and sums in the order of the table, by setup.

    ``disk`` is how many seconds a page takes to be written and synced.
    """

    rounds: int
    connections: Sequence[int]
    disk: float = 0.0
    titles: Mapping[Setup, Mapping[str, str]] = field(default_factory=dict)
    wholes: Mapping[Setup, Whole] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    units: Units | None = None
    floods: Mapping[Setup, Flood] = field(default_factory=dict)
    sharing: Sharing | None = None
    growth: Growth | None = None
    scaling: Scaling | None = None
    purging: Purging | None = None
    notes: Sequence[str] = ()

    def readings(self) -> Iterator[Reading]:
        """What targets may judge: all figures of this checkout, of cases at the first number of connections."""
        for setup, name, number in self.figures:
            if setup.checkout == ROOT and number == self.connections[0] and name != BARE:
                sample = self.figures[setup, name, number]
                yield _reading(Figure.COST, setup, sample.ratio, name)
                if sample.tail is not None:
                    yield _reading(Figure.TAIL, setup, sample.tail, name)
        for setup, whole in self.wholes.items():
            if setup.checkout == ROOT:
                yield from (_reading(figure, setup, value) for figure, value in whole.figures.items())
        for setup, flood in self.floods.items():
            if setup.checkout == ROOT:
                yield from (_reading(Figure.FLOOD, setup, ratio, name) for name, ratio in flood.ratios.items())
        if self.sharing is not None:
            for name, gain in self.sharing.gains.items():
                yield _reading(Figure.SHARED, self.sharing.setup, gain, name)
        if self.growth is not None:
            for name, ratio in self.growth.ratios.items():
                yield _reading(Figure.GROWTH, self.growth.setup, ratio, name)
        if self.scaling is not None:
            for name, gain in self.scaling.gains.items():
                yield _reading(Figure.SCALING, self.scaling.setup, gain, name)
        if self.purging is not None:
            for name, longer in self.purging.longer.items():
                yield _reading(Figure.PURGE, self.purging.setup, longer, name)
            yield _reading(Figure.BATCH, self.purging.setup, self.purging.longest)

    def title(self, case: str) -> str:
        """What a case is called."""
        known = [*self.titles.values(), *(flood.titles for flood in self.floods.values())]
        known += [one.titles for one in (self.sharing, self.growth, self.scaling, self.purging) if one is not None]
        return next((titles[case] for titles in known if case in titles), case)


def _reading(figure: Figure, setup: Setup, value: float, case: str = "") -> Reading:
    return Reading(figure, setup.server, setup.storage, case, value)


def as_json(result: Result) -> dict[str, Any]:
    """The result for programs."""
    units = result.units
    return {
        "conditions": {
            "rounds": result.rounds,
            "connections": list(result.connections),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "unit": None if units is None else units.name,
        },
        "units": None if units is None else asdict(units),
        "disk": result.disk,
        "cases": [
            {**_named(setup), "case": name, "connections": number, **_figures(sample)}
            for (setup, name, number), sample in result.figures.items()
        ],
        "services": [
            {**_named(setup), "start": whole.start, **asdict(whole)} for setup, whole in result.wholes.items()
        ],
        "floods": [
            {**_named(setup), "ratios": dict(flood.ratios), **asdict(flood)} for setup, flood in result.floods.items()
        ],
        "sharing": None if result.sharing is None else _sharing(result.sharing),
        "growth": None if result.growth is None else _growth(result.growth),
        "scaling": None if result.scaling is None else _scaling(result.scaling),
        "purging": None if result.purging is None else _purging(result.purging),
        "readings": [_judged(reading) for reading in result.readings()],
    }


def _named(setup: Setup) -> dict[str, Any]:
    return {**asdict(setup), "checkout": str(setup.checkout)}


def _figures(sample: Sample) -> dict[str, Any]:
    return {"ratio": sample.ratio, **asdict(sample)}


def _sharing(sharing: Sharing) -> dict[str, Any]:
    return {
        "delay": sharing.delay,
        "gains": dict(sharing.gains),
        "shared": {name: _figures(sample) for name, sample in sharing.shared.items()},
        "apart": {name: _figures(sample) for name, sample in sharing.apart.items()},
        "compared_with": _named(sharing.other),
    }


def _growth(growth: Growth) -> dict[str, Any]:
    return {
        "tokens": growth.tokens,
        "applications": growth.applications,
        "ratios": dict(growth.ratios),
        "small": {name: _figures(sample) for name, sample in growth.small.items()},
        "large": {name: _figures(sample) for name, sample in growth.large.items()},
    }


def _scaling(scaling: Scaling) -> dict[str, Any]:
    return {
        **_named(scaling.setup),
        "gains": dict(scaling.gains),
        "one": {name: _figures(sample) for name, sample in scaling.one.items()},
        "several": {name: _figures(sample) for name, sample in scaling.several.items()},
    }


def _purging(purging: Purging) -> dict[str, Any]:
    return {**asdict(purging), "setup": _named(purging.setup), "longer": dict(purging.longer)}


def _judged(reading: Reading) -> dict[str, Any]:
    target = target_of(reading)
    judged = {"limit": None, "met": None} if target is None else {"limit": target.limit, "met": target.met_by(reading)}
    return {**asdict(reading), **judged}

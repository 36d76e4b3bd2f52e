"""How others are answered while what has expired is purged: a steady load, without and beside ``identity purge``."""

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from configparser import RawConfigParser
from dataclasses import dataclass, replace

from benchmarks.cases import Case
from benchmarks.installation import Installation, installed
from benchmarks.load import Answers, LoadFailed, Pace, keep_pace
from benchmarks.service import Setup

ROWS = 10_000_000
ASKED = ("userinfo", "introspection", "opaque")
PER_SECOND = 20
_SLICE = 5.0
#: How many slices without a purge there are at most before it, and as many after it: one for so many rows.
_ALONE, _ROWS_ALONE = 6, 10_000
_PATIENCE = 60.0
#: The service itself leaves to the command what has expired.
_KEPT = "identity.token_retention"
_WENT = re.compile(r"^ *(\d+)  access tokens$", re.MULTILINE)
_LONGEST = re.compile(r"The longest batch took (\d+) ms")


@dataclass(frozen=True)
class Latencies:
    """Of all answers to one case, in seconds."""

    count: int
    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, answers: Sequence[Answers]) -> "Latencies":
        """Those of several slices."""
        spans = sorted(span for one in answers for span in one.latencies)
        return cls(len(spans), statistics.median(spans), spans[int(len(spans) * 0.99)], spans[-1])


@dataclass(frozen=True)
class Purging:
    """What was found: each case without a purge and beside it; how many rows went in how many seconds.

    ``longest`` are the milliseconds that the longest batch took, as the purge itself tells. ``load`` is the machine's
    before: a single slow request may be due to anybody.
    """

    setup: Setup
    titles: Mapping[str, str]
    alone: Mapping[str, Latencies]
    beside: Mapping[str, Latencies]
    rows: int
    seconds: float
    longest: float
    load: float

    @property
    def longer(self) -> Mapping[str, float]:
        """By how many milliseconds the slowest answer was slower, by case."""
        return {name: (self.beside[name].most - self.alone[name].most) * 1e3 for name in self.titles}


def find(setup: Setup, pool: Executor, *, rows: int) -> Purging:
    """Fill, ask, purge meanwhile. Raises LoadFailed, NotServing, NoRoom."""
    load_before = os.getloadavg()[0]
    full = replace(setup, stored=rows, expired=True, settings=(*setup.settings, (_KEPT, "3650d")))
    with installed(full, pool) as installation:
        # What the filling wrote would otherwise go to the disk beside the first requests.
        os.sync()
        cases = [installation.cases[name] for name in ASKED]
        number = min(_ALONE, 1 + rows // _ROWS_ALONE)
        alone = [_slice(installation, cases, pool) for _ in range(number)]
        began, beside = time.monotonic(), []
        with _purge(installation) as purge:
            try:
                while purge.poll() is None:
                    beside.append(_slice(installation, cases, pool))
            finally:
                purge.terminate()
            said, span = purge.communicate()[0].decode(), time.monotonic() - began
        went, longest = _WENT.search(said), _LONGEST.search(said)
        if went is None or longest is None or purge.returncode:
            raise LoadFailed(f"the purge did not do its work: {said[-500:]}")
        alone += [_slice(installation, cases, pool) for _ in range(number)]
    return Purging(
        setup=setup,
        titles={case.name: case.title for case in cases},
        alone=_latencies(cases, alone),
        beside=_latencies(cases, beside),
        rows=int(went[1]),
        seconds=span,
        longest=float(longest[1]),
        load=load_before,
    )


def _slice(installation: Installation, cases: Sequence[Case], pool: Executor) -> list[Answers]:
    """What each case is answered for a while."""
    number, address = int(PER_SECOND * _SLICE) + 1, installation.place.address
    paces = [Pace(address, case.take(number), case.expected, PER_SECOND, _SLICE) for case in cases]
    return pool.submit(keep_pace, paces).result(timeout=_SLICE + _PATIENCE)


def _latencies(cases: Sequence[Case], slices: Sequence[Sequence[Answers]]) -> Mapping[str, Latencies]:
    return {case.name: Latencies.of(answers) for case, answers in zip(cases, zip(*slices, strict=True), strict=True)}


def _purge(installation: Installation) -> "subprocess.Popen[bytes]":
    """The command, under way in a process of its own."""
    place = installation.place
    ini = RawConfigParser()
    ini.optionxform = str  # type: ignore[assignment, method-assign]
    ini.read(place.ini, "utf-8")
    del ini["app:main"][_KEPT]
    other = place.ini.with_name("purge.ini")
    with other.open("w", encoding="utf-8") as file:
        ini.write(file)
    program = [sys.executable, "-c", "from identity.cli import main; raise SystemExit(main())"]
    return subprocess.Popen(
        [*program, "purge", "-c", str(other)],
        cwd=place.setup.checkout,
        env={**os.environ, "PYTHONPATH": str(place.setup.checkout)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )

"""The figures as tables for the terminal, and the verdict."""

import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Sequence

from benchmarks import growth as growths
from benchmarks import purging as purgings
from benchmarks import scaling as scalings
from benchmarks import sharing as sharings
from benchmarks.filling import PER_APPLICATION
from benchmarks.flood import Flood
from benchmarks.growth import Growth
from benchmarks.measuring import ROWS_PER_COMMIT, Sample, Units
from benchmarks.purging import Purging
from benchmarks.results import Result, Whole
from benchmarks.scaling import Scaling
from benchmarks.service import ROOT, Setup
from benchmarks.sharing import Sharing
from benchmarks.targets import Figure, Reading, target_of, verdict

_EXPLANATION = """\
R, the unit, is one RSA-2048 signature. cost: CPU time, user and system, of all processes of the service, and of
PostgreSQL's, per answer in R; median of {rounds} rounds, R measured before and after each. best: the cheapest round,
closest to a machine with nothing else to do; user: without the system's own work; tail: p99 as a multiple of p50. The
load generator has its own process, which is not counted. Waiting for the disk costs no CPU, but time."""


def text(result: Result) -> str:
    """The result for the terminal, the verdict in the end."""
    return "\n".join(_lines(result))


def _lines(result: Result) -> Iterator[str]:
    yield f"\nPython {platform.python_version()}, {os.cpu_count()} CPUs{_others(result)}"
    if result.units is not None:
        yield from _yardsticks(result.units, result.disk)
    for setup in result.titles:
        yield from _table(result, setup)
        yield from _whole(setup, result.wholes[setup])
    if result.titles:
        yield ""
        yield _EXPLANATION.format(rounds=result.rounds)
    for setup, flood in result.floods.items():
        yield from _flood(setup, flood)
    if result.sharing is not None:
        yield from _sharing(result.sharing)
    if result.growth is not None:
        yield from _growth(result.growth)
    if result.scaling is not None:
        yield from _scaling(result.scaling)
    if result.purging is not None:
        yield from _purging(result.purging)
    for note in result.notes:
        yield f"\n{note}"
    yield from _verdict(result)


def _others(result: Result) -> str:
    """How busy the machine was with other things, which makes everything cost more."""
    if not result.figures:
        return f", load {os.getloadavg()[0]:.1f}"
    share = statistics.median(sample.others for sample in result.figures.values())
    return f"; other programs took {share:.0%} of them meanwhile, which makes everything cost more"


def _yardsticks(units: Units, disk: float) -> Iterator[str]:
    yield (
        f"R = one RSA-2048 signature by {units.name}: openssl speed {_spread(units.openssl)},"
        f" cryptography {_spread(units.cryptography)}"
    )
    for rows in ROWS_PER_COMMIT if units.commits else ():
        one = units.commit(rows)
        named = "a row with its own commit" if rows == 1 else f"with {rows} rows to a commit, each"
        yield (
            f"{named:<32}{one.cpu * 1e6:5.0f} µs of CPU, {one.cpu / units.signature:.2f} R; {one.elapsed * 1e6:5.0f} µs"
            " on the clock"
        )
    yield f"{'4 KiB written and synced':<32}{'':32}{disk * 1e6:5.0f} µs"


def _table(result: Result, setup: Setup) -> Iterator[str]:
    """One row for each case, at the connections that are judged; the others stand beside."""
    judged, *beside = result.connections
    other = _other(result, setup)
    more = "".join(f"{f'{number} conn.:':>11}{'p50 ms':>7}" for number in beside)
    was = "" if other is None else f"{'there':>7}{'÷':>6}"
    yield f"\n{setup.title}"
    yield (
        f"{f'{judged} connections':<24}{'target':>8}{'cost':>7} {'':<7}{was}{'best':>6}{'user':>6}{'CPU µs':>8}"
        f"{'req/s':>8}{'p50 ms':>8}{'p99 ms':>8}{'tail':>6}{more}"
    )
    for name, title in result.titles[setup].items():
        sample = result.figures[setup, name, judged]
        target, word = _judged(Reading(Figure.COST, setup.server, setup.storage, name, sample.ratio), setup)
        best = f"{sample.best or 0:>6.2f}{sample.user_ratio:>6.2f}"
        if other is not None:
            there = result.figures[other, name, judged].ratio
            was = f"{there:>7.2f}{sample.ratio / there:>6.2f}"
        more = "".join(_beside(result.figures[setup, name, number]) for number in beside)
        yield (
            f"{title:<24}{target:>8}{sample.ratio:>7.2f} {word:<7}{was}{best}"
            f"{sample.cpu * 1e6:>8.0f}{sample.rate:>8.0f}{_latencies(sample)}{more}"
        ).rstrip()


def _other(result: Result, setup: Setup) -> Setup | None:
    """The same setup of the other checkout, if this one is ours."""
    same = (setup.server, setup.storage)
    others = (one for one in result.titles if one.checkout != ROOT and (one.server, one.storage) == same)
    return next(others, None) if setup.checkout == ROOT else None


def _judged(reading: Reading, setup: Setup) -> tuple[str, str]:
    target = target_of(reading) if setup.checkout == ROOT else None
    return ("", "") if target is None else (target.shown, "met" if target.met_by(reading) else "missed")


def _latencies(sample: Sample) -> str:
    """What is known of single requests: nothing for a sum."""
    if sample.p50 is None or sample.p99 is None or sample.tail is None:
        return " " * 22
    return f"{sample.p50 * 1e3:>8.2f}{sample.p99 * 1e3:>8.2f}{sample.tail:>6.1f}"


def _beside(sample: Sample) -> str:
    return f"{sample.ratio:>11.2f}" + (" " * 7 if sample.p50 is None else f"{sample.p50 * 1e3:>7.2f}")


_WHOLE = {
    Figure.MEMORY: ("MB in memory after the load", 0),
    Figure.MEMORY_AT_START: ("after the start", 0),
    Figure.WORKER: ("MB of the first worker", 0),
    Figure.PRIVATE: ("MB of each more, at most", 0),
    Figure.START: ("CPU s until first answer", 2),
}


def _whole(setup: Setup, whole: Whole) -> Iterator[str]:
    for figure, value in whole.figures.items():
        title, digits = _WHOLE[figure]
        target, word = _judged(Reading(figure, setup.server, setup.storage, "", value), setup)
        more = f"  ({', '.join(f'{one:.2f}' for one in whole.starts)})" if figure is Figure.START else ""
        yield f"{title:<28}{target:>8}{value:>7.{digits}f} {word}{more}"


def _flood(setup: Setup, flood: Flood) -> Iterator[str]:
    """How others were answered during a flood of logins."""
    said = ", ".join(f"{count} with {status}" for status, count in sorted(flood.answers.items()))
    yield (
        f"\nflood of logins, {setup.title}: {flood.connections} connections, {flood.rate:.0f} wrong passwords a second;"
        f" {said} (422 refused, 503 shed); load before {flood.load:.1f}"
    )
    yield (
        f"{f'{flood.per_second} requests/s each':<24}{'target':>8}{'ratio':>7} {'':<7}"
        f"{'p95 ms: idle':>14}{'flood':>8}{'p50 ms: idle':>15}{'flood':>8}"
    )
    for name, title in flood.titles.items():
        idle, busy, ratio = flood.idle[name], flood.busy[name], flood.ratios[name]
        target, word = _judged(Reading(Figure.FLOOD, setup.server, setup.storage, name, ratio), setup)
        yield (
            f"{title:<24}{target:>8}{ratio:>7.2f} {word:<7}"
            f"{idle.p95 * 1e3:>14.2f}{busy.p95 * 1e3:>8.2f}{idle.p50 * 1e3:>15.2f}{busy.p50 * 1e3:>8.2f}"
        )


def _sharing(sharing: Sharing) -> Iterator[str]:
    setup, other = sharing.setup, sharing.other
    slow = f"each fsync {sharing.delay:g} ms more"
    yield f"\ncommits on a slow disk, {slow}, {setup.title}; there: {_difference(setup, other)}"
    yield (
        f"{f'{sharings.CONNECTIONS} connections':<24}{'target':>8}{'times':>7} {'':<7}{'req/s':>8}{'there':>8}"
        f"{'p50 ms':>8}{'there':>8}{'cost':>7}{'there':>8}"
    )
    for name, title in sharing.titles.items():
        here, apart = sharing.shared[name], sharing.apart[name]
        gain = sharing.gains[name]
        target, word = _judged(Reading(Figure.SHARED, setup.server, setup.storage, name, gain), setup)
        yield (
            f"{title:<24}{target:>8}{gain:>7.2f} {word:<7}{here.rate:>8.0f}{apart.rate:>8.0f}"
            f"{(here.p50 or 0) * 1e3:>8.2f}{(apart.p50 or 0) * 1e3:>8.2f}{here.ratio:>7.2f}{apart.ratio:>8.2f}"
        )


def _growth(growth: Growth) -> Iterator[str]:
    setup = growth.setup
    before = f"{growths.SMALL:,} and {growths.SMALL // PER_APPLICATION:,}"
    yield f"\n{setup.title}, {growth.tokens:,} tokens and {growth.applications:,} applications stored; before: {before}"
    yield (
        f"{f'{growths.CONNECTIONS} connections':<24}{'target':>8}{'times':>7} {'':<7}{'cost':>7}{'before':>8}"
        f"{'p50 ms':>8}{'before':>8}"
    )
    for name, title in growth.titles.items():
        large, small, ratio = growth.large[name], growth.small[name], growth.ratios[name]
        target, word = _judged(Reading(Figure.GROWTH, setup.server, setup.storage, name, ratio), setup)
        yield (
            f"{title:<24}{target:>8}{ratio:>7.2f} {word:<7}{large.ratio:>7.2f}{small.ratio:>8.2f}"
            f"{(large.p50 or 0) * 1e3:>8.2f}{(small.p50 or 0) * 1e3:>8.2f}"
        )


def _scaling(scaling: Scaling) -> Iterator[str]:
    setup = scaling.setup
    yield f"\n{setup.title}; each worker has {scalings.SHARE:.0%} of a processor; before: one worker"
    yield (
        f"{f'{scalings.CONNECTIONS} connections':<24}{'target':>8}{'times':>7} {'':<7}{'req/s':>8}{'before':>8}"
        f"{'cost':>7}{'before':>8}"
    )
    for name, title in scaling.titles.items():
        several, one, gain = scaling.several[name], scaling.one[name], scaling.gains[name]
        target, word = _judged(Reading(Figure.SCALING, setup.server, setup.storage, name, gain), setup)
        yield (
            f"{title:<24}{target:>8}{gain:>7.2f} {word:<7}{several.rate:>8.0f}{one.rate:>8.0f}"
            f"{several.ratio:>7.2f}{one.ratio:>8.2f}"
        )


def _purging(purging: Purging) -> Iterator[str]:
    setup = purging.setup
    yield (
        f"\n{setup.title}; {purging.rows:,} tokens purged in {purging.seconds:.0f} s,"
        f" {purging.rows / purging.seconds:.0f} a second; load before {purging.load:.1f}"
    )
    target, word = _judged(Reading(Figure.BATCH, setup.server, setup.storage, "", purging.longest), setup)
    yield f"{'ms of the longest batch':<24}{target:>8}{purging.longest:>7.0f} {word}"
    yield (
        f"{f'{purgings.PER_SECOND} requests/s each':<24}{'target':>8}{'ms':>7} {'':<7}"
        f"{'most ms: purge':>15}{'none':>8}{'p99 ms: purge':>15}{'none':>8}{'p50 ms: purge':>15}{'none':>8}"
    )
    for name, title in purging.titles.items():
        beside, alone, longer = purging.beside[name], purging.alone[name], purging.longer[name]
        target, word = _judged(Reading(Figure.PURGE, setup.server, setup.storage, name, longer), setup)
        pairs = ((beside.most, alone.most), (beside.p99, alone.p99), (beside.p50, alone.p50))
        yield f"{title:<24}{target:>8}{longer:>7.0f} {word:<7}" + "".join(
            f"{one * 1e3:>15.1f}{other * 1e3:>8.1f}" for one, other in pairs
        )


def _difference(setup: Setup, other: Setup) -> str:
    settings = [f"{name} = {value}" for name, value in other.settings]
    return ", ".join([*settings, str(other.checkout)] if other.checkout != setup.checkout else settings)


def _verdict(result: Result) -> Iterator[str]:
    held, missed = verdict(result.readings())
    if not held and not missed:
        return
    yield f"\nverdict: {len(held)} of {len(held) + len(missed)} targets hold" + (". Missed:" if missed else ".")
    for reading in missed:
        target = target_of(reading)
        wanted = "" if target is None else target.shown
        place = f"{reading.server}, {reading.storage}"
        yield f"  {place:<24}{reading.figure.value:<24}{result.title(reading.case):<26}{reading.value:>8.2f}{wanted:>8}"


def _spread(seconds: Iterable[float | None]) -> str:
    known: Sequence[float] = sorted(one * 1e6 for one in seconds if one is not None)
    if not known:
        return "not there"
    return f"{statistics.median(known):.0f} µs ({known[0]:.0f} to {known[-1]:.0f})"

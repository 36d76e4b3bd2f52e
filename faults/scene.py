"""One service with its database under load, and what comes out of one fault."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.client import PATIENCE, Client, Kind, Tally
from faults.databases import Database
from faults.ledger import Ledger, NoAnswer, Verdict
from faults.load import under_load
from faults.nodes import Nodes
from faults.stock import Stock

#: What the service has after the cause's end, in seconds (issue: "recovery within 5 s of the cause's end").
RECOVERY = 5.0
#: Before it happens so many requests have been answered rightly; on a busy machine it takes longer, to be bounded.
_ENOUGH, _BEFORE, _MOST_BEFORE = 150, 1.0, 20.0
#: And so many where these are the measure of what comes.
_ENOUGH_TO_COMPARE = 600
#: How many seconds one of a hundred requests, and the slowest, may wait beyond twice what one of a hundred waited
#: before: what makes them wait is at work too, on a machine with two cores.
_MORE_OFTEN, _MORE_ONCE = 0.1, 0.5
#: So long all has to be well after the end, and so long it is looked for at most.
_CALM, _MOST = 2.0, 40.0


@dataclass(frozen=True)
class Scene:
    """Where a fault happens. ``start_span`` is how many seconds a node took to start when all was well."""

    database: Database
    nodes: Nodes
    stock: Stock
    start_span: float
    #: Seconds that a fault lasts, where it lasts at all.
    span: float
    #: How many expired tokens are purged.
    expired: int = 0


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: ``happens`` returns when its cause has ended.

    ``bites``: clients must meet one of these answers at least, or it was not there; faults without them show by
    themselves that they were. ``is_quiet``: no client may notice anything. ``is_compared``: nor may anybody wait longer
    than before, as far as this can be measured.
    ``prepares``: what is done before, while nobody asks the service anything.
    ``starts_nodes``: the cause has ended when nodes that were started again serve, however long a busy machine takes.
    ``restored`` returns when the service has started anew by itself what was lost; until then it has not recovered.
    ``kills``: it ends what answers, with no time to end an answer, so that half an answer is all that some get.
    ``fitting`` are words of requests, and statuses that are right for these while the fault lasts.
    ``reads_on``: introspection may be away for a moment only.
    ``everywhere``: how it ends is up to the database, so that a quick run tries it on each, too.
    """

    name: str
    title: str
    happens: Callable[[Scene], None]
    storages: Collection[str] = ("sqlite", "postgresql", "mariadb")
    bites: Collection[Kind] = ()
    is_quiet: bool = False
    is_compared: bool = False
    prepares: Callable[[Scene], None] | None = None
    starts_nodes: bool = False
    restored: Callable[[Scene], None] | None = None
    kills: bool = False
    fitting: Collection[tuple[str, int]] = ()
    reads_on: bool = False
    everywhere: bool = False
    #: How many megabytes its database's disk has, if it is to be a small one.
    disk: int | None = None
    environment: Callable[[Path], dict[str, str]] | None = None
    #: How many processes the service has, and how many workers each of them has.
    nodes: int = 2
    workers: int = 1
    allowance: float = RECOVERY
    #: How many seconds the slowest request may take.
    slowest: float = PATIENCE

    @property
    def place(self) -> tuple[object, ...]:
        """What the service has to be like: faults that are alike in it can share one."""
        return self.disk, self.environment, self.nodes, self.workers


@dataclass(frozen=True)
class Report:
    """What came of a fault."""

    fault: Fault
    storage: str
    requests: int = 0
    kinds: dict[Kind, int] = field(default_factory=dict)
    recovery: float = 0.0
    allowed: float = 0.0
    slowest: float = 0.0
    checked: int = 0
    lost: Sequence[str] = ()
    doubled: Sequence[str] = ()
    offences: Sequence[str] = ()
    silence: float = 0.0
    skipped: str = ""

    @property
    def is_good(self) -> bool:
        """True if nothing has to be mended."""
        on_time = self.recovery <= self.allowed and self.slowest <= self.fault.slowest
        return on_time and not (self.lost or self.doubled or self.offences)


def tried(fault: Fault, scene: Scene, mended: Callable[[Scene], None] | None = None) -> Report:
    """Let it happen under load, and ask for everything that was acknowledged.

    ``mended`` returns when what was lost is there again; then all of it is asked for once more.
    """
    tolerated = {Kind.CUT: fault.kills, Kind.FITTING: bool(fault.fitting)}
    tally = Tally([kind for kind, is_so in tolerated.items() if is_so])
    ledger, nodes = Ledger(scene.database.staleness, keeps_time=not fault.fitting), scene.nodes
    if fault.prepares is not None:
        fault.prepares(scene)
    with under_load(scene.stock, nodes.ports, nodes.host, tally, ledger, fault.fitting):
        _wait_for(_ENOUGH, tally)
        if fault.is_compared:
            # The first requests load what all others have.
            tally.before.clear()
            _wait_for(_ENOUGH_TO_COMPARE, tally)
        problems = list(tally.offences)
        before = Counter(tally.kinds)
        ledger.mark()
        tally.begin()
        fault.happens(scene)
        if fault.starts_nodes:
            nodes.wait_until_serving()
        ended = tally.end()
        ledger.mark()
        if fault.restored is not None:
            fault.restored(scene)
        restored = time.monotonic() - ended
        while time.monotonic() < ended + _MOST:
            time.sleep(0.1)
            if time.monotonic() > ended + tally.failing_since(ended) + _CALM:
                break
    problems += [one for one in tally.offences if one not in problems]
    verdicts = [_judged(scene, ledger)]
    if mended is not None:
        mended(scene)
        verdicts.append(_judged(scene, ledger))
    if None in verdicts:
        problems.append("it has not recovered")
    met = tally.kinds - before
    if fault.is_quiet and met.total() > met[Kind.RIGHT]:
        problems.append("clients have noticed")
    if fault.bites and not any(met[kind] for kind in fault.bites):
        problems.append(f"nobody has noticed: no {' or '.join(fault.bites)}")
    if fault.is_compared:
        problems += longer(tally.before, tally.since)
    if fault.reads_on and ledger.silence > RECOVERY:
        problems.append(f"for {ledger.silence:.1f} s nobody could learn that a token is active")
    found = [verdict or Verdict() for verdict in verdicts]
    return Report(
        fault=fault,
        storage=scene.database.name,
        requests=tally.requests,
        kinds=dict(tally.kinds),
        recovery=max(tally.failing_since(ended), restored if fault.restored else 0.0),
        # On a machine that is so busy that a start takes long, another one does, too.
        allowed=max(fault.allowance, 2 * scene.start_span) if fault.restored else fault.allowance,
        slowest=tally.slowest,
        checked=sum(verdict.checked for verdict in found),
        lost=[one for verdict in found for one in verdict.lost],
        doubled=[one for verdict in found for one in verdict.doubled],
        offences=problems,
        silence=ledger.silence,
    )


def longer(before: Sequence[float], since: Sequence[float]) -> Sequence[str]:
    """What there is to say if requests took longer than they had before."""
    was = 2 * _at(before, 0.99)
    limits = {
        "one of a hundred requests": (_at(since, 0.99), was + _MORE_OFTEN),
        "the slowest request": (_at(since, 1.0), was + _MORE_ONCE),
    }
    return [
        f"{what} took {seconds:.2f} s, and by what it was before {limit:.2f} s are allowed"
        for what, (seconds, limit) in limits.items()
        if seconds > limit
    ]


def _at(seconds: Sequence[float], part: float) -> float:
    """What this part of all does not exceed."""
    return sorted(seconds)[min(len(seconds) - 1, int(part * len(seconds)))] if seconds else 0.0


def _wait_for(requests: int, tally: Tally) -> None:
    began = time.monotonic()
    time.sleep(_BEFORE)
    while tally.kinds[Kind.RIGHT] < requests and time.monotonic() < began + _MOST_BEFORE:
        time.sleep(0.05)


def _judged(scene: Scene, ledger: Ledger) -> Verdict | None:
    """What the ledger says to what each node answers; None if they do not."""
    # Each node has to know all of it.
    client = Client(scene.nodes.ports, scene.nodes.host, Tally(), stays=1)
    try:
        return ledger.judge(scene.stock, client)
    except NoAnswer:
        return None
    finally:
        client.close()

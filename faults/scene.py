"""One service with its database under load, and what comes out of one fault."""

import time
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

    ``starts_nodes``: the cause has ended when nodes that were started again serve, however long a busy machine takes.
    ``fitting`` are statuses that are right while the fault lasts. ``is_quiet``: no client may notice anything.
    ``reads_on``: introspection may be away for a moment only.
    ``everywhere``: how it ends is up to the database, so that a quick run tries it on each, too.
    """

    name: str
    title: str
    happens: Callable[[Scene], None]
    storages: Collection[str] = ("sqlite", "postgresql", "mariadb")
    starts_nodes: bool = False
    fitting: Collection[int] = ()
    is_quiet: bool = False
    reads_on: bool = False
    everywhere: bool = False
    #: How many megabytes its database's disk has, if it is to be a small one.
    disk: int | None = None
    environment: Callable[[Path], dict[str, str]] | None = None
    #: How many processes the service has, and how many workers each of them supervises, if any.
    nodes: int = 2
    workers: int = 0
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


def tried(fault: Fault, scene: Scene) -> Report:
    """Let it happen under load, and ask for everything that was acknowledged."""
    tally, ledger, nodes = Tally(), Ledger(scene.database.staleness), scene.nodes
    with under_load(scene.stock, nodes.ports, nodes.host, tally, ledger, fault.fitting):
        _wait_for_enough(tally)
        problems = list(tally.offences)
        fault.happens(scene)
        if fault.starts_nodes:
            nodes.wait_until_serving()
        ended = time.monotonic()
        while time.monotonic() < ended + _MOST:
            time.sleep(0.1)
            if time.monotonic() > ended + tally.failing_since(ended) + _CALM:
                break
    problems += [one for one in tally.offences if one not in problems]
    verdict = _judged(scene, ledger)
    if verdict is None:
        problems.append("it has not recovered")
    if fault.is_quiet and tally.kinds[Kind.BUSY] + tally.kinds[Kind.REFUSED]:
        problems.append("clients have noticed")
    if fault.reads_on and ledger.silence > RECOVERY:
        problems.append(f"for {ledger.silence:.1f} s nobody could learn that a token is active")
    verdict = verdict or Verdict()
    return Report(
        fault=fault,
        storage=scene.database.name,
        requests=tally.requests,
        kinds=dict(tally.kinds),
        recovery=tally.failing_since(ended),
        allowed=fault.allowance,
        slowest=tally.slowest,
        checked=verdict.checked,
        lost=verdict.lost,
        doubled=verdict.doubled,
        offences=problems,
        silence=ledger.silence,
    )


def _wait_for_enough(tally: Tally) -> None:
    began = time.monotonic()
    time.sleep(_BEFORE)
    while tally.kinds[Kind.RIGHT] < _ENOUGH and time.monotonic() < began + _MOST_BEFORE:
        time.sleep(0.05)


def _judged(scene: Scene, ledger: Ledger) -> Verdict | None:
    # Each node has to know all of it.
    client = Client(scene.nodes.ports, scene.nodes.host, Tally(), in_turn=True)
    try:
        return ledger.judge(scene.stock, client)
    except NoAnswer:
        return None
    finally:
        client.close()

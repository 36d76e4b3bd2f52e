"""One service with its database under load, and what comes out of one fault."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.database import FaultDatabase
from faults.http_client import TIMEOUT_SECONDS, FailoverClient, ResponseClass, ResponseTally
from faults.ledger import Ledger, LedgerFindings, NotRecovered
from faults.mixed_load import run_mixed_load
from faults.seed_data import SeedData
from faults.service_nodes import ServiceNodes

#: What the service has after the cause's end, in seconds (issue: "recovery within 5 s of the cause's end").
RECOVERY_LIMIT = 5.0
#: Before it happens so many requests have been answered rightly; on a busy machine it takes longer, to be bounded.
_MIN_REQUESTS_BEFORE, _BEFORE, _MAX_SECONDS_BEFORE = 150, 1.0, 20.0
#: And so many where these are the measure of what comes.
_MIN_REQUESTS_TO_COMPARE = 600
#: How many seconds one of a hundred requests, and the slowest, may wait beyond twice what one of a hundred waited
#: before: what makes them wait is at work too, on a machine with two cores.
_MORE_OFTEN, _MORE_ONCE = 0.1, 0.5
#: So long all has to be well after the end, and so long it is looked for at most.
_CALM_SECONDS, _MAX_RECOVERY_WAIT = 2.0, 40.0


@dataclass(frozen=True)
class FaultEnvironment:
    """Where a fault happens. ``start_seconds`` is how many seconds a node took to start when all was well."""

    database: FaultDatabase
    nodes: ServiceNodes
    stock: SeedData
    start_seconds: float
    #: Seconds that a fault lasts, where it lasts at all.
    fault_seconds: float
    #: How many expired tokens are purged.
    expired_tokens: int = 0


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: ``inject`` returns when its cause has ended.

    ``expected_classes``: clients must meet one of these answers at least, or it was not there; faults without them show
    by themselves that they were. ``is_quiet``: no client may notice anything. ``is_compared``: nor may anybody wait
    longer than before, as far as this can be measured. ``prepare``: what is done before, while nobody asks the service
    anything. ``starts_nodes``: the cause has ended when nodes that were started again serve, however long a busy
    machine takes. ``wait_until_restored`` returns when the service has started anew by itself what was lost; until then
    it has not recovered. ``kills_processes``: it ends what answers, with no time to end an answer, so that half an
    answer is all that some get. ``tolerated_statuses`` are words of requests, and statuses that are right for these
    while the fault lasts. ``keeps_reads_available``: introspection may be away for a moment only.
    ``is_quick_on_all_storages``: how it ends is up to the database, so that a quick run tries it on each, too.
    """

    name: str
    title: str
    inject: Callable[[FaultEnvironment], None]
    storages: Collection[str] = ("sqlite", "postgresql", "mariadb")
    expected_classes: Collection[ResponseClass] = ()
    is_quiet: bool = False
    is_compared: bool = False
    prepare: Callable[[FaultEnvironment], None] | None = None
    starts_nodes: bool = False
    wait_until_restored: Callable[[FaultEnvironment], None] | None = None
    kills_processes: bool = False
    tolerated_statuses: Collection[tuple[str, int]] = ()
    keeps_reads_available: bool = False
    is_quick_on_all_storages: bool = False
    #: How many megabytes its database's disk has, if it is to be a small one.
    disk_megabytes: int | None = None
    environment: Callable[[Path], dict[str, str]] | None = None
    #: How many processes the service has, and how many workers each of them has.
    nodes: int = 2
    workers: int = 1
    recovery_limit: float = RECOVERY_LIMIT
    #: How many seconds the slowest request may take.
    max_latency: float = TIMEOUT_SECONDS

    @property
    def environment_key(self) -> tuple[object, ...]:
        """What the service has to be like: faults that are alike in it can share one."""
        return self.disk_megabytes, self.environment, self.nodes, self.workers


@dataclass(frozen=True)
class FaultReport:
    """What came of a fault."""

    fault: Fault
    storage: str
    requests: int = 0
    counts: dict[ResponseClass, int] = field(default_factory=dict)
    recovery: float = 0.0
    allowed: float = 0.0
    slowest: float = 0.0
    checked: int = 0
    lost: Sequence[str] = ()
    duplicated: Sequence[str] = ()
    violations: Sequence[str] = ()
    silence: float = 0.0
    skipped: str = ""

    @property
    def is_passed(self) -> bool:
        """True if nothing has to be mended."""
        on_time = self.recovery <= self.allowed and self.slowest <= self.fault.max_latency
        return on_time and not (self.lost or self.duplicated or self.violations)


def run_fault(
    fault: Fault, scene: FaultEnvironment, mended: Callable[[FaultEnvironment], None] | None = None
) -> FaultReport:
    """Let it happen under load, and ask for everything that was acknowledged.

    ``mended`` returns when what was lost is there again; then all of it is asked for once more.
    """
    tolerated = {ResponseClass.CUT: fault.kills_processes, ResponseClass.FITTING: bool(fault.tolerated_statuses)}
    tally = ResponseTally([kind for kind, is_so in tolerated.items() if is_so])
    ledger, nodes = Ledger(scene.database.staleness, keeps_time=not fault.tolerated_statuses), scene.nodes
    if fault.prepare is not None:
        fault.prepare(scene)
    with run_mixed_load(scene.stock, nodes.ports, nodes.host, tally, ledger, fault.tolerated_statuses):
        _wait_for(_MIN_REQUESTS_BEFORE, tally)
        if fault.is_compared:
            # The first requests load what all others have.
            tally.before.clear()
            _wait_for(_MIN_REQUESTS_TO_COMPARE, tally)
        problems = list(tally.violations)
        before = Counter(tally.counts)
        ledger.mark_phase()
        tally.mark_fault_start()
        fault.inject(scene)
        if fault.starts_nodes:
            nodes.wait_until_serving()
        ended = tally.mark_fault_end()
        ledger.mark_phase()
        if fault.wait_until_restored is not None:
            fault.wait_until_restored(scene)
        restored = time.monotonic() - ended
        while time.monotonic() < ended + _MAX_RECOVERY_WAIT:
            time.sleep(0.1)
            if time.monotonic() > ended + tally.failing_since(ended) + _CALM_SECONDS:
                break
    problems += [violation for violation in tally.violations if violation not in problems]
    findings = [_verify_on_all_nodes(scene, ledger)]
    if mended is not None:
        mended(scene)
        findings.append(_verify_on_all_nodes(scene, ledger))
    if None in findings:
        problems.append("it has not recovered")
    met = tally.counts - before
    if fault.is_quiet and met.total() > met[ResponseClass.RIGHT]:
        problems.append("clients have noticed")
    if fault.expected_classes and not any(met[kind] for kind in fault.expected_classes):
        problems.append(f"nobody has noticed: no {' or '.join(fault.expected_classes)}")
    if fault.is_compared:
        problems += latency_violation(tally.before, tally.since)
    if fault.keeps_reads_available and ledger.silence > RECOVERY_LIMIT:
        problems.append(f"for {ledger.silence:.1f} s nobody could learn that a token is active")
    all_findings = [finding or LedgerFindings() for finding in findings]
    return FaultReport(
        fault=fault,
        storage=scene.database.name,
        requests=tally.requests,
        counts=dict(tally.counts),
        recovery=max(tally.failing_since(ended), restored if fault.wait_until_restored else 0.0),
        # On a machine that is so busy that a start takes long, another one does, too.
        allowed=max(fault.recovery_limit, 2 * scene.start_seconds)
        if fault.wait_until_restored
        else fault.recovery_limit,
        slowest=tally.slowest,
        checked=sum(finding.checked for finding in all_findings),
        lost=[item for finding in all_findings for item in finding.lost],
        duplicated=[item for finding in all_findings for item in finding.duplicated],
        violations=problems,
        silence=ledger.silence,
    )


def latency_violation(before: Sequence[float], since: Sequence[float]) -> Sequence[str]:
    """What there is to say if requests took longer than they had before."""
    was = 2 * _percentile(before, 0.99)
    limits = {
        "one of a hundred requests": (_percentile(since, 0.99), was + _MORE_OFTEN),
        "the slowest request": (_percentile(since, 1.0), was + _MORE_ONCE),
    }
    return [
        f"{label} took {seconds:.2f} s, and by what it was before {limit:.2f} s are allowed"
        for label, (seconds, limit) in limits.items()
        if seconds > limit
    ]


def _percentile(seconds: Sequence[float], part: float) -> float:
    """What this part of all does not exceed."""
    return sorted(seconds)[min(len(seconds) - 1, int(part * len(seconds)))] if seconds else 0.0


def _wait_for(requests: int, tally: ResponseTally) -> None:
    began = time.monotonic()
    time.sleep(_BEFORE)
    while tally.counts[ResponseClass.RIGHT] < requests and time.monotonic() < began + _MAX_SECONDS_BEFORE:
        time.sleep(0.05)


def _verify_on_all_nodes(scene: FaultEnvironment, ledger: Ledger) -> LedgerFindings | None:
    """What the ledger says to what each node answers; None if they do not."""
    # Each node has to know all of it.
    client = FailoverClient(scene.nodes.ports, scene.nodes.host, ResponseTally(), stays=1)
    try:
        return ledger.verify(scene.stock, client)
    except NotRecovered:
        return None
    finally:
        client.close()

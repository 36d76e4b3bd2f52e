"""Runs a service with its database under load, and reports the outcome of one fault."""

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

#: Seconds within which the service has to recover after the end of the fault.
RECOVERY_LIMIT = 5.0
#: Number of successful requests before the fault, and minimum and maximum seconds for them on a busy machine.
_MIN_REQUESTS_BEFORE, _BEFORE, _MAX_SECONDS_BEFORE = 150, 1.0, 20.0
#: Number of requests needed for a latency comparison.
_MIN_REQUESTS_TO_COMPARE = 600
#: Seconds by which the 99th percentile and the slowest request may exceed twice the 99th percentile from before: the
#: cause of a fault itself uses CPU, on a machine with two cores.
_MORE_OFTEN, _MORE_ONCE = 0.1, 0.5
#: Seconds without errors that count as recovered, and maximum seconds of waiting for them.
_CALM_SECONDS, _MAX_RECOVERY_WAIT = 2.0, 40.0


@dataclass(frozen=True)
class FaultEnvironment:
    """The environment of a fault. ``start_seconds`` is how long a node took to start without faults."""

    database: FaultDatabase
    nodes: ServiceNodes
    stock: SeedData
    start_seconds: float
    #: Duration of a fault in seconds, if it has one.
    fault_seconds: float
    #: Number of expired tokens to purge.
    expired_tokens: int = 0


@dataclass(frozen=True)
class Fault:
    """A fault: ``inject`` returns when its cause has ended.

    ``expected_classes``: clients must get at least one of these responses, or the fault had no effect; faults
    without them verify that themselves. ``is_quiet``: no client may notice anything. ``is_compared``: latencies may
    not increase either, as far as that can be measured. ``prepare``: runs before, without load. ``starts_nodes``:
    the cause ends when restarted nodes serve, however long that takes on a busy machine. ``wait_until_restored``
    returns when the service has restarted what was lost; until then it has not recovered. ``kills_processes``: it
    kills serving processes, so that some clients get only part of a response. ``tolerated_statuses`` are parts of
    requests, and statuses allowed for them during the fault. ``keeps_reads_available``: introspection may fail only
    for a moment. ``is_quick_on_all_storages``: the outcome depends on the database, so that a quick run tries it on
    each, too.
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
    #: Megabytes of its database's disk, if it has to be small.
    disk_megabytes: int | None = None
    environment: Callable[[Path], dict[str, str]] | None = None
    #: Number of processes of the service, and of workers per process.
    nodes: int = 2
    workers: int = 1
    recovery_limit: float = RECOVERY_LIMIT
    #: Maximum seconds of the slowest request.
    max_latency: float = TIMEOUT_SECONDS

    @property
    def environment_key(self) -> tuple[object, ...]:
        """Requirements on the service: faults with equal ones share an environment."""
        return self.disk_megabytes, self.environment, self.nodes, self.workers


@dataclass(frozen=True)
class FaultReport:
    """The outcome of a fault."""

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
        """True if nothing failed."""
        on_time = self.recovery <= self.allowed and self.slowest <= self.fault.max_latency
        return on_time and not (self.lost or self.duplicated or self.violations)


def run_fault(
    fault: Fault, scene: FaultEnvironment, mended: Callable[[FaultEnvironment], None] | None = None
) -> FaultReport:
    """Inject the fault under load, and verify everything acknowledged.

    ``wait_until_restored`` returns when everything lost is back; then everything is verified again.
    """
    tolerated = {ResponseClass.CUT: fault.kills_processes, ResponseClass.FITTING: bool(fault.tolerated_statuses)}
    tally = ResponseTally([kind for kind, is_so in tolerated.items() if is_so])
    ledger, nodes = Ledger(scene.database.staleness, keeps_time=not fault.tolerated_statuses), scene.nodes
    if fault.prepare is not None:
        fault.prepare(scene)
    with run_mixed_load(scene.stock, nodes.ports, nodes.host, tally, ledger, fault.tolerated_statuses):
        _wait_for(_MIN_REQUESTS_BEFORE, tally)
        if fault.is_compared:
            # The first requests also load modules and caches.
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
        # On a machine that is so busy that starts take long, recovery does, too.
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
    """Violations if requests took longer than before."""
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
    """The percentile of these durations."""
    return sorted(seconds)[min(len(seconds) - 1, int(part * len(seconds)))] if seconds else 0.0


def _wait_for(requests: int, tally: ResponseTally) -> None:
    began = time.monotonic()
    time.sleep(_BEFORE)
    while tally.counts[ResponseClass.RIGHT] < requests and time.monotonic() < began + _MAX_SECONDS_BEFORE:
        time.sleep(0.05)


def _verify_on_all_nodes(scene: FaultEnvironment, ledger: Ledger) -> LedgerFindings | None:
    """Verify the ledger on each node; None if they do not respond."""
    # Each node has to know everything.
    client = FailoverClient(scene.nodes.ports, scene.nodes.host, ResponseTally(), stays=1)
    try:
        return ledger.verify(scene.stock, client)
    except NotRecovered:
        return None
    finally:
        client.close()

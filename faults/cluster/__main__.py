"""Lose servers of a Patroni cluster under load, in each possible way: `make cluster`."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from faults.cluster.patroni_cluster import NAMES, PATRONI_LOOP_WAIT, PATRONI_TTL, PatroniCluster, create_cluster
from faults.database import FaultUnavailable
from faults.fault_run import Fault, FaultEnvironment, FaultReport, run_fault
from faults.http_client import ResponseClass
from faults.report import format_reports, list_failures
from faults.seed_data import create_seed_data
from faults.service_nodes import create_nodes, exit_on_sigterm


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all faults passed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m faults.cluster", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=[fault.name for fault in _FAULTS])
    options = parser.parse_args(arguments)
    exit_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="identity-cluster-"))
    folder.chmod(0o755)
    try:
        reports = _run_faults(
            folder,
            [fault for fault in _FAULTS if options.only is None or fault.name in options.only],
        )
    except FaultUnavailable as reason:
        print(f"The cluster cannot be played here: {reason}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(format_reports(reports))
    return 0 if all(report.is_passed for report in reports) else 1


def _run_faults(folder: Path, faults: Sequence[Fault]) -> list[FaultReport]:
    began = time.monotonic()
    path = folder / "service"
    path.mkdir(mode=0o700)
    reports = []
    with create_cluster(folder) as cluster, create_nodes(path, cluster, 2, {}) as nodes:
        stock = create_seed_data(nodes[0].ini)
        scene = FaultEnvironment(cluster, nodes, stock, nodes.start(), 3.0)
        _print_progress(f"three servers under Patroni, {time.monotonic() - began:.0f} s")
        for fault in faults:
            cluster.start_seconds = 0.0
            report = run_fault(fault, scene, _restore_machines)
            reports.append(report)
            _print_progress(
                f"{fault.title}: {'well' if report.is_passed else 'NOT WELL'}; "
                f"Patroni took {cluster.start_seconds:.1f} s, introspection was away for {report.silence:.1f} s at most"
            )
            for line in list_failures(report):
                _print_progress(line)
    return reports


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _restore_machines(scene: FaultEnvironment) -> None:
    """Restart or reconnect the machine, and wait until it has caught up."""
    cluster = scene.database
    assert isinstance(cluster, PatroniCluster)  # noqa: S101 - there is no other here
    for name in NAMES:
        machine = cluster.machine(name)
        machine.connect()
        if not machine.is_running:
            cluster.start_machine(name)
    cluster.wait_until_healthy()


def _find_cluster(scene: FaultEnvironment) -> tuple[PatroniCluster, str]:
    cluster = scene.database
    assert isinstance(cluster, PatroniCluster)  # noqa: S101 - there is no other here
    primary = cluster.primary()
    assert primary is not None  # noqa: S101 - it was whole
    return cluster, primary


def _kill_primary(scene: FaultEnvironment) -> None:
    cluster, primary = _find_cluster(scene)
    cluster.machine(primary).kill()
    cluster.wait_for_primary(other_than=primary)


def _isolate_primary(scene: FaultEnvironment) -> None:
    cluster, primary = _find_cluster(scene)
    cluster.machine(primary).disconnect()
    cluster.wait_for_primary(other_than=primary)


def _switch_over(scene: FaultEnvironment) -> None:
    cluster, _ = _find_cluster(scene)
    cluster.switch_over()


def _kill_standby(scene: FaultEnvironment) -> None:
    """Commits wait for the lost standby until Patroni has promoted the other one to synchronous."""
    cluster, _ = _find_cluster(scene)
    standby = cluster.synchronous_standby()
    assert standby is not None  # noqa: S101 - it was whole
    cluster.machine(standby).kill()
    began = time.monotonic()
    while (
        cluster.synchronous_standby() in (None, standby) and time.monotonic() < began + PATRONI_TTL + PATRONI_LOOP_WAIT
    ):
        time.sleep(0.2)
    cluster.start_seconds = time.monotonic() - began


_BUSY_ONLY = (ResponseClass.BUSY,)
_FAULTS = (
    Fault(
        "switchover", "the operator has a standby take over", _switch_over, max_latency=15.0, keeps_reads_available=True
    ),
    Fault("standby", "the synchronous standby is killed", _kill_standby, max_latency=15.0, keeps_reads_available=True),
    Fault(
        "killed",
        "the primary's machine is killed",
        _kill_primary,
        expected_classes=_BUSY_ONLY,
        max_latency=15.0,
        keeps_reads_available=True,
    ),
    Fault(
        "cut-off",
        "the primary's machine is cut off",
        _isolate_primary,
        expected_classes=_BUSY_ONLY,
        max_latency=15.0,
        keeps_reads_available=True,
    ),
)


if __name__ == "__main__":
    sys.exit(main())

"""Servers of a Patroni cluster are lost under load, in each way that there is: `make cluster`."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from faults.client import Kind
from faults.cluster.patroni import LOOP, NAMES, TTL, Cluster, opened
from faults.databases import Unsuitable
from faults.nodes import placed, stop_in_order
from faults.report import printed, troubles
from faults.scene import Fault, Report, Scene, tried
from faults.stock import prepared


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all is well, 1 if something has to be mended."""
    parser = argparse.ArgumentParser(prog="python -m faults.cluster", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=[fault.name for fault in _FAULTS])
    given = parser.parse_args(arguments)
    stop_in_order()
    folder = Path(tempfile.mkdtemp(prefix="identity-cluster-"))
    folder.chmod(0o755)
    try:
        reports = _reports(folder, [one for one in _FAULTS if given.only is None or one.name in given.only])
    except Unsuitable as reason:
        print(f"The cluster cannot be played here: {reason}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(printed(reports))
    return 0 if all(report.is_good for report in reports) else 1


def _reports(folder: Path, faults: Sequence[Fault]) -> list[Report]:
    began = time.monotonic()
    own = folder / "service"
    own.mkdir(mode=0o700)
    reports = []
    with opened(folder) as cluster, placed(own, cluster, 2, {}) as nodes:
        stock = prepared(nodes[0].ini)
        scene = Scene(cluster, nodes, stock, nodes.start(), 3.0)
        _say(f"three servers under Patroni, {time.monotonic() - began:.0f} s")
        for fault in faults:
            cluster.took = 0.0
            report = tried(fault, scene, _mended)
            reports.append(report)
            _say(
                f"{fault.title}: {'well' if report.is_good else 'NOT WELL'}; Patroni took {cluster.took:.1f} s,"
                f" introspection was away for {report.silence:.1f} s at most"
            )
            for line in troubles(report):
                _say(line)
    return reports


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _mended(scene: Scene) -> None:
    """Let a machine that was killed or cut off be there again, and have what it missed."""
    cluster = scene.database
    assert isinstance(cluster, Cluster)  # noqa: S101 - there is no other here
    for name in NAMES:
        machine = cluster.machine(name)
        machine.connect()
        if not machine.runs:
            cluster.start_machine(name)
    cluster.wait_until_whole()


def _cluster(scene: Scene) -> tuple[Cluster, str]:
    cluster = scene.database
    assert isinstance(cluster, Cluster)  # noqa: S101 - there is no other here
    primary = cluster.primary()
    assert primary is not None  # noqa: S101 - it was whole
    return cluster, primary


def _killed(scene: Scene) -> None:
    cluster, primary = _cluster(scene)
    cluster.machine(primary).kill()
    cluster.wait_for_primary(other_than=primary)


def _cut_off(scene: Scene) -> None:
    cluster, primary = _cluster(scene)
    cluster.machine(primary).cut_off()
    cluster.wait_for_primary(other_than=primary)


def _switched(scene: Scene) -> None:
    cluster, _ = _cluster(scene)
    cluster.switch_over()


def _standby_killed(scene: Scene) -> None:
    """Commits wait for the standby that is gone, until Patroni has named the other one."""
    cluster, _ = _cluster(scene)
    standby = cluster.synchronous()
    assert standby is not None  # noqa: S101 - it was whole
    cluster.machine(standby).kill()
    began = time.monotonic()
    while cluster.synchronous() in (None, standby) and time.monotonic() < began + TTL + LOOP:
        time.sleep(0.2)
    cluster.took = time.monotonic() - began


_BUSY = (Kind.BUSY,)
_FAULTS = (
    Fault("switchover", "the operator has a standby take over", _switched, slowest=15.0, reads_on=True),
    Fault("standby", "the synchronous standby is killed", _standby_killed, slowest=15.0, reads_on=True),
    Fault("killed", "the primary's machine is killed", _killed, bites=_BUSY, slowest=15.0, reads_on=True),
    Fault("cut-off", "the primary's machine is cut off", _cut_off, bites=_BUSY, slowest=15.0, reads_on=True),
)


if __name__ == "__main__":
    sys.exit(main())

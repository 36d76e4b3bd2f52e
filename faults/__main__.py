"""The faults, one after the other, under load: `make faults`."""

import argparse
import itertools
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from faults.databases import Unsuitable, small_disk
from faults.nodes import placed, stop_in_order
from faults.of_clients import CLIENTS
from faults.of_clusters import CLUSTERS
from faults.of_databases import DATABASES
from faults.of_migrations import MIGRATIONS
from faults.of_nodes import NODES
from faults.report import printed, troubles
from faults.scene import Fault, Report, Scene, tried
from faults.stock import prepared
from faults.storages import STORAGES, USUAL, faults_of, missing, opened

FAULTS: Sequence[Fault] = (*NODES, *DATABASES, *CLIENTS, *CLUSTERS)
#: Where a quick run has all of them.
_QUICK = "postgresql"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all is well, 1 if something has to be mended."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    names = sorted({one.name for one in FAULTS} | {one.name for one in MIGRATIONS})
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--storage", action="append", choices=STORAGES, help="such storages alone")
    parser.add_argument("--quick", action="store_true", help=f"all faults on {_QUICK}, elsewhere what databases decide")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a fault lasts, about (3)")
    parser.add_argument("--expired", type=int, default=10_000, help="how many expired tokens are purged (10000)")
    parser.add_argument("--strict", action="store_true", help="what cannot be tried here counts as not well")
    given = parser.parse_args(arguments)
    stop_in_order()
    reports: list[Report] = []
    left_out = {}
    for storage in given.storage or USUAL:
        reason = missing(storage)
        if reason is not None:
            left_out[storage] = reason
            continue
        for migration in MIGRATIONS:
            if faults_of(storage) in migration.storages and (given.only is None or migration.name in given.only):
                with _folder() as folder:
                    reports.append(migration.run(storage, folder))
        wanted = [fault for fault in FAULTS if _is_wanted(fault, storage, given)]
        # Those that need the same kind of place share one.
        for _, group in itertools.groupby(wanted, key=lambda fault: fault.place):
            reports += _all(list(group), storage, given.seconds, given.expired)
    print(printed(reports))
    for storage, reason in left_out.items():
        print(f"left out: {storage}: {reason}")
    return 0 if is_well(reports, left_out, given) else 1


def is_well(reports: Sequence[Report], left_out: Collection[str], given: argparse.Namespace) -> bool:
    """True if nothing has to be mended, and nothing was left out that had to be tried."""
    if given.strict and (left_out or any(report.skipped for report in reports)):
        return False
    return bool(reports) and all(report.is_good for report in reports) and not (given.storage and left_out)


def _is_wanted(fault: Fault, storage: str, given: argparse.Namespace) -> bool:
    if faults_of(storage) not in fault.storages or (given.only is not None and fault.name not in given.only):
        return False
    return not given.quick or storage == _QUICK or fault.everywhere or len(fault.storages) == 1


def _all(faults: Sequence[Fault], storage: str, span: float, expired: int) -> Iterator[Report]:
    try:
        with _scene(faults[0], storage, span, expired) as scene:
            for fault in faults:
                began = time.monotonic()
                report = _one(fault, scene)
                words = "well" if report.is_good else "NOT WELL"
                print(f"{storage:11} {fault.title}: {words}, {time.monotonic() - began:.0f} s", file=sys.stderr)
                for line in troubles(report):
                    print(line, file=sys.stderr)
                yield report
    except Unsuitable as reason:
        for fault in faults:
            yield Report(fault, storage, skipped=str(reason))


def _one(fault: Fault, scene: Scene) -> Report:
    try:
        return tried(fault, scene)
    except AssertionError as problem:
        return Report(fault, scene.database.name, offences=[str(problem)])
    except Exception:
        return Report(fault, scene.database.name, offences=[traceback.format_exc()])


@contextmanager
def _scene(fault: Fault, storage: str, span: float, expired: int) -> Iterator[Scene]:
    with ExitStack() as stack:
        folder = stack.enter_context(_folder())
        if fault.disk is not None:
            stack.enter_context(small_disk(folder, fault.disk))
        environment = fault.environment(folder) if fault.environment else {}
        database = stack.enter_context(opened(storage, folder))
        nodes = stack.enter_context(placed(folder, database, fault.nodes, environment, fault.workers))
        stock = prepared(nodes[0].ini)
        yield Scene(database, nodes, stock, nodes.start(), span, expired)


@contextmanager
def _folder() -> Iterator[Path]:
    # Not below our own folder: the database server may run as another user, who cannot enter it.
    folder = Path(tempfile.mkdtemp(prefix="identity-faults-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

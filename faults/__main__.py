"""Inject the faults, one after the other, under load: `make faults`."""

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

from faults.client_faults import CLIENT_FAULTS
from faults.cluster_faults import CLUSTER_FAULTS
from faults.database import FaultUnavailable, mount_small_disk
from faults.database_faults import DATABASE_FAULTS
from faults.fault_run import Fault, FaultEnvironment, FaultReport, run_fault
from faults.migration_faults import MIGRATION_FAULTS
from faults.node_faults import NODE_FAULTS
from faults.report import format_reports, list_failures
from faults.seed_data import create_seed_data
from faults.service_nodes import create_nodes, exit_on_sigterm
from faults.storages import DEFAULT_STORAGES, STORAGES, create_database, storage_with_same_faults, unavailable_reason

FAULTS: Sequence[Fault] = (*NODE_FAULTS, *DATABASE_FAULTS, *CLIENT_FAULTS, *CLUSTER_FAULTS)
#: The storage on which a quick run tries all faults.
_QUICK_STORAGE = "postgresql"


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all faults passed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    names = sorted({fault.name for fault in FAULTS} | {migration_fault.name for migration_fault in MIGRATION_FAULTS})
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--storage", action="append", choices=STORAGES, help="such storages alone")
    parser.add_argument(
        "--quick", action="store_true", help=f"all faults on {_QUICK_STORAGE}, elsewhere what databases decide"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a fault lasts, about (3)")
    parser.add_argument("--expired", type=int, default=10_000, help="how many expired tokens are purged (10000)")
    parser.add_argument("--strict", action="store_true", help="what cannot be tried here counts as not well")
    options = parser.parse_args(arguments)
    exit_on_sigterm()
    reports: list[FaultReport] = []
    left_out = {}
    for storage in options.storage or DEFAULT_STORAGES:
        reason = unavailable_reason(storage)
        if reason is not None:
            left_out[storage] = reason
            continue
        for migration in MIGRATION_FAULTS:
            if storage_with_same_faults(storage) in migration.storages and (
                options.only is None or migration.name in options.only
            ):
                with _temporary_folder() as folder:
                    reports.append(migration.run(storage, folder))
        faults = [fault for fault in FAULTS if _is_selected(fault, storage, options)]
        # Faults with the same requirements share an environment.
        for _, group in itertools.groupby(faults, key=lambda fault: fault.environment_key):
            reports += _run_all(list(group), storage, options.seconds, options.expired)
    print(format_reports(reports))
    for storage, reason in left_out.items():
        print(f"left out: {storage}: {reason}")
    return 0 if is_passed(reports, left_out, options) else 1


def is_passed(reports: Sequence[FaultReport], left_out: Collection[str], options: argparse.Namespace) -> bool:
    """True if nothing failed, and no required fault was skipped."""
    if options.strict and (left_out or any(report.skipped for report in reports)):
        return False
    return bool(reports) and all(report.is_passed for report in reports) and not (options.storage and left_out)


def _is_selected(fault: Fault, storage: str, options: argparse.Namespace) -> bool:
    if storage_with_same_faults(storage) not in fault.storages or (
        options.only is not None and fault.name not in options.only
    ):
        return False
    return not options.quick or storage == _QUICK_STORAGE or fault.is_quick_on_all_storages or len(fault.storages) == 1


def _run_all(faults: Sequence[Fault], storage: str, span: float, expired: int) -> Iterator[FaultReport]:
    try:
        with _create_environment(faults[0], storage, span, expired) as scene:
            for fault in faults:
                began = time.monotonic()
                report = _run_fault(fault, scene)
                outcome = "well" if report.is_passed else "NOT WELL"
                print(f"{storage:11} {fault.title}: {outcome}, {time.monotonic() - began:.0f} s", file=sys.stderr)
                for line in list_failures(report):
                    print(line, file=sys.stderr)
                yield report
    except FaultUnavailable as reason:
        for fault in faults:
            yield FaultReport(fault, storage, skipped=str(reason))


def _run_fault(fault: Fault, scene: FaultEnvironment) -> FaultReport:
    try:
        return run_fault(fault, scene)
    except AssertionError as problem:
        return FaultReport(fault, scene.database.name, violations=[str(problem)])
    except Exception:
        return FaultReport(fault, scene.database.name, violations=[traceback.format_exc()])


@contextmanager
def _create_environment(fault: Fault, storage: str, span: float, expired: int) -> Iterator[FaultEnvironment]:
    with ExitStack() as stack:
        folder = stack.enter_context(_temporary_folder())
        if fault.disk_megabytes is not None:
            stack.enter_context(mount_small_disk(folder, fault.disk_megabytes))
        environment = fault.environment(folder) if fault.environment else {}
        database = stack.enter_context(create_database(storage, folder))
        nodes = stack.enter_context(create_nodes(folder, database, fault.nodes, environment, fault.workers))
        stock = create_seed_data(nodes[0].ini)
        yield FaultEnvironment(database, nodes, stock, nodes.start(), span, expired)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    # Not below our own folder: the database server may run as another user without access to it.
    folder = Path(tempfile.mkdtemp(prefix="identity-faults-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

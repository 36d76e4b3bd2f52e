"""Latency of other requests during a purge: a steady load, without and during ``identity purge``."""

import os
import re
import subprocess
import time
from concurrent.futures import Executor

from benchmarks.installations import Installation, install_service
from benchmarks.load_generator import UnexpectedResponse
from benchmarks.measurement import run_steady_load
from benchmarks.service_process import PROGRAM, ROOT, ServiceConfiguration
from benchmarks.targets import PURGE, TargetResult

ROWS = 1_000_000
MEASURED_CASES = ("userinfo", "introspection", "opaque")
PER_SECOND = 20
_SLICE_SECONDS = 5.0
#: Maximum number of slices without a purge before it, and as many after it: one for this many rows.
_BASELINE_SLICES, _WARM_UP_ROWS = 6, 10_000
_PATIENCE = 60.0
#: Set so high that the service itself leaves the expired rows to the command.
_RETENTION_SETTING = "identity.token_retention"
_DELETED_LINE = re.compile(r"^ *(\d+)  access tokens$", re.MULTILINE)
_LONGEST_BATCH_LINE = re.compile(r"The longest batch took (\d+) ms")


def measure_purge(storage: str, pool: Executor, rows: int) -> tuple[list[str], list[TargetResult]]:
    """Fill the database and measure the load during a purge. Raises UnexpectedResponse, ServiceStartError,
    DiskTooSmall.
    """
    load_before = os.getloadavg()[0]
    with install_service(
        ServiceConfiguration(storage, ((_RETENTION_SETTING, "3650d"),), stored_tokens=rows, expired=True), pool
    ) as installation:
        # Otherwise the filled data would be written to disk during the first requests.
        os.sync()
        number = min(_BASELINE_SLICES, 1 + rows // _WARM_UP_ROWS)
        alone = [run_steady_load(installation, MEASURED_CASES, PER_SECOND, _SLICE_SECONDS, pool) for _ in range(number)]
        began, beside = time.monotonic(), []
        with _start_purge(installation) as purge:
            try:
                while purge.poll() is None:
                    beside.append(run_steady_load(installation, MEASURED_CASES, PER_SECOND, _SLICE_SECONDS, pool))
            finally:
                purge.terminate()
            output, span = purge.communicate()[0].decode(), time.monotonic() - began
        went, longest = _DELETED_LINE.search(output), _LONGEST_BATCH_LINE.search(output)
        if went is None or longest is None or purge.returncode:
            raise UnexpectedResponse(f"the purge has failed: {output[-500:]}")
        alone += [
            run_steady_load(installation, MEASURED_CASES, PER_SECOND, _SLICE_SECONDS, pool) for _ in range(number)
        ]
    results = [TargetResult("longest batch of a purge, ms", float(longest[1]), PURGE)]
    lines = [
        f"{storage}: {int(went[1]):,} tokens purged in {span:.0f} s, longest batch {results[0]} ms;"
        f" load average before: {load_before:.1f}",
        f"{'ms without and beside the purge':<32}{'p50':>16}{'p99':>16}{'slowest':>16}  longer",
    ]
    for index, name in enumerate(MEASURED_CASES):
        without, beside_purge = (
            sorted(span for load_results in slices for span in load_results[index].latencies)
            for slices in (alone[1:], beside)
        )
        results.append(TargetResult(f"{name} beside a purge, ms", (beside_purge[-1] - without[-1]) * 1e3, PURGE))
        latencies = "".join(
            f"{spans[int(len(spans) * share)] * 1e3:>8.1f}"
            for share in (0.5, 0.99, 0.9999)
            for spans in (without, beside_purge)
        )
        lines.append(f"{name:<32}{latencies}  {results[-1]}")
    return lines, results


def _start_purge(installation: Installation) -> "subprocess.Popen[bytes]":
    """The command in a process of its own, with the default retention."""
    deployment = installation.deployment
    path = deployment.ini.with_name("purge.ini")
    lines = deployment.ini.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(_RETENTION_SETTING)), "utf-8")
    return subprocess.Popen(
        [*PROGRAM, "purge", "-c", str(path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )

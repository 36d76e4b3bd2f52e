"""Instructions per request, counted by callgrind: reproducible within 1 %, even on a busy machine.

``identity serve`` runs under valgrind, some fifty times slower, with a single connection, so that no two requests
share a commit or a query; string hashing is fixed (``PYTHONHASHSEED``). Counting starts after each case has run
several times. The kernel and the database's own processes are not counted.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from benchmarks.installations import Installation, collect_responses, install_service
from benchmarks.measurement import CODE_FLOW, CODE_FLOW_PARTS
from benchmarks.service_process import PROGRAM, Deployment, ServiceConfiguration
from benchmarks.targets import TargetResult

_SUBCASES = {CODE_FLOW: CODE_FLOW_PARTS}
_WARM_UP, _COUNT = 15, 40
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)
_START_LIMIT = 300.0
#: valgrind does not support all instructions of the C parser, and is slow.
_SERVER = (("http_parser", "python"), ("timeout", "300"))


class ValgrindMissing(Exception):
    """valgrind is missing or cannot be controlled."""


def count_instructions(
    storages: Iterable[str], names: Sequence[str], pool: Executor
) -> tuple[list[str], list[TargetResult]]:
    """Thousands of instructions of each case. Raises ValgrindMissing, ServiceStartError, UnexpectedResponse."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise ValgrindMissing("valgrind is not installed")
    lines = ["thousand instructions a request"]

    def under(deployment: Deployment) -> Deployment:
        output = f"--callgrind-out-file={deployment.log.parent}/out.%p"
        # Without --trace-children a worker, which gunicorn forks, would not listen to vgdb.
        tool = (valgrind, "--tool=callgrind", "--trace-children=yes", "--instr-atstart=no", output)
        command = (*tool, *PROGRAM, "serve", "-c", str(deployment.ini))
        return replace(deployment, command=command, environment={"PYTHONHASHSEED": "0"}, start_limit=_START_LIMIT)

    for storage in storages:
        with install_service(
            ServiceConfiguration(storage, server=_SERVER), pool, change=under, presented_tokens=20
        ) as side:
            counted = _count_cases(side, [part for name in names for part in _SUBCASES.get(name, (name,))], pool)
        for name in names:
            total = sum(counted[part] for part in _SUBCASES.get(name, (name,)))
            lines.append(f"{name + ', ' + storage:<38}{total / 1000:>8,.0f}")
    return lines, []


def _count_cases(side: Installation, names: Sequence[str], pool: Executor) -> dict[str, float]:
    folder = side.deployment.log.parent
    order = [name for name in side.cases if name in names]
    for name in order:
        collect_responses(side.cases[name], _WARM_UP, side.deployment, pool)
    _run_callgrind_control(side, "instrumentation on")
    counted = {}
    for name in order:
        case = side.cases[name]
        if case.source_case is not None:
            collect_responses(case.source_case, _COUNT, side.deployment, pool)
        _run_callgrind_control(side, "zero")
        collect_responses(case, _COUNT, side.deployment, pool, alone=True)
        for path in folder.glob("out.*.*"):
            path.unlink()
        _run_callgrind_control(side, "dump")
        matches = [_TOTALS.search(path.read_text("utf-8", "replace")) for path in folder.glob("out.*.*")]
        counted[name] = sum(int(item[1]) for item in matches if item is not None) / _COUNT
    return counted


def _run_callgrind_control(side: Installation, command: str) -> None:
    for process in side.service.list_processes():
        done = subprocess.run(
            ["vgdb", f"--pid={process.pid}", "--wait=10", *command.split()],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise ValgrindMissing(f"vgdb cannot control the service: {done.stderr.strip()[-300:]}")

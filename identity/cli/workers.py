"""identity workers: which processes serve, and how they are."""

import time
from argparse import Namespace
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from identity.cli.program import Failed, add_ini_arguments
from identity.operations import Command

if TYPE_CHECKING:
    from identity.server.beats import Worker
    from identity.server.looking import Generation, Process

#: Loops go round once a second; who has not for so many hangs, or the machine does.
_QUIET = 5.0


def run(arguments: Namespace) -> int:
    """Tell of supervisor, generations and workers; 1 unless a supervisor is there and all its workers answer."""
    from identity.server.beats import Phase
    from identity.server.looking import can_look, generations

    if not can_look():
        raise Failed("Only Linux tells of other processes. Send SIGUSR1 to the supervisor: its log tells of them.")
    try:
        found = generations(arguments.ini)
    except PermissionError:
        raise Failed(f"The service of {arguments.ini} runs as another user. Run this as that user.") from None
    if not found:
        raise Failed(f"No supervisor serves {arguments.ini}. `identity serve -c {arguments.ini} --workers auto` does.")
    told = set()
    for one in found:
        if one.supervisor is not None and one.supervisor.pid not in told:
            told.add(one.supervisor.pid)
            where = ", ".join(f"{name} = {value}" for name, value in one.plan.where.items())
            print(f"supervisor     {_about(one.supervisor)}  {where}")
        elif one.supervisor is None:
            print("supervisor     gone: the workers finish what they are answering")
        _tell(one)
    answering = [one for one in found if one.supervisor is not None and one.seen.phase is Phase.ANSWERS]
    return 0 if answering and all(_lives(worker) for one in answering for worker in one.seen.workers) else 1


def _tell(one: "Generation") -> None:
    from identity.server.looking import look_at

    print(f"  generation   {_about(one.process)}  {one.seen.phase.name.lower()}, {one.plan.server}")
    for number, worker in enumerate(one.seen.workers):
        line = "none at the moment"
        with suppress(FileNotFoundError, ProcessLookupError):
            if worker.pid:
                line = f"{_about(look_at(worker.pid))}  {_sign(worker)}"
        replaced = f", replaced {worker.starts - 1} times" if worker.starts > 1 else ""
        print(f"    worker {number:<4} {line}{replaced}")


def _about(process: "Process") -> str:
    since = datetime.fromtimestamp(process.since, UTC)
    memory = f"{process.memory / 1e6:.0f} MB ({process.own_memory / 1e6:.0f} its own)"
    return f"process {process.pid:<8} since {since:%Y-%m-%d %H:%M:%S} UTC  {memory:<22}"


def _lives(worker: "Worker") -> bool:
    return bool(worker.pid) and time.monotonic() - worker.last < _QUIET


def _sign(worker: "Worker") -> str:
    if not worker.last:
        return "about to answer"
    return f"last sign of life {max(0.0, time.monotonic() - worker.last):.1f} s ago"


COMMAND = Command("workers", "tell which processes serve, and how they are", add_ini_arguments, run)

"""A wrong wall clock for the processes of the service."""

import shutil
import subprocess
import time
from pathlib import Path

from faults.database import FaultUnavailable

_SOURCE = Path(__file__).with_suffix(".c")


def clock_environment(folder: Path) -> dict[str, str]:
    """Environment variables of a process with such a clock. Raises FaultUnavailable."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FaultUnavailable("there is no C compiler `cc`")
    library = folder / "clock.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    set_clock_offset(folder, 0)
    return {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(folder / "clock.txt")}


def set_clock_offset(folder: Path, seconds: int, faster: int = 0) -> None:
    """Set the clock off by this many seconds, within a tenth of one, gaining ``faster`` seconds per second."""
    waiting = folder / "clock.new"
    waiting.write_text(f"{seconds} {faster} {int(time.monotonic())}")
    waiting.replace(folder / "clock.txt")


def clock_offset(folder: Path) -> int:
    """The current offset in seconds."""
    seconds, faster, since = map(int, (folder / "clock.txt").read_text().split())
    return seconds + int(faster * (time.monotonic() - since))

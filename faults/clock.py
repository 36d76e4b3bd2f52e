"""A wall clock that is wrong by as much as a fault wants, for the service alone."""

import shutil
import subprocess
from pathlib import Path

from faults.databases import Unsuitable

_SOURCE = Path(__file__).with_suffix(".c")


def environment(folder: Path) -> dict[str, str]:
    """What a process has to find in its environment. Raises Unsuitable."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Unsuitable("there is no C compiler `cc`")
    library = folder / "clock.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    set_wrong(folder, 0)
    return {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(folder / "clock.txt")}


def set_wrong(folder: Path, seconds: int) -> None:
    """Let the clock be wrong by so many seconds, within a tenth of one."""
    waiting = folder / "clock.new"
    waiting.write_text(str(seconds))
    waiting.replace(folder / "clock.txt")

"""A disk that takes its time: the service alone has each fsync take longer, by a library that is compiled for it."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


class NoCompiler(Exception):
    """There is no C compiler."""


def environment(folder: Path, milliseconds: float) -> Mapping[str, str]:
    """What a process has to find in its environment to have a slower disk; the library is put into the folder.

    Raises NoCompiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("there is no C compiler `cc` to make the disk slow with")
    library = folder / "slow_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return {"LD_PRELOAD": str(library), "BENCHMARK_SLOW_DISK": str(round(milliseconds * 1000))}

"""How others are answered while what has expired is purged: a steady load, without and beside ``identity purge``."""

import os
import re
import subprocess
import time
from concurrent.futures import Executor

from benchmarks.installation import Installation, installed
from benchmarks.load import LoadFailed
from benchmarks.measuring import steady
from benchmarks.service import PROGRAM, ROOT, Setup
from benchmarks.targets import PURGE, Verdict

ROWS = 1_000_000
ASKED = ("userinfo", "introspection", "opaque")
PER_SECOND = 20
_SLICE = 5.0
#: How many slices without a purge there are at most before it, and as many after it: one for so many rows.
_ALONE, _ROWS_ALONE = 6, 10_000
_PATIENCE = 60.0
#: The service itself leaves to the command what has expired.
_KEPT = "identity.token_retention"
_WENT = re.compile(r"^ *(\d+)  access tokens$", re.MULTILINE)
_LONGEST = re.compile(r"The longest batch took (\d+) ms")


def find(storage: str, pool: Executor, rows: int) -> tuple[list[str], list[Verdict]]:
    """Fill, ask, purge meanwhile. Raises LoadFailed, NotServing, NoRoom."""
    load_before = os.getloadavg()[0]
    with installed(Setup(storage, ((_KEPT, "3650d"),), stored=rows, expired=True), pool) as installation:
        # What the filling wrote would otherwise go to the disk beside the first requests.
        os.sync()
        number = min(_ALONE, 1 + rows // _ROWS_ALONE)
        alone = [steady(installation, ASKED, PER_SECOND, _SLICE, pool) for _ in range(number)]
        began, beside = time.monotonic(), []
        with _purge(installation) as purge:
            try:
                while purge.poll() is None:
                    beside.append(steady(installation, ASKED, PER_SECOND, _SLICE, pool))
            finally:
                purge.terminate()
            output, span = purge.communicate()[0].decode(), time.monotonic() - began
        went, longest = _WENT.search(output), _LONGEST.search(output)
        if went is None or longest is None or purge.returncode:
            raise LoadFailed(f"the purge has failed: {output[-500:]}")
        alone += [steady(installation, ASKED, PER_SECOND, _SLICE, pool) for _ in range(number)]
    verdicts = [Verdict("longest batch of a purge, ms", float(longest[1]), PURGE)]
    lines = [
        f"{storage}: {int(went[1]):,} tokens purged in {span:.0f} s, longest batch {verdicts[0]} ms;"
        f" load average before: {load_before:.1f}",
        f"{'ms without and beside the purge':<32}{'p50':>16}{'p99':>16}{'slowest':>16}  longer",
    ]
    for place, name in enumerate(ASKED):
        one, two = (sorted(span for each in slices for span in each[place].latencies) for slices in (alone[1:], beside))
        verdicts.append(Verdict(f"{name} beside a purge, ms", (two[-1] - one[-1]) * 1e3, PURGE))
        shown = "".join(
            f"{spans[int(len(spans) * share)] * 1e3:>8.1f}" for share in (0.5, 0.99, 0.9999) for spans in (one, two)
        )
        lines.append(f"{name:<32}{shown}  {verdicts[-1]}")
    return lines, verdicts


def _purge(installation: Installation) -> "subprocess.Popen[bytes]":
    """The command, under way in a process of its own, with the default of what the service itself leaves alone."""
    place = installation.place
    other = place.ini.with_name("purge.ini")
    lines = place.ini.read_text("utf-8").splitlines(keepends=True)
    other.write_text("".join(line for line in lines if not line.startswith(_KEPT)), "utf-8")
    return subprocess.Popen(
        [*PROGRAM, "purge", "-c", str(other)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )

"""Migrations that are killed half-way, again and again, until one is let through."""

import os
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks.service import ROOT
from faults.client import Client, Tally
from faults.nodes import PROGRAM, placed
from faults.paths import TOKEN
from faults.scene import Fault, Report
from faults.stock import prepared
from faults.storages import opened

#: Seconds after which it is killed first, and how many times as long it is left alone each time: so it is met anywhere
#: in what it takes here, start of the interpreter included.
_FIRST, _LONGER = 0.3, 1.2


@dataclass(frozen=True)
class Killed:
    """A fault that has a database of its own, and no load: nothing serves before its migration is through."""

    name: str
    title: str
    storages: Collection[str] = ("sqlite", "postgresql", "mariadb")

    def run(self, storage: str, folder: Path) -> Report:
        """What came of it."""
        fault = Fault(self.name, self.title, lambda scene: None)
        with opened(storage, folder) as database, placed(folder, database, 1, {}) as nodes:
            migrating = [*PROGRAM, "migrate", "-c", str(nodes[0].ini)]
            nodes[0].ini.parent.joinpath("data").mkdir(mode=0o700, exist_ok=True)
            killed, moment = 0, _FIRST
            while _killed_after(moment, migrating):
                killed, moment = killed + 1, moment * _LONGER
            done = subprocess.run(migrating, check=False, capture_output=True, text=True, cwd=ROOT, timeout=120)
            if done.returncode:
                return Report(fault, storage, offences=[f"the migration does not go on: {done.stderr[-500:]}"])
            stock = prepared(nodes[0].ini)
            nodes.start()
            tally = Tally()
            client = Client(nodes.ports, nodes.host, tally)
            client.post(TOKEN, stock.assertion(single_use=True), None, 200)
            client.close()
        offences = list(tally.offences)
        if not killed:
            offences.append("no migration was killed: each was over before")
        return Report(fault, storage, requests=killed, offences=offences)


def _killed_after(seconds: float, command: list[str]) -> bool:
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


MIGRATIONS = (Killed("migration", "migrations are killed half-way, and go on"),)

"""How others are answered while logins are tried in great number: a steady load, alone and during the flood.

Every password that is tried is really hashed: each name is tried less often than delays begin, and the limit for each
address is lifted.
"""

import os
import statistics
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice

from benchmarks.cases import Known, get, post
from benchmarks.installation import Installation, installed
from benchmarks.load import Answers, Load, LoadFailed, drive
from benchmarks.measuring import steady
from benchmarks.service import Setup
from benchmarks.sign_in import TOKEN
from benchmarks.targets import FLOOD, Verdict
from identity.domain.attempts import FREE_ATTEMPTS

#: The cases that others ask for meanwhile.
ASKED = ("userinfo", "introspection", "opaque")

_CONNECTIONS = 8
_PER_SECOND = 50
_SPAN = 1.8
#: The flood runs for so long before the others are looked at.
_LEAD = 0.3
#: More than any machine hashes in that time over 8 connections.
_ATTEMPTS = 500
_TRIES = FREE_ATTEMPTS - 1
_PATIENCE = 60.0
_SETTINGS = (("identity.attempts_per_address", "1000000"),)

_PAGE = {200: b'name="csrf_token"'}
#: Refused after the password was hashed, or told to come back later.
_REFUSED = {422: b"the password is wrong", 503: b"busy just now"}


def find(storages: Iterable[str], pools: tuple[Executor, Executor], rounds: int) -> tuple[list[str], list[Verdict]]:
    """The 95th percentiles, idle and in the flood. Each of the pools is a load generator. Raises LoadFailed."""
    lines = [f"p95 in ms, 3 × {_PER_SECOND} requests a second; load average before: {os.getloadavg()[0]:.1f}"]
    verdicts = []
    for storage in storages:
        with installed(Setup(storage, _SETTINGS), pools[0], waiting=-(-_ATTEMPTS * rounds // _TRIES)) as one:
            idle, busy, floods = _rounds(one, pools, rounds)
        number, span = sum(len(one.latencies) for one in floods), sum(one.elapsed for one in floods)
        lines.append(f"{storage}, {number / span:.0f} passwords a second over {_CONNECTIONS} connections")
        for place, name in enumerate(ASKED):
            before, during = _p95(each[place] for each in idle), _p95(each[place] for each in busy)
            verdicts.append(Verdict(f"flood, {name} on {storage}", during / before, FLOOD))
            lines.append(f"  {name:<16}{before * 1e3:>8.1f} idle{during * 1e3:>8.1f} in the flood  × {verdicts[-1]}")
    return lines, verdicts


def _rounds(
    installation: Installation, pools: tuple[Executor, Executor], rounds: int
) -> tuple[list[list[Answers]], list[list[Answers]], list[Answers]]:
    """Both loads in turn: the answers without the flood, in it, and its own."""
    address = installation.place.address
    attempts = _attempts(installation.known, address, pools[1])
    idle, busy, floods = [], [], []
    steady(installation, ASKED, _PER_SECOND, _SPAN, pools[0])
    for _ in range(rounds):
        idle.append(steady(installation, ASKED, _PER_SECOND, _SPAN, pools[0]))
        load = Load(address, list(islice(attempts, _ATTEMPTS)), _REFUSED, _CONNECTIONS, _LEAD + _SPAN)
        flood = pools[1].submit(drive, load)
        time.sleep(_LEAD)
        busy.append(steady(installation, ASKED, _PER_SECOND, _SPAN, pools[0]))
        floods.append(flood.result(timeout=_PATIENCE))
        if len(floods[-1].latencies) == _ATTEMPTS:
            raise LoadFailed("the flood ended too early: this machine hashes faster than benchmarks/flood.py provides")
    return idle, busy, floods


def _p95(rounds: Iterable[Answers]) -> float:
    return statistics.quantiles((span for answers in rounds for span in answers.latencies), n=20)[18]


def _attempts(known: Known, address: tuple[str, int], pool: Executor) -> Iterator[bytes]:
    """Wrong passwords for each name in turn, a few for each: the pages are fetched before."""
    pages = [get(known.host, path, Cookie=cookie) for path, cookie in known.waiting]
    # One connection, so that answers come in the order of requests.
    load = Load(address, pages, _PAGE, connections=1, seconds=_PATIENCE, keeps=True)
    bodies = pool.submit(drive, load).result(timeout=2 * _PATIENCE).contents
    tokens = [found[1].decode() for body in bodies if (found := TOKEN.search(body)) is not None]
    for number in range(_TRIES):
        for (path, cookie), token in zip(known.waiting, tokens, strict=True):
            form = {"csrf_token": token, "password": f"a wrong password, number {number}"}
            yield post(known.host, path, form, Cookie=cookie)

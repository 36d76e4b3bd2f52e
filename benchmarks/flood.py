"""How others are answered while logins are tried in great number: a steady load, alone and during the flood.

Every password that is tried is really hashed: each name is tried less often than delays begin, and each address less
often than the service counts. Addresses are those of 127.0.0.0/8, all of which Linux listens on.
"""

import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import count, islice

from benchmarks.cases import Case, password_attempt, password_page
from benchmarks.installation import Installation
from benchmarks.load import Answers, Load, LoadFailed, Pace, drive, keep_pace
from benchmarks.sign_in import TOKEN
from benchmarks.stock import Stock
from identity.domain.attempts import FREE_ATTEMPTS
from identity.settings import Settings

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
_TURN = Settings.attempts_per_address // 2
_PATIENCE = 60.0

_PAGE = {200: b'name="csrf_token"'}
#: Refused after the password was hashed, or told to come back later.
_REFUSED = {422: b"the password is wrong", 503: b"busy just now"}


@dataclass(frozen=True)
class Latencies:
    """Of all answers to one case, in seconds."""

    p50: float
    p95: float

    @classmethod
    def of(cls, rounds: Sequence[Answers]) -> "Latencies":
        """The latencies of all rounds as one."""
        steps = statistics.quantiles((span for answers in rounds for span in answers.latencies), n=20)
        return cls(p50=steps[9], p95=steps[18])


@dataclass(frozen=True)
class Flood:
    """What was found: each case's latencies without and with the flood; how the flood was answered, by status.

    ``load`` is the machine's load before: hashes have a low priority, so that whatever else runs keeps them waiting.
    """

    titles: Mapping[str, str]
    idle: Mapping[str, Latencies]
    busy: Mapping[str, Latencies]
    answers: Mapping[int, int]
    rate: float
    load: float
    connections: int = _CONNECTIONS
    per_second: int = _PER_SECOND

    @property
    def ratios(self) -> Mapping[str, float]:
        """How much slower the slowest were answered during the flood, by case: the 95th percentiles."""
        return {name: self.busy[name].p95 / self.idle[name].p95 for name in self.titles}


def names_for(rounds: int) -> int:
    """How many sign-ins have to wait for their password for so many rounds."""
    return -(-_ATTEMPTS * rounds // _TRIES)


def measure(installation: Installation, pools: tuple[Executor, Executor], rounds: int) -> Flood:
    """Both loads in turn, ``rounds`` times. Each of the two pools is a load generator. Raises LoadFailed.

    The installation has to have as many sign-ins under way as ``names_for`` says.
    """
    load_before = os.getloadavg()[0]
    address, cases = installation.place.address, [installation.cases[name] for name in ASKED]
    attempts = _attempts(installation.stock, address, pools[1])
    sources = (f"127.0.{third}.{fourth}" for third in count(1) for fourth in range(1, 255))
    idle: list[list[Answers]] = []
    busy: list[list[Answers]] = []
    floods: list[Answers] = []
    for _ in range(rounds):
        idle.append(_steady(cases, address, pools[0]))
        load = Load(
            address,
            list(islice(attempts, _ATTEMPTS)),
            _REFUSED,
            _CONNECTIONS,
            _LEAD + _SPAN,
            # As many as there can be turns, so that none has a second one.
            sources=list(islice(sources, _CONNECTIONS + _ATTEMPTS // _TURN)),
            turn=_TURN,
        )
        flood = pools[1].submit(drive, load)
        time.sleep(_LEAD)
        busy.append(_steady(cases, address, pools[0]))
        floods.append(flood.result(timeout=_PATIENCE))
        if len(floods[-1].latencies) == _ATTEMPTS:
            raise LoadFailed("the flood ended too early: this machine hashes faster than benchmarks/flood.py provides")
    return Flood(
        titles={case.name: case.title for case in cases},
        idle={case.name: Latencies.of(answers) for case, answers in zip(cases, zip(*idle, strict=True), strict=True)},
        busy={case.name: Latencies.of(answers) for case, answers in zip(cases, zip(*busy, strict=True), strict=True)},
        answers=dict(sum((answers.statuses for answers in floods), Counter())),
        rate=sum(len(answers.latencies) for answers in floods) / sum(answers.elapsed for answers in floods),
        load=load_before,
    )


def _steady(cases: Sequence[Case], address: tuple[str, int], pool: Executor) -> list[Answers]:
    number = int(_PER_SECOND * _SPAN) + 1
    paces = [Pace(address, case.take(number), case.expected, _PER_SECOND, _SPAN) for case in cases]
    return pool.submit(keep_pace, paces).result(timeout=_PATIENCE)


def _attempts(stock: Stock, address: tuple[str, int], pool: Executor) -> Iterator[bytes]:
    """Wrong passwords for each name in turn, a few for each: the pages are fetched before."""
    pages = [password_page(stock, waiting) for waiting in stock.waiting]
    # One connection, so that answers come in the order of requests.
    load = Load(address, pages, _PAGE, connections=1, seconds=_PATIENCE, keeps=True)
    bodies = pool.submit(drive, load).result(timeout=2 * _PATIENCE).contents
    tokens = [found[1].decode() for body in bodies if (found := TOKEN.search(body)) is not None]
    return iter(
        [
            password_attempt(stock, waiting, token, f"a wrong password, number {number}")
            for number in range(_TRIES)
            for waiting, token in zip(stock.waiting, tokens, strict=True)
        ]
    )

"""Latency of other requests during a flood of password attempts: a steady load, alone and during the flood.

Every attempt is really hashed: each name is tried less often than delays begin, and the limit per address is lifted.
"""

import os
import statistics
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice

from benchmarks.browser_sign_in import CSRF_TOKEN_FIELD
from benchmarks.installations import Installation, install_service
from benchmarks.load_generator import LoadResult, LoadSpec, UnexpectedResponse, run_load
from benchmarks.measurement import run_steady_load
from benchmarks.request_cases import RequestFixtures, build_get_request, build_post_request
from benchmarks.service_process import ServiceConfiguration
from benchmarks.targets import FLOOD, TargetResult
from identity.domain.attempts import FREE_ATTEMPTS

#: The cases of the steady load.
MEASURED_CASES = ("userinfo", "introspection", "opaque")

_CONNECTIONS = 8
_PER_SECOND = 50
_ROUND_SECONDS = 1.8
#: Seconds of flood before the measurement starts.
_LEAD_SECONDS = 0.3
#: More than any machine hashes in that time over 8 connections.
_ATTEMPTS = 500
_ATTEMPTS_PER_NAME = FREE_ATTEMPTS - 1
_TIMEOUT_SECONDS = 60.0
_SETTINGS = (("identity.attempts_per_address", "1000000"),)

_PAGE = {200: b'name="csrf_token"'}
#: Responses after hashing, or with the advice to retry later.
_REFUSED = {422: b"the password is wrong", 503: b"busy just now"}


def measure_flood(
    storages: Iterable[str], pools: tuple[Executor, Executor], rounds: int
) -> tuple[list[str], list[TargetResult]]:
    """The 95th percentiles, idle and during the flood. Each of the pools is a load generator. Raises
    UnexpectedResponse.
    """
    lines = [f"p95 in ms, 3 × {_PER_SECOND} requests a second; load average before: {os.getloadavg()[0]:.1f}"]
    results = []
    for storage in storages:
        with install_service(
            ServiceConfiguration(storage, _SETTINGS),
            pools[0],
            pending_sign_ins=-(-_ATTEMPTS * rounds // _ATTEMPTS_PER_NAME),
        ) as installation:
            idle, busy, floods = _measure_rounds(installation, pools, rounds)
        number, span = (
            sum(len(load_result.latencies) for load_result in floods),
            sum(load_result.elapsed for load_result in floods),
        )
        lines.append(f"{storage}, {number / span:.0f} passwords a second over {_CONNECTIONS} connections")
        for index, name in enumerate(MEASURED_CASES):
            before, during = (
                _p95(load_results[index] for load_results in idle),
                _p95(load_results[index] for load_results in busy),
            )
            results.append(TargetResult(f"flood, {name} on {storage}", during / before, FLOOD))
            lines.append(f"  {name:<16}{before * 1e3:>8.1f} idle{during * 1e3:>8.1f} in the flood  × {results[-1]}")
    return lines, results


def _measure_rounds(
    installation: Installation, pools: tuple[Executor, Executor], rounds: int
) -> tuple[list[list[LoadResult]], list[list[LoadResult]], list[LoadResult]]:
    """Both loads in turn: the results without the flood, during it, and of the flood itself."""
    address = installation.deployment.address
    attempts = _login_attempts(installation.fixtures, address, pools[1])
    idle, busy, floods = [], [], []
    run_steady_load(installation, MEASURED_CASES, _PER_SECOND, _ROUND_SECONDS, pools[0])
    for _ in range(rounds):
        idle.append(run_steady_load(installation, MEASURED_CASES, _PER_SECOND, _ROUND_SECONDS, pools[0]))
        load = LoadSpec(
            address, list(islice(attempts, _ATTEMPTS)), _REFUSED, _CONNECTIONS, _LEAD_SECONDS + _ROUND_SECONDS
        )
        flood = pools[1].submit(run_load, load)
        time.sleep(_LEAD_SECONDS)
        busy.append(run_steady_load(installation, MEASURED_CASES, _PER_SECOND, _ROUND_SECONDS, pools[0]))
        floods.append(flood.result(timeout=_TIMEOUT_SECONDS))
        if len(floods[-1].latencies) == _ATTEMPTS:
            raise UnexpectedResponse(
                "the flood ended too early: this machine hashes faster than benchmarks/login_flood.py provides"
            )
    return idle, busy, floods


def _p95(rounds: Iterable[LoadResult]) -> float:
    return statistics.quantiles((span for answers in rounds for span in answers.latencies), n=20)[18]


def _login_attempts(known: RequestFixtures, address: tuple[str, int], pool: Executor) -> Iterator[bytes]:
    """Wrong passwords for each name in turn, a few for each; the pages are fetched before."""
    pages = [build_get_request(known.host, path, Cookie=cookie) for path, cookie in known.pending_sign_ins]
    # One connection, so that responses come in the order of requests.
    load = LoadSpec(address, pages, _PAGE, connections=1, seconds=_TIMEOUT_SECONDS, stores_responses=True)
    bodies = pool.submit(run_load, load).result(timeout=2 * _TIMEOUT_SECONDS).bodies
    tokens = [found[1].decode() for body in bodies if (found := CSRF_TOKEN_FIELD.search(body)) is not None]
    for number in range(_ATTEMPTS_PER_NAME):
        for (path, cookie), token in zip(known.pending_sign_ins, tokens, strict=True):
            form = {"csrf_token": token, "password": f"a wrong password, number {number}"}
            yield build_post_request(known.host, path, form, Cookie=cookie)

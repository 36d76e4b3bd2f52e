"""Nodes: several processes of one service that act at the same moment.

The action is a function of an importable module, since processes cannot import a test's module.
"""

import itertools
import multiprocessing
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

from identity import bootstrap
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.clock import TickingClock
from identity.testing.service_test_client import Credentials, ServiceTestClient
from identity.testing.world import World

Outcome = TypeVar("Outcome")

PROCESSES = 3
THREADS = 4
#: Seconds after which nodes that do not synchronize are given up.
TIMEOUT_SECONDS = 60

_start: Barrier


class NodePool:
    """Worker processes; started once, since starting takes longer than the actions."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._start = context.Barrier(PROCESSES)
        self._pool = ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=_join, initargs=(self._start,))

    def run_on_all(self, act: Callable[..., Outcome], *arguments: object) -> list[Outcome]:
        """Results of ``act(*arguments)`` in each process; all start after every process has opened its service."""
        self._start.reset()
        futures = [self._pool.submit(_run_with_traceback, act, *arguments) for _ in range(PROCESSES)]
        return [future.result(TIMEOUT_SECONDS * 2) for future in futures]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def present_assertion(settings: Mapping[str, str], assertion: str, times: int) -> list[tuple[int, str]]:
    """Present one assertion this many times from several threads; returns status and error (or scope) of each
    response.
    """

    def ask(client: ServiceTestClient) -> tuple[int, str]:
        answer = client.exchange_assertion(assertion)
        return answer.status_int, answer.json.get("error") or answer.json["scope"]

    return _request_concurrently(settings, ask, times)


def exchange_credential(
    settings: Mapping[str, str], form: Mapping[str, str], credentials: Credentials, times: int
) -> list[tuple[int, str]]:
    """Present one code or refresh token this many times from several threads; status and error (or result) of each
    response.

    The result is the new refresh token, or the access token without one.
    """
    return exchange_credentials(settings, (form,), credentials, times)


def exchange_credentials(
    settings: Mapping[str, str], forms: Sequence[Mapping[str, str]], credentials: Credentials, times: int
) -> list[tuple[int, str]]:
    """The same with several forms; each thread starts with a different one."""
    turn = itertools.count()

    def ask(client: ServiceTestClient) -> tuple[int, str]:
        answer = client.request_token(forms[next(turn) % len(forms)], {"Authorization": credentials.header})
        members = answer.json
        return answer.status_int, members.get("error") or members.get("refresh_token") or members["access_token"]

    return _request_concurrently(settings, ask, times)


def guess_passwords(settings: Mapping[str, str], login_names: Sequence[str], passwords: Sequence[str]) -> list[int]:
    """Try passwords on the sign-in pages from several threads, each with its own browser; returns the statuses.

    Threads use the login names in turn.
    """
    turn = itertools.count()
    from identity.testing.browser import Browser

    world = _world(settings)
    together = threading.Barrier(THREADS, action=_wait_for_others)

    def lane(passwords: Sequence[str]) -> list[int]:
        browser = Browser(world)
        browser.open(f"{world.identity.settings.login_url}/login")
        browser.submit({"login_name": login_names[next(turn) % len(login_names)]})
        together.wait(TIMEOUT_SECONDS)
        return [browser.submit({"password": password}).status_int for password in passwords]

    try:
        with ThreadPoolExecutor(THREADS) as pool:
            lanes = pool.map(lane, [passwords[number::THREADS] for number in range(THREADS)])
            return [status for statuses in lanes for status in statuses]
    finally:
        world.close()


def revoke_and_introspect(settings: Mapping[str, str], token: str, credentials: Credentials) -> list[tuple[int, str]]:
    """Revoke and introspect a token repeatedly; returns the status of the first and the activity in the second."""

    def ask(client: ServiceTestClient) -> tuple[int, str]:
        revoked = client.revoke(token, credentials)
        answer = client.introspect(token, credentials)
        return revoked.status_int, str(answer.json["active"])

    return _request_concurrently(settings, ask, THREADS * 2)


def bootstrap_node(settings: Mapping[str, str]) -> tuple[str, str, bool, list[str]]:
    """Migrate and bootstrap; returns the service's organization and project, whether this process created the owner,
    and the signing keys."""
    world = _world(settings)
    try:
        _wait_for_others()
        world.identity.backend.migrate()
        outcome = bootstrap.run_bootstrap(world.identity)
        kids = [key["kid"] for key in world.client.fetch_jwks().json["keys"]]
        return outcome.organization_id, outcome.project_id, outcome.owner is not None, kids
    finally:
        world.close()


def rotate_signing_keys(settings: Mapping[str, str], times: int) -> list[tuple[str, ...]]:
    """Rotate the signing key this many times; returns the published keys after each rotation."""
    world = _world(settings)
    try:
        _wait_for_others()
        statuses = []
        for _ in range(times):
            with world.transaction_services() as services:
                services.signing_keys.rotate()
            statuses.append(tuple(key["kid"] for key in world.client.fetch_jwks().json["keys"]))
        return statuses
    finally:
        world.close()


def withdraw_signing_keys(settings: Mapping[str, str], key_ids: Sequence[str]) -> str:
    """Withdraw signing keys, including the active one; returns the id of the new one. Needs no NodePool."""
    world = _world(settings)
    try:
        with world.transaction_services() as services:
            [new] = services.signing_keys.withdraw(key_ids)
        return new.id
    finally:
        world.close()


def _request_concurrently(
    settings: Mapping[str, str], ask: Callable[[ServiceTestClient], tuple[int, str]], times: int
) -> list[tuple[int, str]]:
    world = _world(settings)
    together = threading.Barrier(THREADS, action=_wait_for_others)

    def lane(count: int) -> list[tuple[int, str]]:
        client = ServiceTestClient(world.client.app, world.issuer)
        client.discovery  # noqa: B018 - fetched before the race
        together.wait(TIMEOUT_SECONDS)
        return [ask(client) for _ in range(count)]

    try:
        with ThreadPoolExecutor(THREADS) as pool:
            counts = [len(range(number, times, THREADS)) for number in range(THREADS)]
            return [outcome for lane_outcomes in pool.map(lane, counts) for outcome in lane_outcomes]
    finally:
        world.close()


def _wait_for_others() -> None:
    _start.wait(TIMEOUT_SECONDS)


def _world(settings: Mapping[str, str]) -> World:
    return World(settings, clock=TickingClock(), key_pool=RsaKeyPool(0))


def _run_with_traceback(act: Callable[..., Outcome], *arguments: object) -> Outcome:
    """The result of the action; an exception as text, since not every exception can be pickled."""
    try:
        return act(*arguments)
    except Exception:
        _start.abort()
        raise AssertionError(f"a node failed:\n{traceback.format_exc()}") from None


def _join(start: Any) -> None:
    global _start
    _start = start

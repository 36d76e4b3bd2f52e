"""Security 9.5: PostgreSQL drops connections at any moment of any request, or is down for a while.

A proxy cuts the connection when the service sends its n-th message, for each n: before a statement, while it runs,
at the commit, and at the rollback. The clock of the world stands still.
"""

import io
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from faults.tcp_proxy import TcpProxy
from identity.background_worker import BackgroundJob, BackgroundWorker
from identity.log_formatters import PlainFormatter
from identity.plugins.sql import SqlBackend
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import Browser, set_password
from identity.testing.clock import FakeClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.service_test_client import DISCOVERY_PATH
from identity.testing.world import World

pytestmark = [pytest.mark.storages("postgresql"), pytest.mark.thorough]

_PATIENCE = 30


@pytest.fixture(scope="module")
def relayed(database_factory: DatabaseFactory, key_pool: RsaKeyPool) -> Iterator[tuple[World, TcpProxy]]:
    """A service that reaches PostgreSQL through a TCP proxy."""
    settings = database_factory.new_database_settings("postgresql")
    direct = urlsplit(settings["identity.plugin.sql.url"])
    relay = TcpProxy(f"{parse_qs(direct.query)['host'][0]}/.s.PGSQL.5432")
    # Without TLS and GSSAPI, only the startup message precedes the first statement.
    plain = f"postgresql://postgres@127.0.0.1:{relay.port}{direct.path}?sslmode=disable&gssencmode=disable"
    world = World(settings | {"identity.plugin.sql.url": plain}, clock=FakeClock(), key_pool=key_pool)
    yield world, relay
    relay.restore()
    world.close()
    relay.refuse_connections()
    database_factory.drop(settings)


#: A request: prepared while the database is up, then sent.
Asking = Callable[[World], Callable[[], Any]]


def _exchange(world: World) -> Callable[[], Any]:
    client = world.make_web_application()
    session = world.make_browser_session()
    code = world.make_code(client, session)
    return lambda: world.redeem(code, client)


def _refresh(world: World) -> Callable[[], Any]:
    client = world.make_web_application()
    refresh_token = world.obtain_tokens(client)["refresh_token"]
    return lambda: world.refresh(refresh_token, client)


def _replay(world: World) -> Callable[[], Any]:
    client = world.make_web_application()
    code = world.make_code(client)
    world.redeem(code, client)
    return lambda: world.redeem(code, client)


def _authorize(world: World) -> Callable[[], Any]:
    client, session = world.make_web_application(), world.make_browser_session()
    return lambda: session.authorize(client)


def _begin_sign_in(world: World) -> Callable[[], Any]:
    return lambda: Browser(world).open(f"{world.issuer}/login")


def _wrong_or_right(password: str | None) -> Asking:
    def prepare(world: World) -> Callable[[], Any]:
        browser, name = Browser(world), set_password(world, world.make_human_user())
        browser.open(f"{world.issuer}/login")
        browser.submit({"login_name": name}, form="page-form")
        password_used = password or "correct horse battery staple"
        return lambda: browser.submit({"password": password_used}, form="page-form")

    return prepare


def _at_the_console(act: Callable[[Browser, str], Any]) -> Asking:
    def prepare(world: World) -> Callable[[], Any]:
        browser, organization = Browser(world), world.make_organization()
        person = world.make_human_user(organization)
        world.assign_manager_role(person, "ORG_OWNER")
        browser.start_session(person)
        path = f"{world.issuer}/console/organizations/{organization.id}/projects"
        browser.open(f"{path}/new")
        return lambda: act(browser, path)

    return prepare


def _managing(method: str, path: str, members: object = None) -> Asking:
    def prepare(world: World) -> Callable[[], Any]:
        robot = world.make_manager_program()
        token, where = robot.management_token(), path.format(organization=robot.organization.id)
        return lambda: world.client.call_management_api(where, token, method, members)

    return prepare


def _with_token(ask: Callable[[World, str], Any]) -> Asking:
    def prepare(world: World) -> Callable[[], Any]:
        token = world.make_service_user_program().access_token(f"openid {world.audience_scope()}")
        world.introspector  # noqa: B018 - registered while there is a storage
        return lambda: ask(world, token)

    return prepare


def _bad_secret(world: World) -> Callable[[], Any]:
    client = world.make_application(grant_types=("client_credentials",))
    wrong = type(client)(client.client_id, "wrong" * 8)
    return lambda: world.post_token_request(wrong, {"grant_type": "client_credentials"})


def _assertion(world: World) -> Callable[[], Any]:
    robot = world.make_service_user_program()
    assertion = robot.assertion(jti="once")
    return lambda: world.client.exchange_assertion(assertion)


def _signing_out(world: World) -> Callable[[], Any]:
    session = world.make_browser_session()
    where = world.client.discovery["end_session_endpoint"]
    return lambda: world.client.get(where, session.headers)


def _account(world: World) -> Callable[[], Any]:
    session = world.make_browser_session()
    return lambda: world.client.get(f"{world.issuer}/account", session.headers)


ASKING: dict[str, Asking] = {
    "assertion": _assertion,
    "code": _exchange,
    "replayed code": _replay,
    "refresh": _refresh,
    "refused client": _bad_secret,
    "introspection": _with_token(lambda world, token: world.client.introspect(token, world.introspector)),
    "revocation": _with_token(lambda world, token: world.client.revoke(token, world.introspector)),
    "userinfo": _with_token(lambda world, token: world.client.fetch_userinfo(token)),
    "authorize": _authorize,
    "end session": _signing_out,
    "page of signing in": _begin_sign_in,
    "right password": _wrong_or_right(None),
    "wrong password": _wrong_or_right("wrong and unique"),
    "account": _account,
    "console, reading": _at_the_console(lambda browser, path: browser.open(path)),
    "console, writing": _at_the_console(lambda browser, path: browser.submit({"name": "New"}, form="page-form")),
    "management, reading": _managing("GET", "/organizations/{organization}/users"),
    "management, writing": _managing("POST", "/organizations/{organization}/projects", {"name": "New"}),
    "management, refused": _managing("POST", "/organizations", {"name": "New"}),
    "readiness": lambda world: lambda: world.client.get(f"{world.issuer}/readyz"),
}
#: Forms, which cannot be sent twice.
ONCE = frozenset({"right password", "wrong password", "console, writing"})
ALWAYS: dict[str, Asking] = {
    "discovery": lambda world: lambda: world.client.get(world.issuer + DISCOVERY_PATH),
    "keys": lambda world: lambda: world.client.fetch_jwks(),
    "liveness": lambda world: lambda: world.client.get(f"{world.issuer}/healthz"),
}


def check(answer: Any) -> None:
    """The response is normal, or 503 with Retry-After, and does not reveal the cause."""
    location = answer.headers.get("Location", "")
    assert "server_error" not in location, location
    if answer.status_int >= 500:
        assert (answer.status_int, answer.headers.get("Retry-After")) == (503, "5"), answer
        for secret_part in ("127.0.0.1", "postgres", "psycopg", "Traceback"):
            assert secret_part not in answer.text


@contextmanager
def heard() -> Iterator[io.StringIO]:
    """The log output during the block."""
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(PlainFormatter())
    logging.getLogger().addHandler(handler)
    try:
        yield output
    finally:
        logging.getLogger().removeHandler(handler)


def _held_connections(world: World) -> int:
    backend = world.identity.backend
    assert isinstance(backend, SqlBackend)
    opened = backend._open_pools()
    return opened.read_pool.in_use + opened.writer.pool.in_use


@pytest.mark.sampled(1, thorough=4)
@pytest.mark.parametrize("and_stays_away", [False, True], ids=["lost", "delivered, and the server stays away"])
@pytest.mark.parametrize("name", ASKING)
def test_connection_loss_at_any_moment(relayed: tuple[World, TcpProxy], name: str, and_stays_away: bool) -> None:
    world, relay = relayed
    with heard() as log:
        for moment in range(1, 100):
            ask = ASKING[name](world)
            world.identity.process_state.key_ring.invalidate()
            relay.cut(moment, delivered=and_stays_away, for_good=and_stays_away)
            answer = ask()
            was_cut = relay.has_cut
            relay.restore()
            check(answer)
            assert _held_connections(world) == 0
            if not was_cut:
                break
        assert answer.status_int < 500
        assert moment > 1
    assert "Traceback" not in log.getvalue(), log.getvalue()
    assert "password" not in log.getvalue()


@pytest.mark.parametrize("name", ALWAYS)
def test_responses_without_database_during_an_outage(relayed: tuple[World, TcpProxy], name: str) -> None:
    world, relay = relayed
    ask = ALWAYS[name](world)
    assert ask().status_int == 200
    world.clock.advance(60)
    relay.refuse_connections()
    try:
        assert ask().status_int == 200
    finally:
        relay.restore()
        world.clock.reset()


def test_database_outage_and_recovery(relayed: tuple[World, TcpProxy]) -> None:
    """During the outage no 5xx except 503; afterwards the service recovers at once."""
    world, relay = relayed
    asks = [prepare(world) for name, prepare in (ASKING | ALWAYS).items() if name not in ONCE]
    answers: list[Any] = []
    over = threading.Event()

    def hammer(number: int) -> None:
        turn = number
        while not over.is_set():
            answers.append(asks[turn % len(asks)]())
            turn += 7

    with ThreadPoolExecutor(4) as pool:
        lanes = [pool.submit(hammer, number) for number in range(4)]
        for _ in range(3):
            time.sleep(0.2)
            relay.refuse_connections()
            time.sleep(0.5)
            relay.restore()
        over.set()
        for lane in lanes:
            lane.result(_PATIENCE)
    for answer in answers:
        check(answer)
    assert any(answer.status_int == 503 for answer in answers)
    assert ALWAYS["keys"](world)().status_int == 200
    assert world.client.get(f"{world.issuer}/readyz").status_int == 200
    assert world.make_service_user_program().request_token().status_int == 200
    assert _held_connections(world) == 0


def test_background_failure_is_logged_in_one_line(
    relayed: tuple[World, TcpProxy], caplog: pytest.LogCaptureFixture
) -> None:
    world, relay = relayed
    identity, jobs = world.identity, world.identity.background_jobs
    work = (jobs.purge_with_lease, jobs.rotate_signing_key_if_due, jobs.record_expiring_keys, jobs.flush_last_used)
    worker = BackgroundWorker([BackgroundJob(item.__name__, timedelta(), item) for item in work])
    identity.process_state.key_ring.invalidate()
    identity.process_state.last_used_tracker.record_client_secret("none", world.clock())
    relay.refuse_connections()
    try:
        with caplog.at_level(logging.WARNING):
            for job in worker._jobs:
                job.due_at = 0.0
            worker.run_due()
    finally:
        relay.restore()
        identity.process_state.last_used_tracker.drain()
    assert [record.levelname for record in caplog.records] == ["WARNING"] * len(work)
    assert not any(record.exc_info for record in caplog.records)

"""Greenlets look things up together on PostgreSQL (identity/plugins/sql/lookups.py); each gets what it asked for."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest

from identity.concurrency import Event
from identity.plugins.sql import Settings, SqlBackend, lookups
from identity.plugins.sql.link import Link
from identity.plugins.sql.storage import SqlStorage
from identity.storage.backend import Storage
from identity.storage.contract.base import add
from identity.storage.contract.factories import (
    NOW,
    a_client_secret,
    a_digest,
    a_key,
    a_project,
    a_service_user,
    an_access_token,
    an_application,
    an_organization,
)
from identity.storage.contract.racing import in_greenlets
from identity.storage.contract.transactions import Transactions, committing
from identity.storage.errors import Unavailable

ORGANIZATION = an_organization()
PROJECT = a_project(ORGANIZATION)
ROBOT, OTHER = a_service_user(ORGANIZATION), a_service_user(ORGANIZATION)
KEY = a_key(ROBOT)
APPLICATIONS = [an_application(PROJECT) for _ in range(3)]
TOKENS = [an_access_token(ROBOT, digest=a_digest()) for _ in range(lookups.MOST + 2)]

Ask = Callable[[Storage], object]


class Scene:
    """Greenlets that ask, what each was told, and what the server was sent meanwhile."""

    def __init__(self, backend: SqlBackend, transactions: Transactions) -> None:
        self._backend = backend
        self._transactions = transactions
        self.sent: list[str] = []
        self.told: list[object] = []
        #: The number of the one who asks for all.
        self.first = -1

    def ask(self, *asks: Ask, of_first: Callable[[Link], object] = lambda _link: None) -> None:
        """Have each ask in a greenlet of its own; ``of_first`` is given the connection of the one who asks for all."""
        self.sent, self.told = [], [None] * len(asks)
        ready = Ready(len(asks))
        works = [self._asking(number, ask, ready, of_first) for number, ask in enumerate(asks)]
        in_greenlets(works)

    def _asking(self, number: int, ask: Ask, ready: "Ready", of_first: Callable[[Link], object]) -> Callable[[], None]:
        def asks() -> None:
            try:
                with self._backend.reading() as storage:
                    assert isinstance(storage, SqlStorage)
                    execute = storage.link.execute
                    if ready.last():
                        self.first = number
                        of_first(storage.link)
                    self._listen(storage.link)
                    self.told[number] = ask(storage)
                    storage.link.execute = execute
            except Unavailable as error:
                self.told[number] = type(error).__name__

        return asks

    def _listen(self, link: Link) -> None:
        execute = link.execute

        def heard(words: str, *parameters: object) -> object:
            self.sent.append(words)
            return execute(words, *parameters)

        link.execute = heard


class Ready:
    """Where so many greenlets wait until all of them are connected."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._count, self._all_here = 0, Event()

    def last(self) -> bool:
        """Return when all are here; True for the one that came last, which goes on before the others."""
        self._count += 1
        if self._count < self._number:
            self._all_here.wait()
            return False
        self._all_here.set()
        return True


@pytest.fixture
def backend(postgresql_url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(Settings(url=postgresql_url, pool_size=20))
    with committing(backend, Transactions()) as storage:
        for value in (ORGANIZATION, PROJECT, ROBOT, OTHER, KEY, *APPLICATIONS, *TOKENS):
            add(storage, value)
        storage.applications.add_secret(APPLICATIONS[0].id, a_client_secret())
        storage.applications.add_secret(APPLICATIONS[0].id, a_client_secret())
    yield backend
    backend.close()


@pytest.fixture
def scene(backend: SqlBackend) -> Scene:
    return Scene(backend, Transactions())


def token(number: int) -> Ask:
    return lambda storage: getattr(storage.tokens.find_issued(TOKENS[number].digest), "token", None)


def client(id_: str) -> Ask:
    def ask(storage: Storage) -> object:
        found = storage.applications.find_client(id_)
        return found and (found.application, len(found.secrets))

    return ask


def test_those_who_are_ready_ask_once_and_each_gets_its_own(scene: Scene) -> None:
    def unknown(storage: Storage) -> object:
        return storage.tokens.find_issued(a_digest())

    scene.ask(token(0), token(1), unknown, token(1), token(2))
    assert scene.told == [TOKENS[0], TOKENS[1], None, TOKENS[1], TOKENS[2]]
    assert len(scene.sent) == 1


def test_things_of_different_kinds_are_asked_for_apart(scene: Scene) -> None:
    scene.ask(token(0), client(APPLICATIONS[0].id), token(1), client(APPLICATIONS[1].id))
    assert scene.told == [TOKENS[0], (APPLICATIONS[0], 2), TOKENS[1], (APPLICATIONS[1], 0)]
    assert len(scene.sent) == 2


def test_who_is_alone_asks_as_a_thread_does(scene: Scene, backend: SqlBackend) -> None:
    scene.ask(token(0))
    alone = scene.sent
    scene.ask(token(0), token(1))
    assert alone != scene.sent
    with backend.reading() as storage:
        assert token(0)(storage) == TOKENS[0]
        assert alone[0].endswith("= %(token)s")


def test_more_than_fit_into_one_question_ask_two(scene: Scene) -> None:
    scene.ask(*(token(number) for number in range(len(TOKENS))))
    assert scene.told == TOKENS
    assert len(scene.sent) == 2


def test_a_key_is_found_for_its_own_service_user_alone(scene: Scene) -> None:
    def signer(user_id: str) -> Ask:
        return lambda storage: (found := storage.credentials.find_signer(KEY.id, user_id)) and found[0]

    scene.ask(signer(ROBOT.id), signer(OTHER.id), signer(ROBOT.id))
    assert scene.told == [KEY, None, KEY]
    assert len(scene.sent) == 1


@pytest.mark.parametrize("bad", ["nul\0", "lone \ud800"])
def test_who_asks_what_no_row_can_hold_spoils_nothing_for_others(scene: Scene, bad: str) -> None:
    for asks in ((bad, APPLICATIONS[0].id), (APPLICATIONS[0].id, bad)):
        scene.ask(*map(client, asks))
        assert scene.told == [None if one == bad else (APPLICATIONS[0], 2) for one in asks]


def test_in_a_snapshot_nobody_asks_for_others(backend: SqlBackend) -> None:
    """It sees what was committed when it began, and nothing else."""
    ready, transactions = Ready(3), Transactions()

    def look(storage: Storage) -> object:
        ready.last()
        return token(0)(storage)

    def before() -> object:
        with backend.snapshot() as storage:
            with committing(backend, transactions) as others:
                others.tokens.revoke_access(TOKENS[0].digest, NOW)
            return look(storage)

    def after() -> object:
        with backend.reading() as storage:
            return look(storage)

    revoked = replace(TOKENS[0], revoked_at=NOW)
    assert in_greenlets([after, before, after]) == [revoked, TOKENS[0], revoked]


def test_a_connection_that_is_lost_is_the_loss_of_whoever_has_it(scene: Scene, postgresql_url: str) -> None:
    def lose(link: Link) -> None:
        with psycopg.connect(postgresql_url.replace("+psycopg", ""), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (link.driver.info.backend_pid,))

    scene.ask(token(0), token(1), token(2), of_first=lose)
    assert scene.told == ["Unavailable" if number == scene.first else TOKENS[number] for number in range(3)]


def test_all_who_have_waited_long_are_told_so_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent server would be silent to each of them again."""
    monkeypatch.setattr(lookups, "_LONG", -1.0)

    def silence(link: Link) -> None:
        def silent(*_: object) -> None:
            raise psycopg.OperationalError("the server is silent")

        link.execute = silent

    scene.ask(token(0), token(1), token(2), of_first=silence)
    assert scene.told == ["Unavailable"] * 3
    assert len(scene.sent) == 1

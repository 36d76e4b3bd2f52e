"""An address of the metrics' own, and who is let in there."""

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from identity.ini_values import BadSetting
from identity.plugin_host import PluginHost
from identity.plugins.metrics import Settings
from identity.plugins.metrics.counts import Counts
from identity.plugins.metrics.families import REQUESTS
from identity.plugins.metrics.shares import Share, Shares
from identity.testing.fixtures import MakeWorld
from identity.testing.world import World
from tests.house.served import free_port
from tests.plugins.metrics.conftest import TOKEN, Told, a_token_file


def asked(port: int, path: str = "/metrics", method: str = "GET", token: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@contextmanager
def listening(make_world: MakeWorld, folder: Path, **settings: str) -> Iterator[tuple[World, int]]:
    port = free_port()
    own = {"listen": f"127.0.0.1:{port}", "directory": str(folder / "metrics"), **settings}
    world = make_world(**{f"identity.plugin.metrics.{name}": value for name, value in own.items()})
    assert world.app is not None
    with world.identity.running():
        yield world, port


def test_there_are_metrics_and_nothing_else(make_world: MakeWorld, tmp_path: Path) -> None:
    with listening(make_world, tmp_path) as (world, port):
        status, text = asked(port)
        assert status == 200
        assert Told(text).value("identity_storage_up") == 1
        assert asked(port, "/")[0] == 404
        assert asked(port, "/metrics", "POST")[0] == 501
        assert world.client.get(f"{world.issuer}/metrics").status_int == 404
    with pytest.raises(OSError, match="refused"):
        asked(port)


def test_a_token_is_asked_for_there_too(make_world: MakeWorld, tmp_path: Path) -> None:
    with listening(make_world, tmp_path, token_file=str(a_token_file(tmp_path))) as (_, port):
        assert asked(port)[0] == 401
        assert asked(port, token=f"{TOKEN}.")[0] == 401
        assert asked(port, token=TOKEN)[0] == 200


def test_whoever_says_nothing_keeps_nobody_waiting(make_world: MakeWorld, tmp_path: Path) -> None:
    with listening(make_world, tmp_path) as (_, port):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        assert asked(port)[0] == 200
        for one in silent:
            one.close()


def test_an_address_that_is_taken_stops_the_start(make_world: MakeWorld, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        world = make_world(**{"identity.plugin.metrics.listen": listen})
        with pytest.raises(BadSetting, match=re.escape(listen)), world.identity.running():
            pass


def refusal(**settings: str) -> str:
    with pytest.raises(BadSetting) as refused:
        PluginHost.load(["metrics"], {"metrics": settings})
    assert TOKEN not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("address", ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"])
def test_an_address_for_others_needs_a_token(address: str, tmp_path: Path) -> None:
    assert refusal(listen=address).startswith("identity.plugin.metrics.listen: ")
    assert "token_file" in refusal(listen=address)
    host = PluginHost.load(["metrics"], {"metrics": {"listen": address, "token_file": str(a_token_file(tmp_path))}})
    assert host.names == ("metrics",)


@pytest.mark.parametrize("address", ["9464", "localhost:9464", "127.0.0.1:99999", "127.0.0.1:", "127.0.0.1:x"])
def test_an_address_is_one(address: str) -> None:
    assert "must be an address and a port" in refusal(listen=address)


def test_a_token_file_holds_one_secret_for_its_owner(tmp_path: Path) -> None:
    path = a_token_file(tmp_path)
    path.chmod(0o640)
    assert "chmod 600" in refusal(token_file=str(path))
    path.chmod(0o600)
    for text in ("", "short", "two words that are long enough together", f"{TOKEN}\n{TOKEN}", f"{TOKEN}é"):
        path.write_text(text)
        assert "must hold one token" in refusal(token_file=str(path))
    assert "cannot be read" in refusal(token_file=str(tmp_path / "missing"))


def test_without_the_library_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.plugins.metrics.find_spec", lambda name: None)
    assert "identity[metrics]" in refusal(listen="127.0.0.1:9464")
    assert not Settings().enabled


class Process:
    """One of several processes, as far as the folder sees it."""

    def __init__(self, folder: Path) -> None:
        self.shares, self.counts = Shares(folder), Counts()
        self.shares.begin()

    def answer(self, times: int) -> None:
        for _ in range(times):
            self.counts.count(REQUESTS, "token", "200")
        self.shares.put(Share(self.counts.snapshot()))

    def sum(self) -> float:
        found = [one.counted for one in self.shares.others()] + [self.counts.snapshot()]
        return sum(one.get(REQUESTS.name, {}).get(("token", "200"), [0])[0] for one in found)


def test_processes_add_up_and_the_dead_stay_in_the_sum(tmp_path: Path) -> None:
    first, second = Process(tmp_path), Process(tmp_path)
    first.answer(2)
    second.answer(3)
    assert first.sum() == second.sum() == 5
    second.shares.end()
    assert first.sum() == 5
    assert [one.process for one in first.shares.others()] == [None]
    third = Process(tmp_path)
    third.answer(1)
    assert first.sum() == third.sum() == 6
    first.shares.end()
    fourth = Process(tmp_path)
    assert fourth.sum() == third.sum() == 6
    # What the dead have left is put together: the folder does not grow.
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_whoever_begins_where_nobody_lives_begins_at_nought(tmp_path: Path) -> None:
    before = Process(tmp_path)
    before.answer(7)
    before.shares.end()
    assert Process(tmp_path).sum() == 0
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize("content", ["", "[]", '{"counted": {"identity_requests": [[["a"], [1]], [["a", "b"], []]]}}'])
def test_what_cannot_be_read_in_the_folder_harms_nobody(tmp_path: Path, content: str) -> None:
    process = Process(tmp_path)
    process.answer(2)
    (tmp_path / "1-other.json").write_text(content)
    assert process.sum() == 2

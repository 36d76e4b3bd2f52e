"""Which faults run where, and which process of a service is asked."""

import argparse
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from faults.__main__ import FAULTS, _is_wanted
from faults.client import Client, Tally
from faults.storages import STORAGES


def wanted(*, quick: bool, only: list[str] | None = None) -> set[tuple[str, str]]:
    given = argparse.Namespace(quick=quick, only=only)
    return {(one.name, storage) for one in FAULTS for storage in STORAGES if _is_wanted(one, storage, given)}


def test_a_quick_run_has_each_fault_and_is_a_part_of_the_whole() -> None:
    quick, whole = wanted(quick=True), wanted(quick=False)
    assert {name for name, _ in quick} == {name for name, _ in whole} == {one.name for one in FAULTS}
    assert quick < whole
    assert {storage for name, storage in quick if name == "kill-all"} == set(STORAGES)
    assert {storage for _, storage in quick} == set(STORAGES)


def test_one_fault_alone_runs_on_the_storages_that_can_have_it() -> None:
    assert wanted(quick=False, only=["frozen"]) == {("frozen", one) for one in ("postgresql", "pgbouncer", "mariadb")}


class _Node(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps(self.connection.getsockname()[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ports() -> Iterator[list[int]]:
    servers = [HTTPServer(("127.0.0.1", 0), _Node) for _ in range(2)]
    threads = [threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}) for one in servers]
    for thread in threads:
        thread.start()
    yield [one.server_address[1] for one in servers]
    for one, thread in zip(servers, threads, strict=True):
        one.shutdown()
        thread.join()
        one.server_close()


@pytest.mark.parametrize("in_turn", [True, False])
def test_who_judges_asks_each_process_in_turn_and_others_stay_with_theirs(ports: list[int], in_turn: bool) -> None:
    tally = Tally()
    with closing(Client(ports, "localhost", tally, in_turn=in_turn)) as client:
        answers = [client.get("/", {}, 200) for _ in range(4)]
    assert tally.offences == []
    assert [one and one.members for one in answers] == (2 * ports if in_turn else 4 * ports[:1])

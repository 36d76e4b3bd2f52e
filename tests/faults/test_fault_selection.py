"""Which faults run on which storage, and which process gets a request."""

import argparse
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from faults.__main__ import FAULTS, _is_selected, is_passed
from faults.fault_run import Fault, FaultReport
from faults.http_client import FailoverClient, ResponseClass, ResponseTally
from faults.storages import STORAGES


def selected(*, quick: bool, only: list[str] | None = None) -> set[tuple[str, str]]:
    options = argparse.Namespace(quick=quick, only=only)
    return {(fault.name, storage) for fault in FAULTS for storage in STORAGES if _is_selected(fault, storage, options)}


def test_quick_run_has_each_fault_and_is_a_part_of_the_whole() -> None:
    quick, whole = selected(quick=True), selected(quick=False)
    assert {name for name, _ in quick} == {name for name, _ in whole} == {fault.name for fault in FAULTS}
    assert quick < whole
    assert {storage for name, storage in quick if name == "kill-all"} == set(STORAGES)
    assert {storage for _, storage in quick} == set(STORAGES)


def test_selected_fault_runs_on_its_storages() -> None:
    assert selected(quick=False, only=["frozen"]) == {
        ("frozen", item) for item in ("postgresql", "pgbouncer", "mariadb")
    }


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
    threads = [threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}) for server in servers]
    for thread in threads:
        thread.start()
    yield [server.server_address[1] for server in servers]
    for http_server, thread in zip(servers, threads, strict=True):
        http_server.shutdown()
        thread.join()
        http_server.server_close()


@pytest.mark.parametrize(("stays", "turns"), [(1, [0, 1, 0, 1]), (2, [0, 0, 1, 1]), (None, [0, 0, 0, 0])])
def test_processes_are_used_in_turn(ports: list[int], stays: int | None, turns: list[int]) -> None:
    tally = ResponseTally()
    with closing(FailoverClient(ports, "localhost", tally, stays=stays)) as client:
        answers = [client.get("/", {}, 200) for _ in range(4)]
    assert tally.violations == []
    assert [received_response and received_response.json for received_response in answers] == [
        ports[turn] for turn in turns
    ]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"


@pytest.mark.parametrize("is_reset", [True, False])
@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", ResponseClass.REFUSED),
        (HEAD + b"\r\n12345", ResponseClass.CUT),
        (HEAD + b"\r\n1234567890", ResponseClass.RIGHT),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123", ResponseClass.CUT),
    ],
)
def test_partial_response_is_distinguished_from_none(sent: bytes, kind: ResponseClass, is_reset: bool) -> None:
    assert kind_of(sent, is_reset) is kind


@pytest.mark.parametrize("sent", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Ty"])
def test_incomplete_head_is_a_partial_response(sent: bytes) -> None:
    assert kind_of(sent, is_reset=False) is ResponseClass.CUT


def kind_of(sent: bytes, is_reset: bool) -> ResponseClass:
    """How a client classifies these bytes followed by the end of the connection."""
    tally = ResponseTally()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(sent)
                read.wait(10)
                if is_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        read = threading.Event()
        thread = threading.Thread(target=answer)
        thread.start()
        # Let the client read first: the reset discards data that it has not read.
        timer = threading.Timer(0.05, read.set)
        timer.start()
        with closing(FailoverClient(listener.getsockname()[1:], "localhost", tally)) as client:
            client.get("/", {}, 200)
        thread.join()
    [kind] = tally.counts
    return kind


OPTIONS = argparse.Namespace(strict=False, storage=None)
STRICT = argparse.Namespace(strict=True, storage=None)
FAULT = Fault("a", "A fault", lambda scene: None)


def test_skipped_fault_fails_in_strict_mode() -> None:
    tried, skipped = FaultReport(FAULT, "sqlite"), FaultReport(FAULT, "sqlite", skipped="only root can")
    assert is_passed([tried], [], STRICT)
    for reports, left_out in (([tried, skipped], []), ([tried], ["galera"])):
        assert is_passed(reports, left_out, OPTIONS)
        assert not is_passed(reports, left_out, STRICT)


def test_selected_storage_must_be_available() -> None:
    assert not is_passed(
        [FaultReport(FAULT, "sqlite")], ["galera"], argparse.Namespace(strict=False, storage=["galera"])
    )
    assert not is_passed([], [], OPTIONS)


def test_each_fault_describes_its_symptom() -> None:
    """A fault is confirmed by errors that clients see or by a check of its own; without either it could silently not
    happen."""
    by_themselves = {"worker", "reload", "redemptions", "resets", "hostile", "rotations", "slow", "purge"}
    # How long MariaDB must be silent until clients see an error depends on chance and on the load.
    by_themselves |= {"frozen", "damaged"}
    assert {fault.name for fault in FAULTS if not fault.expected_classes} == by_themselves
    assert all(fault.expected_classes for fault in FAULTS if fault.name == "frozen" and "postgresql" in fault.storages)

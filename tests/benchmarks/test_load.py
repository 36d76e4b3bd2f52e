"""The load generator sends the specified requests, and stops at the first unexpected response."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.load_generator import (
    ExpectedBodies,
    LoadSpec,
    UnexpectedResponse,
    require_expected,
    run_load,
    run_paced_load,
)

OK = {200: b"hello"}
FOUND = {303: b"https://app.example/?code="}


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    clients: list[tuple[str, int]]

    def do_GET(self) -> None:
        self.clients.append(self.client_address)
        body = b"hello" if self.path == "/hello" else b""
        self.send_response(200 if body else 303)
        self.send_header("Content-Length", str(len(body)))
        if not body:
            self.send_header("LOCATION", f"https://app.example/?code={self.path[1:]}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[tuple[tuple[str, int], list[tuple[str, int]]]]:
    """The address of a small server, and the addresses of its clients, one per request."""
    clients: list[tuple[str, int]] = []
    handler = type("Handler", (Answering,), {"clients": clients})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield ("127.0.0.1", server.server_port), clients
        finally:
            server.shutdown()
            thread.join()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_each_request_is_sent_once_and_locations_are_handed_back() -> None:
    with serving() as (address, clients):
        answers = run_load(
            LoadSpec(address, [get(f"/{item}") for item in range(5)], FOUND, 2, 10.0, stores_responses=True)
        )
    assert {content[-1:] for content in answers.bodies} == {b"0", b"1", b"2", b"3", b"4"}
    assert answers.statuses == {303: 5}
    assert len(answers.latencies) == len(clients) == 5


@pytest.mark.parametrize(("path", "expected"), [("/hello", FOUND), ("/other", OK), ("/hello", {200: b"bye"})])
def test_another_answer_ends_the_load(path: str, expected: ExpectedBodies) -> None:
    with serving() as (address, _), pytest.raises(UnexpectedResponse):
        run_load(LoadSpec(address, [get(path)], expected, 1, 10.0))


def test_spaces_in_json_are_no_difference() -> None:
    for body in (b'{"active": true, "sub": "it"}', b'{"active":true,"sub":"it"}'):
        require_expected({200: b'"active":true'}, 200, body)
        with pytest.raises(UnexpectedResponse):
            require_expected({200: b'"active":false'}, 200, body)


def test_pace_is_kept() -> None:
    with serving() as (address, _):
        paces = [LoadSpec(address, [get("/hello")] * 100, OK, per_second=50, seconds=0.2) for _ in range(2)]
        load_results = run_paced_load(paces)
    assert [len(answers.latencies) for answers in load_results] == [10, 10]
    assert all(answers.elapsed >= 0.18 for answers in load_results)


@pytest.mark.thorough
def test_queued_request_latency_counts_from_its_due_time() -> None:
    with serving() as (address, _):
        # A rate that no server reaches over one connection.
        [answers] = run_paced_load([LoadSpec(address, [get("/hello")] * 200, OK, per_second=1e6, seconds=1.0)])
    assert answers.latencies == sorted(answers.latencies)

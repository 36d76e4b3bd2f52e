"""An ambiguous request is refused once, then the connection closes. Exceptions: docs/reference/servers_framing.csv."""

import re
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.server_conformance.ambiguous_requests import CORPUS, SMUGGLED
from tests.server_conformance.conftest import TABLE, table
from tests.server_conformance.servers import ServerProcess

EXCEPTIONS = table(TABLE.with_name("servers_framing.csv"))
GOOD = b"GET /good HTTP/1.1\r\nHost: x\r\n\r\n"
#: The request after the ambiguous one. If it is read, it is answered, and then the connection closes.
LAST = SMUGGLED.replace(b"/healthz", b"/smuggled").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
#: Seconds to wait for a server that expects the rest of a request.
WATCHED = 3
LARGE = 1 << 16


def outcome(request: bytes, answer: bytes) -> str:
    """How a server handled the request; "answered twice" if it answered data after a refusal."""
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d\d\d) ", answer)]
    if not statuses:
        # Part of a large request may still be in transit; then the reset of the connection destroys the refusal.
        return "closed" if len(request) < LARGE else "refused"
    if all(status >= 400 for status in statuses):
        return "refused" if len(statuses) == 1 else "refused twice"
    return "read" if all(status == 200 for status in statuses) else "answered twice"


def outcomes(server: ServerProcess, pieces: Callable[[bytes], list[bytes]], before: bytes = b"") -> dict[str, str]:
    """The outcomes of the corpus's requests that are not refused, each sent after ``before``."""

    def ask(name: str) -> str:
        expected = EXCEPTIONS.get(name, {}).get(server.kind.name)
        timeout = WATCHED if expected == "waits" else None
        try:
            answer = server.say(*pieces(CORPUS[name]), LAST, before=before, timeout=timeout)
        except TimeoutError:
            return "waits"
        return outcome(CORPUS[name], answer)

    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(CORPUS, pool.map(ask, CORPUS), strict=True))
    for name, row in EXCEPTIONS.items():
        if row[server.kind.name] == "varies" and found[name] in {"read", "refused"}:
            found[name] = "varies"
    return {name: behaviour for name, behaviour in found.items() if behaviour != "refused"}


def exceptions(server: ServerProcess) -> dict[str, str]:
    """The expected outcomes, from the table."""
    return {name: row[server.kind.name] for name, row in EXCEPTIONS.items() if row[server.kind.name] != "refused"}


def test_ambiguous_request_is_refused_once(server: ServerProcess) -> None:
    assert outcomes(server, lambda request: [request]) == exceptions(server)


def test_ambiguous_request_is_refused_behind_a_good_one(server: ServerProcess) -> None:
    assert outcomes(server, lambda request: [request], GOOD) == exceptions(server)


def test_ambiguous_request_is_refused_in_small_pieces(server: ServerProcess) -> None:
    def pieces(request: bytes) -> list[bytes]:
        cuts = range(0, min(len(request), 400), 3)
        return [request[at : at + 3] for at in cuts] + [request[len(cuts) * 3 :]]

    assert outcomes(server, pieces) == exceptions(server)


@pytest.mark.requirement("Ambiguous requests end where RFC 9112 says, and nothing is answered after a refusal")
def test_request_framing_follows_rfc_9112(server: ServerProcess) -> None:
    """The application receives the body, and the next request starts after it."""
    assert set(exceptions(server).values()) <= {"read", "closed", "waits", "varies"}
    for name in (name for name, outcome in exceptions(server).items() if outcome == "read"):
        found = re.findall(rb'"path": "([^"]*)", "length": (\d+)', server.say(CORPUS[name], LAST))
        lengths = {b"/oauth/v2/token": b"12", b"/healthz": b"0", b"/smuggled": b"0"}
        assert found, name
        assert all(lengths[path] == length for path, length in found), (name, found)


@pytest.mark.requirement("Chunked bodies are read however they are split; extensions and trailers are ignored")
def test_good_chunks_are_read_however_they_are_cut(server: ServerProcess) -> None:
    head = b"POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = head + b"4;a=b\r\ngran\r\n008\r\nt_type=x\r\n0\r\nX-Sum: 1\r\n\r\n" + LAST
    for cut in (1, 2, 7, 1000):
        answer = server.say(*(whole[at : at + cut] for at in range(0, len(whole), cut)))
        assert re.findall(rb'"path": "([^"]*)", "length": (\d+)', answer) == [(b"/chunks", b"12"), (b"/smuggled", b"0")]


@pytest.mark.requirement("Pipelined requests are answered in order")
def test_pipelined_requests_are_answered_in_order(server: ServerProcess) -> None:
    post = b"POST /%d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    answer = server.say(b"".join(post % number for number in range(30)) + LAST)
    paths = re.findall(rb'"path": "/(\d+)", "length": 3', answer)
    assert paths == [b"%d" % number for number in range(30)]
    assert b'"path": "/smuggled"' in answer


@pytest.mark.requirement("A line break in a response header is an error and is not sent")
def test_response_header_with_line_break_is_an_error(server: ServerProcess) -> None:
    answer = server.say(GOOD.replace(b"/good", b"/two-headers").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 500 "), answer
    assert b"set-cookie" not in answer.lower()


@pytest.mark.requirement("An error in the application gets 500, without its message")
def test_failure_of_the_application_is_not_shown(server: ServerProcess) -> None:
    answer = server.say(GOOD.replace(b"/good", b"/fails").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 500 "), answer
    assert b"secret" not in answer
    assert b"Traceback" not in answer


@pytest.mark.requirement("A response shorter than its Content-Length ends the connection")
def test_short_response_ends_the_connection(server: ServerProcess) -> None:
    answer = server.say(GOOD.replace(b"/good", b"/short"))
    assert answer.endswith(b"\r\n\r\none")


@pytest.mark.requirement("After a response with Connection: close from the application, no request is answered")
def test_no_request_is_answered_behind_a_last_response(server: ServerProcess) -> None:
    for pieces in ([GOOD.replace(b"/good", b"/close") + LAST], [GOOD.replace(b"/good", b"/close"), LAST]):
        assert server.say(*pieces).endswith(b"\r\n\r\nlast")


@pytest.mark.requirement("HTTP/1.0, HEAD and responses without a body follow RFC 9112")
def test_responses_without_a_body_have_none(server: ServerProcess) -> None:
    head = server.say(GOOD.replace(b"GET", b"HEAD") + LAST)
    first, _, rest = head.partition(b"\r\n\r\n")
    assert b"content-length: " in first.lower()
    assert rest.startswith(b"HTTP/1.1 200 ")
    nothing, _, rest = server.say(GOOD.replace(b"/good", b"/nothing") + LAST).partition(b"\r\n\r\n")
    assert nothing.startswith(b"HTTP/1.1 204 ")
    assert b"content-length" not in nothing.lower()
    assert rest.startswith(b"HTTP/1.1 200 ")
    assert b'"path": "/old"' in server.say(b"GET /old HTTP/1.0\r\n\r\n")


@pytest.mark.requirement("Forwarding headers do not change the connection data that the application sees")
def test_forwarding_headers_are_left_to_the_application(server: ServerProcess) -> None:
    forwarded = (
        b"\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.7;proto=https\r\n\r\n"
    )
    answer = server.say(LAST.replace(b"\r\n\r\n", forwarded))
    assert b'"client": "127.0.0.1", "scheme": "http"' in answer


@pytest.mark.requirement("No header reveals the server and its version")
def test_server_does_not_name_itself(server: ServerProcess) -> None:
    head = server.say(LAST).partition(b"\r\n\r\n")[0]
    assert not re.search(rb"gunicorn|uvicorn|waitress|h11|httptools", head, re.IGNORECASE)


@pytest.mark.requirement("A request line of 16 KiB is read")
def test_long_request_line_is_read(server: ServerProcess) -> None:
    assert server.say(LAST.replace(b"/smuggled", b"/smuggled?" + b"x" * 16_000)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.requirement("A request line, header or header section of 100 KiB is refused with 4xx")
def test_large_head_is_refused(server: ServerProcess) -> None:
    for name, request in {
        "line": LAST.replace(b"/smuggled", b"/smuggled?" + b"x" * 100_000),
        "field": LAST.replace(b"Host: x\r\n", b"Host: x\r\nX: " + b"x" * 100_000 + b"\r\n"),
        "fields": LAST.replace(b"Host: x\r\n", b"Host: x\r\n" + b"X: x\r\n" * 18_000),
    }.items():
        assert server.say(request).startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), name


@pytest.mark.requirement("An endless header section is refused before it takes 1 MiB of memory")
def test_endless_head_is_refused(server: ServerProcess) -> None:
    for line in (b"X: " + b"x" * 1000 + b"\r\n", b"x" * 1000):
        sent = 0
        with server.connect() as connection, suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + (b"" if line.endswith(b"\n") else b"X: "))
            while sent < 16 << 20 and not select.select([connection], [], [], 0)[0]:
                sent += connection.send(line)
        # The kernel buffers a few megabytes.
        assert sent < 8 << 20

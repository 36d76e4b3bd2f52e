"""A head that is the same as the one before on its connection is not read anew, and means what it would alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waitress.adjustments import Adjustments

from identity.server.framing import Memory, StrictParser

ADJUSTMENTS = Adjustments(max_request_body_size=1000, max_request_header_size=3000)
#: What decides where a request ends, or who asks.
READ = (
    "headers", "path", "query", "command", "version", "content_length", "chunked", "completed", "empty",
    "connection_close", "expect_continue", "headers_finished", "request_uri",
)  # fmt: skip

FIRST_LINES = st.sampled_from(
    [
        b"GET /a?b=c HTTP/1.1",
        b"POST /a HTTP/1.1",
        b"GET /a HTTP/1.0",
        b"GET //a HTTP/1.1",
        b"GET /a",
        b" GET / HTTP/1.1",
    ]
)
CREDENTIALS = st.sampled_from(
    [
        b"Authorization: Basic YTpi",
        b"authorization:Bearer  x ",
        b"Authorization: a\0b",
        b"Authorization: a\rb",
        b"Authorization: a\r\n b",
        b"Authorization : x",
        b"Authorization: " + b"z" * 2900,
        b"Cookie: a=b",
        b"COOKIE: c=d; e=f",
        b"Cookie:",
    ]
)
LINES = st.sampled_from(
    [
        b"Host: two.example",
        b"Proxy-Authorization: x",
        b"Content-Length: 3",
        b"Content-Length: 0",
        b"Content-Length: 1000",
        b"Content-Length: x",
        b"Transfer-Encoding: chunked",
        b"Expect: 100-continue",
        b"Connection: close",
        b"X: " + b"y" * 1500,
        b"X: " + b"y" * 2900,
    ]
)
BODIES = st.sampled_from([b"", b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"ab", b"abcGET / HTTP/1.1\r\n", b"x" * 1000])


@st.composite
def connections(draw: st.DrawFn) -> list[bytes]:
    """Requests of one client, mostly alike but for who asks."""
    first, lines = draw(FIRST_LINES), [b"Host: one.example", *draw(st.lists(LINES, max_size=2, unique=True))]
    requests = []
    for _ in range(draw(st.integers(2, 4))):
        asked = list(lines)
        for own in draw(st.lists(CREDENTIALS, max_size=2)):
            asked.insert(draw(st.integers(0, len(asked))), own)
        requests.append(b"\r\n".join([first, *asked, b"", draw(BODIES)]))
    return requests


def heard(data: bytes, memory: Memory, *, cut: int) -> tuple[Any, ...]:
    """What is read of a request that comes in two pieces: how many bytes, everything of them, and the body."""
    parser = StrictParser(ADJUSTMENTS, memory)
    taken = parser.received(data[:cut])
    while taken < len(data) and not parser.completed:
        more = parser.received(data[taken:])
        taken += more
        if not more:
            break
    error = parser.error and (type(parser.error), parser.error.body)
    seen = () if error else tuple(getattr(parser, name) for name in READ)
    body = None if error or not parser.completed else parser.get_body_stream().read()
    return taken, error, seen, body


@given(connections(), st.integers(0, 200))
def test_a_request_means_what_it_would_alone(requests: list[bytes], cut: int) -> None:
    memory = Memory()
    for data in requests:
        assert heard(data, memory, cut=cut or len(data)) == heard(data, Memory(), cut=cut or len(data))


COMMON = b"GET / HTTP/1.1\r\nHost: x\r\n"


POST = COMMON.replace(b"GET", b"POST")


@pytest.mark.parametrize(
    "again",
    [
        POST + b"Content-Length: 1000\r\n\r\n" + b"x" * 1000,
        POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        COMMON + b"Authorization: " + b"z" * 3000 + b"\r\n\r\n",
        COMMON + b"Authorization: a\0b\r\n\r\n",
        COMMON + b"Cookie: a\x7fb\r\n\r\n",
        COMMON + b"Authorization: a\r\nAuthorization: b\r\n\r\n",
    ],
)
def test_what_is_out_of_the_ordinary_is_so_each_time(again: bytes) -> None:
    memory = Memory()
    for data in (COMMON + b"\r\n", again, again, COMMON + b"\r\n", again):
        assert heard(data, memory, cut=len(data)) == heard(data, Memory(), cut=len(data))


def test_a_body_that_looks_like_the_head_is_a_body() -> None:
    head = POST + b"Content-Length: 100\r\n\r\n"
    body = head + b"x" * (100 - len(head))
    memory = Memory()
    for _ in range(2):
        parser = StrictParser(ADJUSTMENTS, memory)
        assert parser.received(head) == len(head)
        # The next request has come with it.
        assert parser.received(body + head + body) == 100
        assert parser.completed
        assert parser.get_body_stream().read() == body


@pytest.mark.parametrize("own", [b"Authorization: Basic YTpi\r\n", b"Cookie: a=b\r\n"])
def test_credentials_are_each_request_s_own(own: bytes) -> None:
    memory = Memory()
    name = own.partition(b":")[0].upper().decode()
    values = []
    for line in (own, b"", own.replace(b": ", b": x"), own):
        parser = StrictParser(ADJUSTMENTS, memory)
        parser.received(COMMON + line + b"\r\n")
        assert parser.completed
        assert parser.known is memory.head
        values.append(parser.headers.get(name))
    value = own.decode().partition(": ")[2].strip()
    assert values == [value, None, f"x{value}", value]
    assert memory.head is not None
    assert value not in str(memory.head)


def test_the_same_head_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    times = []
    parse = StrictParser._parse
    monkeypatch.setattr(StrictParser, "_parse", lambda self, text: times.append(text) or parse(self, text))
    for number in range(3):
        StrictParser(ADJUSTMENTS, memory).received(COMMON + b"Authorization: Bearer %d\r\n\r\n" % number)
    assert len(times) == 1


def test_what_is_long_is_not_remembered() -> None:
    memory = Memory()
    StrictParser(ADJUSTMENTS, memory).received(COMMON + b"X: " + b"y" * 2100 + b"\r\n\r\n")
    assert memory.head is None

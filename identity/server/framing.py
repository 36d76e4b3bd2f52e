"""Where a request begins and ends, read in one way or refused: waitress's parser, made strict (RFC 9112 §6).

A proxy and a server that disagree about the end of a request let one person's request become part of another's. So
whatever could be read in two ways is answered once, with 400, and the connection ends.
"""

import re
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver, FixedStreamReceiver
from waitress.rfc7230 import HEADER_FIELD_RE
from waitress.utilities import BadRequest, RequestEntityTooLarge

_LENGTH, _ENCODING, _HOST = b"\r\ncontent-length:", b"\r\ntransfer-encoding:", b"\r\nhost:"
#: How many digits a Content-Length may have.
LONGEST_LENGTH = 15

#: Where a WSGI environment has the function that admits a body which the server has not read.
ADMIT_BODY = "identity.admit_body"
#: In a WSGI environment the address of whoever is connected, be it a proxy that speaks for others.
PEER = "identity.peer"
#: There if the request came with headers of a proxy, which may have been thrown away since.
FORWARDED = "identity.forwarded"

#: A chunk's size with its extensions, or one line of the trailer.
_LONGEST_LINE = 256
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_END = re.compile(rb"\r\n")
_TRAILER = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)?\r\n")


#: Headers that are different for each person or token, and kept by nobody, as waitress names them.
CREDENTIALS = ("AUTHORIZATION", "COOKIE")
_BLANK = b"\r\n\r\n"
_CREDENTIALS = re.compile(rb"\r\n(?:authorization|cookie):[^\r\n]*", re.IGNORECASE)
#: What is read from a head beside its headers.
_READ = (
    "first_line", "command", "version", "request_uri", "proxy_scheme", "proxy_netloc", "path", "query", "fragment",
    "url_scheme", "connection_close", "expect_continue", "content_length",
)  # fmt: skip
#: How long a head may be that is remembered.
_SHORT = 2048


@dataclass(slots=True)
class Head:
    """What was read from the head of a request, its credentials left out; and what the application is told of it."""

    text: bytes
    read: dict[str, Any]
    headers: dict[str, str]
    environ: dict[str, Any] | None = None


@dataclass(slots=True)
class Memory:
    """The last head of a connection. Programs mostly ask with the same one again, which need not be read anew."""

    head: Head | None = None


class StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """One request as it arrives; nothing that follows a refused one is ever read.

    One that is refused for its length can be ``admitted``: it is then read on from where it was left.
    """

    admitted = False
    headers_finished: bool

    def __init__(self, adj: Any, memory: Memory) -> None:
        super().__init__(adj)
        self.adj: Any
        #: The request's head, if it is remembered.
        self.known: Head | None = None
        self._memory = memory
        self._body: BytesIO | None = None
        self._left = b""
        self._expects = False
        self._to_answer = False

    def admit(self, most: int) -> None:
        """Take a body of so many bytes after all."""
        self.adj = copy(self.adj)
        self.adj.max_request_body_size = most + 1
        self.error, self.completed, self.admitted, self._to_answer = None, False, True, True
        left, self._left = self._left, b""
        if self.received(left) < len(left):
            # Whoever sends more before there is an answer says it again.
            self.headers["CONNECTION"] = "close"
        # Whoever has begun to send does not wait to be told (RFC 9110 §10.1.1).
        self.expect_continue = self._expects and not left

    def close(self) -> None:
        """Let go of the body, unless it was admitted just now: it may have come whole, and is yet to be answered."""
        if self._to_answer:
            self._to_answer = False
        else:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the body, whatever has come of it."""
        super().close()

    def received(self, data: bytes) -> int:
        """How many bytes belong to this request."""
        if whole := self._receive_whole(data):
            return whole
        if not self.headers_finished and (self.header_plus or data).lstrip(b"\r\n")[:1].isspace():
            self._refuse("Space before the request")
        consumed: int = 0 if self.error else super().received(data)
        if self.empty:
            self._refuse("No request")
        elif not self.headers_finished and _has_bare(self.header_plus.rstrip(b"\r")):
            self._refuse("Bare CR or LF")
        if isinstance(self.error, RequestEntityTooLarge):
            self._left += data[consumed:]
            # The other side is not told to go on before it is clear that it may.
            self._expects, self.expect_continue = self._expects or self.expect_continue, False
        return len(data) if self.error else consumed

    def get_body_stream(self) -> Any:
        """The body, to be read."""
        return super().get_body_stream() if self._body is None else self._body

    def _receive_whole(self, data: bytes) -> int:
        """How long the request is, if it has come in one piece and with the same head as the one before; 0 if not."""
        if self.headers_finished or self.header_plus:
            return 0
        begin = data.find(_BLANK) + len(_BLANK)
        head = data[:begin]
        if not self._is_known(head):
            return 0
        end: int = begin + self.content_length
        too_long = begin >= self.adj.max_request_header_size or self.content_length >= self.adj.max_request_body_size
        if too_long or self.expect_continue or end > len(data):
            return 0
        if self.content_length:
            self._body = BytesIO(data[begin:end])
        self.headers_finished = self.completed = True
        return end

    def parse_header(self, header_plus: bytes) -> None:
        """Read request line and headers; raises ParsingError."""
        if self._is_known(header_plus):
            if self.content_length:
                self.body_rcv = FixedStreamReceiver(self.content_length, OverflowableBuffer(self.adj.inbuf_overflow))
            return
        self._parse(header_plus)
        text = _CREDENTIALS.sub(b"", header_plus)
        if len(text) <= _SHORT and not self.chunked:
            headers = {name: value for name, value in self.headers.items() if name not in CREDENTIALS}
            self.known = Head(text, {name: getattr(self, name) for name in _READ}, headers)
            self._memory.head = self.known

    def _is_known(self, text: bytes) -> bool:
        """True if this head was read before; it then is read again, with the credentials that are given now."""
        last = self._memory.head
        if last is None:
            return False
        given = None
        if last.text != text:
            own = _CREDENTIALS.findall(text)
            if len(own) != 1 or last.text != _CREDENTIALS.sub(b"", text):
                return False
            given = HEADER_FIELD_RE.match(own[0][2:])
            if given is None:
                return False
        self.known = last
        self.__dict__.update(last.read)
        self.headers = dict(last.headers)
        if given is not None:
            self.headers[given["name"].upper().decode()] = given["value"].strip(b" \t").decode("latin-1")
        return True

    def _parse(self, header_plus: bytes) -> None:
        if _has_bare(header_plus):
            raise ParsingError("Bare CR or LF")
        if b"\r\n " in header_plus or b"\r\n\t" in header_plus:
            raise ParsingError("Folded header line")
        # Counted and not parsed: this is done for every request. A name in another form is refused by waitress.
        lowered = header_plus.lower()
        lengths, encodings, hosts = map(lowered.count, (_LENGTH, _ENCODING, _HOST))
        if lengths + encodings > 1:
            raise ParsingError("More than one Content-Length or Transfer-Encoding")
        if lengths:
            length = _value(lowered, _LENGTH)
            if not length.isdigit() or len(length) > LONGEST_LENGTH:
                raise ParsingError("Content-Length is invalid")
        if encodings and _value(lowered, _ENCODING) != b"chunked":
            raise ParsingError("Transfer-Encoding is not supported")
        super().parse_header(header_plus)
        if self.version not in ("1.0", "1.1") or (encodings and not self.chunked):
            raise ParsingError("HTTP version is not supported")
        if hosts > 1 or (not hosts and self.version == "1.1"):
            raise ParsingError("There has to be one Host")
        if self.chunked:
            self.body_rcv = Chunks(OverflowableBuffer(self.adj.inbuf_overflow))

    def _refuse(self, why: str) -> None:
        self.error = BadRequest(why)
        self.completed, self.empty = True, False


def _has_bare(text: bytes) -> bool:
    """True if a CR or LF stands alone in whole lines."""
    return not text.count(b"\r\n") == text.count(b"\n") == text.count(b"\r")


def _value(lowered: bytes, name: bytes) -> bytes:
    start = lowered.index(name) + len(name)
    return lowered[start : lowered.index(b"\r\n", start)].strip(b" ")


class Chunks(ChunkedReceiver):  # type: ignore[misc]
    """A body in chunks (RFC 9112 §7.1), to the letter; extensions and trailer are left unread, and short."""

    def __init__(self, buffer: Any) -> None:
        super().__init__(buffer)
        self._left = 0
        self._line = b""
        self._expected = _SIZE

    def received(self, data: bytes) -> int:
        """How many bytes belong to the body; ``error`` tells if it is malformed."""
        taken = 0
        while taken < len(data) and not self.completed and self.error is None:
            if self._left:
                piece = data[taken : taken + self._left]
                self.buf.append(piece)
                self._left -= len(piece)
                taken += len(piece)
            else:
                end = data.find(b"\n", taken) + 1
                self._line += data[taken : end or len(data)]
                taken = end or len(data)
                self._read_line(whole=end > 0)
        return taken

    def _read_line(self, *, whole: bool) -> None:
        found = self._expected.fullmatch(self._line) if whole else None
        if len(self._line) > _LONGEST_LINE or (whole and found is None):
            self.error = BadRequest("Chunked body is malformed")
        elif found is not None:
            self._line = b""
            if self._expected is _SIZE:
                self._left = int(found[1], 16)
                self._expected = _END if self._left else _TRAILER
            elif self._expected is _END:
                self._expected = _SIZE
            else:
                self.completed = found[0] == b"\r\n"

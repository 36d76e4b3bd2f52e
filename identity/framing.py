"""Where a request begins and ends, read in one way or refused: waitress's parser, made strict (RFC 9112 §6).

A proxy and a server that disagree about the end of a request let one person's request become part of another's. So
whatever could be read in two ways is answered once, with 400, and the connection ends.
"""

import re
from copy import copy
from typing import Any

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest, RequestEntityTooLarge

_LENGTH, _ENCODING, _HOST = b"\r\ncontent-length:", b"\r\ntransfer-encoding:", b"\r\nhost:"
#: How many digits a Content-Length may have.
LONGEST_LENGTH = 15

#: Where a WSGI environment has the function that admits a body which the server has not read.
ADMIT_BODY = "identity.admit_body"

#: A chunk's size with its extensions, or one line of the trailer.
_LONGEST_LINE = 256
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_END = re.compile(rb"\r\n")
_TRAILER = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)?\r\n")


class StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """One request as it arrives; nothing that follows a refused one is ever read.

    One that is refused for its length can be ``admitted``: it is then read on from where it was left.
    """

    admitted = False

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.adj: Any
        self._left = b""
        self._expects = False

    def admit(self, most: int) -> None:
        """Take a body of so many bytes after all."""
        self.adj = copy(self.adj)
        self.adj.max_request_body_size = most + 1
        self.error, self.completed, self.admitted = None, False, True
        self.expect_continue = self._expects
        left, self._left = self._left, b""
        if self.received(left) < len(left):
            # Whoever sends more before there is an answer says it again.
            self.headers["CONNECTION"] = "close"

    def close(self) -> None:
        """Let go of the body, unless it is still to be read."""
        if self.error is not None or self.completed:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the body, whatever has come of it."""
        super().close()

    def received(self, data: bytes) -> int:
        """How many bytes belong to this request."""
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

    def parse_header(self, header_plus: bytes) -> None:
        """Read request line and headers; raises ParsingError."""
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

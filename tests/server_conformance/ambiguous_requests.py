"""Malformed requests, and requests whose end is ambiguous (RFC 9112 §11.2)."""

BODY = b"grant_type=x"
CHUNKED = b"c\r\ngrant_type=x\r\n0\r\n\r\n"

AMBIGUOUS: dict[str, tuple[list[bytes], bytes]] = {
    "length and chunks": ([b"Content-Length: 12", b"Transfer-Encoding: chunked"], BODY),
    "chunks and length": ([b"Transfer-Encoding: chunked", b"Content-Length: 12"], BODY),
    "length and valid chunks": ([b"Content-Length: 22", b"Transfer-Encoding: chunked"], CHUNKED),
    "valid chunks and length": ([b"Transfer-Encoding: chunked", b"Content-Length: 22"], CHUNKED),
    "no length and valid chunks": ([b"Content-Length: 0", b"Transfer-Encoding: chunked"], CHUNKED),
    "two lengths": ([b"Content-Length: 12", b"Content-Length: 7"], BODY),
    "the same length twice": ([b"Content-Length: 12", b"Content-Length: 12"], BODY),
    "two lengths in one": ([b"Content-Length: 12, 7"], BODY),
    "no length at all": ([b"Content-Length:"], BODY),
    "a negative length": ([b"Content-Length: -12"], BODY),
    "a length with a sign": ([b"Content-Length: +12"], BODY),
    "a length in hexadecimal": ([b"Content-Length: 0xc"], BODY),
    "a length with an underscore": ([b"Content-Length: 1_2"], BODY),
    "a length with a tab": ([b"Content-Length:\t12"], BODY),
    "a length of 5000 digits": ([b"Content-Length: " + b"0" * 4998 + b"12"], BODY),
    "an unknown encoding": ([b"Transfer-Encoding: gzip, chunked"], CHUNKED),
    "an encoding that does nothing": ([b"Transfer-Encoding: identity"], BODY),
    "no encoding": ([b"Transfer-Encoding:", b"Content-Length: 12"], BODY),
    "nothing but a comma": ([b"Transfer-Encoding: ,"], CHUNKED),
    "chunked twice": ([b"Transfer-Encoding: chunked, chunked"], CHUNKED),
    "two encodings": ([b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"], CHUNKED),
    "an encoding with a tab": ([b"Transfer-Encoding:\tchunked"], CHUNKED),
    "an encoding with a vertical tab": ([b"Transfer-Encoding: \x0bchunked"], CHUNKED),
    "an encoding in quotes": ([b'Transfer-Encoding: "chunked"'], CHUNKED),
    "an encoding with a parameter": ([b"Transfer-Encoding: chunked;q=1"], CHUNKED),
    "space before the colon": ([b"Content-Length : 12"], BODY),
    "space before the colon of chunks": ([b"Transfer-Encoding : chunked"], CHUNKED),
    "a folded header": ([b"Transfer-Encoding:", b" chunked"], CHUNKED),
    "a folded header with a tab": ([b"X: y", b"\tContent-Length: 12"], BODY),
    "a folded first header": ([b" X: y", b"Content-Length: 12"], BODY),
    "a bare line feed": ([b"X: y\nContent-Length: 12"], BODY),
    "a bare carriage return": ([b"X: y\rContent-Length: 12"], BODY),
    "headers that end with bare line feeds": ([b"X: y\n\nContent-Length: 12"], BODY),
    "a NUL": ([b"X: y\0", b"Content-Length: 12"], BODY),
    "two hosts": ([b"Host: elsewhere.example", b"Content-Length: 12"], BODY),
    "a chunk size with a line feed": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"c\r\n", b"c\n\r\n", 1)),
    "a chunk that ends with a line feed": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"x\r\n", b"x\n", 1)),
    "chunks whose lines end with line feeds": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"\r", b"")),
    "a chunk with a sign": ([b"Transfer-Encoding: chunked"], b"+" + CHUNKED),
    "a chunk in 0x": ([b"Transfer-Encoding: chunked"], b"0x" + CHUNKED),
    "a chunk with space before its size": ([b"Transfer-Encoding: chunked"], b" " + CHUNKED),
    "a chunk with space behind its size": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"c\r", b"c \r", 1)),
    "a line between chunks": ([b"Transfer-Encoding: chunked"], b"\r\n" + CHUNKED),
    "a chunk that is too long for its size": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"c\r", b"b\r", 1)),
    "a chunk of 17 digits": ([b"Transfer-Encoding: chunked"], b"1" * 16 + CHUNKED),
    "an extension with a line feed": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"c\r", b"c;a\n\r", 1)),
    "a huge extension": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"c\r", b"c;" + b"a" * 70_000 + b"\r", 1)),
    "a trailer with a bare line feed": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"0\r\n", b"0\r\nX: y\n")),
    "a trailer that is none": ([b"Transfer-Encoding: chunked"], CHUNKED.replace(b"0\r\n", b"0\r\nGET / HTTP/1.1\r\n")),
}
#: Complete requests with an error in the first line.
LINES: dict[str, bytes] = {
    "chunks in HTTP/1.0": b"POST /oauth/v2/token HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/2.0": b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "line feeds alone": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "space before the request": b" GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "empty lines before the request": b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tab in the request line": b"GET\t/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "no method": b"/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
}


def _corpus() -> dict[str, bytes]:
    head = b"POST /oauth/v2/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    with_headers = {
        name: head + b"\r\n".join([*request_headers, b"", body]) for name, (request_headers, body) in AMBIGUOUS.items()
    }
    return with_headers | LINES


CORPUS = _corpus()
#: Follows each request on the connection, and must never be answered after a refusal.
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

"""Request line and headers, refused if ambiguous, and the address of the client."""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes

from identity.asgi.messages import Scope
from identity.settings import NO_PROXY

_LENGTH = re.compile(r"[0-9]{1,15}")
#: Headers in which proxies describe the client. They reach the service only as ``RequestHead.client_address``.
_FORWARDING_HEADERS = frozenset(
    {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-by", "forwarded"}
)
#: Headers that identify the client or delimit the request: a repeated one would be ambiguous.
_UNREPEATABLE_HEADERS = frozenset(
    {"host", "authorization", "dpop", "content-length", "content-type", "transfer-encoding", *_FORWARDING_HEADERS}
    | {"x-request-id", "x-real-ip", "client-cert", "client-cert-chain", "x-client-cert", "x-ssl-client-cert"}
    | {"ssl-client-cert", "x-forwarded-client-cert"}
)
_VERSIONS = frozenset({"1.0", "1.1"})


class InvalidRequestHead(Exception):
    """The request is refused before it is dispatched."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True)
class RequestHead:
    """A request without its body.

    ``path`` is PATH_INFO as in WSGI (PEP 3333), ``peer_address`` is the peer of the connection, ``client_address``
    the client, which may be behind the trusted proxy. Header names are in lower case. ``content_length`` is None for
    a chunked body.
    """

    method: str
    path: str
    query: str
    version: str
    headers: dict[str, str]
    peer_address: str
    client_address: str
    is_forwarded: bool
    content_length: int | None

    @property
    def expects_continue(self) -> bool:
        """True if the client waits for 100 Continue (RFC 9110 §10.1.1)."""
        return self.version == "1.1" and self.headers.get("expect", "").lower() == "100-continue"


def parse_request_head(scope: Scope, trusted_proxy: str) -> RequestHead:
    """Raises InvalidRequestHead."""
    version = scope["http_version"]
    if version not in _VERSIONS:
        raise InvalidRequestHead(505, "The service speaks HTTP/1.1.")
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = _name(raw_name), raw_value.decode("latin-1")
        if name not in headers:
            headers[name] = value
        elif name in _UNREPEATABLE_HEADERS:
            raise InvalidRequestHead(400, f"There must be one {name} header only.")
        else:
            headers[name] += ("; " if name == "cookie" else ", ") + value
    if version == "1.1" and "host" not in headers:
        raise InvalidRequestHead(400, "There must be a Host header.")
    address, port = scope.get("client") or ("", None)
    peer = address.strip("[]")
    client, is_forwarded = peer, False
    if not _FORWARDING_HEADERS.isdisjoint(headers):
        if port == 0:
            # Not a peer address: the server has replaced it by the value of a header, which any client can send.
            raise InvalidRequestHead(500, "The web server must not read X-Forwarded-For by itself.")
        is_forwarded = True
        if trusted_proxy not in ("", NO_PROXY) and peer == trusted_proxy and "x-forwarded-for" in headers:
            client = _last_forwarded_address(headers["x-forwarded-for"])
        for name in _FORWARDING_HEADERS:
            headers.pop(name, None)
    return RequestHead(
        method=scope["method"].upper(),
        path=_decoded_path(scope),
        query=scope["query_string"].decode("latin-1"),
        version=version,
        headers=headers,
        peer_address=peer,
        client_address=client,
        is_forwarded=is_forwarded,
        content_length=_content_length(headers, version),
    )


@lru_cache(200)
def _name(raw: bytes) -> str:
    name = raw.decode("latin-1").lower()
    if "_" in name:
        raise InvalidRequestHead(400, "The name of a header must not hold an underscore.")
    return name


def _content_length(headers: dict[str, str], version: str) -> int | None:
    encoding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if encoding is not None:
        if length is not None or version == "1.0":
            raise InvalidRequestHead(400, "The length of the body can be read in two ways.")
        if encoding.lower() != "chunked":
            raise InvalidRequestHead(501, "The only transfer coding is chunked.")
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise InvalidRequestHead(400, "Content-Length is invalid.")
    return int(length)


def _decoded_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    if not raw.startswith(b"/") and b"://" in raw:
        # The absolute form (RFC 9112 §3.2.2); the Host header has the same host.
        raw = b"/" + raw.partition(b"://")[2].partition(b"/")[2]
    raw = raw.partition(b"?")[0].partition(b"#")[0]
    if b"%" in raw:
        raw = unquote_to_bytes(raw)
    if not raw.startswith(b"/"):
        raw = b"/" + raw
    return raw.decode("latin-1")


def _last_forwarded_address(header: str) -> str:
    """The last address: the trusted proxy itself has added it."""
    host = header.rpartition(",")[2].strip().strip('"')
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        ip_address(host)
    except ValueError:
        raise InvalidRequestHead(400, "X-Forwarded-For is malformed.") from None
    return host

"""HTTP client for outbound requests: only to public addresses and configured networks, and exactly to the address
that was checked.
"""

import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from threading import Thread, Timer
from time import monotonic
from urllib.parse import SplitResult, unquote, urlsplit

from identity.fair_semaphore import FairSemaphore, NoFreeSlot

Network = IPv4Network | IPv6Network
#: Resolves a host name within a number of seconds. Raises OSError.
HostResolver = Callable[[str, float], Sequence[str]]

#: Responses are read up to this size.
MAX_RESPONSE_BYTES = 64 * 1024

_PORTS = {"https": 443, "http": 80}
#: These addresses carry an IPv4 address in their last bits (RFC 6052 §2.1).
_NAT64 = ip_network("64:ff9b::/96")
#: Special-purpose networks (RFC 6890) that the standard library does not know in every version: protocol assignments,
#: 6to4 relays, dummy prefix, documentation (RFC 9637), segment routing.
_SPECIAL_NETWORKS = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "100:0:0:1::/64", "3fff::/20", "5f00::/16")),
)


class ForbiddenDestination(OSError):
    """The request was not sent: no address of the host is allowed."""


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """Status, the beginning of the body, and the header Cache-Control."""

    status: int
    body: bytes = field(repr=False)
    cache_control: str = ""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """True for public internet addresses; an address that carries an IPv4 address is judged by that."""
    if isinstance(address, IPv6Address):
        carried = address.ipv4_mapped or address.sixtofour
        if carried is None and address in _NAT64:
            carried = IPv4Address(int(address) & 0xFFFFFFFF)
        if carried is not None:
            return is_public(carried)
        if address.is_site_local:
            return False
    if any(address in network for network in _SPECIAL_NETWORKS):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def resolve_host(host: str, seconds: float) -> Sequence[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


#: Limits concurrent name lookups: getaddrinfo may go on long after the caller's timeout.
_MAX_CONCURRENT_RESOLUTIONS = 32


class DeadlineResolver:
    """Resolves with the system's resolver, but gives up after the timeout."""

    def __init__(self) -> None:
        self._semaphore = FairSemaphore(_MAX_CONCURRENT_RESOLUTIONS)

    def __call__(self, host: str, seconds: float) -> Sequence[str]:
        """Raises OSError, also if too many lookups are in progress."""
        try:
            leave = self._semaphore.acquire()
        except NoFreeSlot:
            raise TimeoutError("too many names are looked up just now") from None
        future: Future[Sequence[str]] = Future()
        Thread(target=self._resolve, args=(host, future, leave), name="identity-names", daemon=True).start()
        try:
            return future.result(seconds)
        except FutureTimeout:
            raise TimeoutError("no name server has answered") from None

    def _resolve(self, host: str, future: "Future[Sequence[str]]", leave: Callable[[], None]) -> None:
        try:
            future.set_result(resolve_host(host, 0))
        except (OSError, UnicodeError) as problem:
            future.set_exception(OSError(type(problem).__name__))
        finally:
            leave()


class OutboundHttpClient:
    """Sends requests that take at most ``seconds`` from connecting to the end of the response.

    ``networks`` are allowed in addition to public addresses. Redirects are not followed, and proxy variables of the
    environment are ignored. With ``bounds_name_lookups``, looking up a name ends after that time, too. With a
    ``proxy``, the proxy decides which destinations are allowed.
    """

    def __init__(
        self,
        *,
        networks: Sequence[Network] = (),
        seconds: float = 5,
        resolve: HostResolver | None = None,
        bounds_name_lookups: bool = False,
        ca_file: Path | None = None,
        proxy: str = "",
    ) -> None:
        self._networks = tuple(networks)
        self._seconds = seconds
        self._resolve = resolve or (DeadlineResolver() if bounds_name_lookups else resolve_host)
        self._ca_file = ca_file
        self._proxy = urlsplit(proxy) if proxy else None

    @staticmethod
    def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
        """Parse networks and single addresses. Raises ValueError."""
        return tuple(ip_network(text) for text in texts)

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> OutboundResponse:
        """The response, within ``seconds`` if that is shorter. Raises ForbiddenDestination, other OSErrors,
        HTTPException.
        """
        parts = urlsplit(url)
        ends_at = monotonic() + min(self._seconds, self._seconds if seconds is None else seconds)
        with (
            closing(self._create_connection(parts, ends_at)) as connection,
            _enforce_deadline(connection.sock, ends_at),
        ):
            connection.request(method, self._request_target(parts, url), body=body, headers=dict(headers))
            answer = connection.getresponse()
            body = answer.read(MAX_RESPONSE_BYTES)
        # A response that was cut off can look complete.
        _remaining_seconds(ends_at)
        return OutboundResponse(answer.status, body, answer.getheader("Cache-Control", ""))

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to an allowed address of the host, for another protocol. Raises ForbiddenDestination, other
        OSErrors.
        """
        return self._connect(host, port, monotonic() + self._seconds)

    def _create_connection(self, parts: SplitResult, ends_at: float) -> HTTPConnection:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        plain = self._connect(host, port, ends_at)
        try:
            if parts.scheme == "http":
                connection = HTTPConnection(host, port)
                connection.sock = plain
                return connection
            with _enforce_deadline(plain, ends_at):
                if self._proxy is not None:
                    self._tunnel(plain, host, port)
                context = ssl.create_default_context(cafile=self._ca_file)
                secured = context.wrap_socket(plain, server_hostname=host)
            connection = HTTPSConnection(host, port, context=context)
            connection.sock = secured
            return connection
        except BaseException:
            plain.close()
            raise

    def _connect(self, host: str, port: int, ends_at: float) -> socket.socket:
        if self._proxy is not None:
            target = self._proxy.hostname or "", self._proxy.port or _PORTS["http"]
            return socket.create_connection(target, timeout=_remaining_seconds(ends_at))
        found = [ip_address(item.partition("%")[0]) for item in self._resolve(host, _remaining_seconds(ends_at))]
        allowed = [item for item in found if is_public(item) or self._is_allowed_network(item)]
        if not allowed:
            raise ForbiddenDestination("no address that requests may go to")
        for address in allowed[:-1]:
            with suppress(OSError):
                return socket.create_connection((str(address), port), timeout=_remaining_seconds(ends_at))
        return socket.create_connection((str(allowed[-1]), port), timeout=_remaining_seconds(ends_at))

    def _is_allowed_network(self, address: IPv4Address | IPv6Address) -> bool:
        plain = getattr(address, "ipv4_mapped", None) or address
        return any(plain in network for network in self._networks)

    def _request_target(self, parts: SplitResult, url: str) -> str:
        if self._proxy is not None and parts.scheme == "http":
            return url
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def _tunnel(self, plain: socket.socket, host: str, port: int) -> None:
        """Open a tunnel through the proxy (RFC 9110 §9.3.6)."""
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self._proxy is not None and self._proxy.username:
            name = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {b64encode(name.encode()).decode()}")
        plain.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
        answer = HTTPResponse(plain, method="CONNECT")
        answer.begin()
        if answer.status != 200:
            raise OSError("the proxy refuses")


def _remaining_seconds(ends_at: float) -> float:
    left = ends_at - monotonic()
    if left <= 0:
        raise TimeoutError("no time is left")
    return left


@contextmanager
def _enforce_deadline(connected: socket.socket, ends_at: float) -> Iterator[None]:
    """Close the connection at the deadline: a peer that sends a byte now and then would keep it open forever."""
    connected.settimeout(_remaining_seconds(ends_at))
    # A duplicate: at the deadline the original may be closed and its descriptor reused.
    with socket.fromfd(connected.fileno(), connected.family, connected.type) as same:
        cut = Timer(_remaining_seconds(ends_at), _abort_connection, [same])
        cut.daemon = True
        cut.start()
        try:
            yield
        finally:
            cut.cancel()
            cut.join()


def _abort_connection(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)

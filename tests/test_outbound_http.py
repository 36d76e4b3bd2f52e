"""Security 13 and 18.8: the service sends requests only to public addresses and to networks named by a setting."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPException
from ipaddress import ip_address
from pathlib import Path

import pytest

from identity import outbound_http
from identity.outbound_http import MAX_RESPONSE_BYTES, ForbiddenDestination, OutboundHttpClient, is_public
from tests.external_servers import LOOPBACK, WebServer

HOST = "files.example"
PUBLIC = "203.0.114.7"


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[WebServer]:
    """A server on the loopback interface that must not be reached."""
    server = WebServer(tmp_path, HOST, "localhost")
    yield server
    server.close()


#: Disguised spellings of the loopback interface and other private addresses.
DISGUISES = [
    "127.0.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "0",
    "localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "169.254.169.254",
    "10.0.0.1",
    "100.64.0.1",
    "192.168.1.1",
    "224.0.0.1",
    "255.255.255.255",
]


@pytest.mark.parametrize("host", DISGUISES)
def test_disguised_private_address_is_refused(canary: WebServer, host: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - some of them the system itself does not understand
        OutboundHttpClient().send("GET", f"https://{host}:{canary.port}/", headers={})
    assert canary.connections == 0


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.2.3", "169.254.169.254", "fd00::1", "fe80::1%lo", "0.0.0.0"],  # noqa: S104
)
def test_name_of_private_address_is_refused(canary: WebServer, address: str) -> None:
    outbound_http_client = OutboundHttpClient(resolve=lambda host, seconds: [address])
    with pytest.raises(ForbiddenDestination):
        outbound_http_client.send("GET", f"https://{HOST}:{canary.port}/", headers={})
    assert canary.connections == 0


#: One address of each network that the IANA special-purpose registries list as not globally reachable.
SPECIAL = """
0.1.2.3 10.1.2.3 100.64.1.2 127.1.2.3 169.254.1.2 172.16.1.2 192.0.0.8 192.0.0.170 192.0.0.192 192.0.2.1 192.88.99.2
192.168.1.2 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:10.0.0.1
::ffff:192.0.0.192 64:ff9b::a00:1 64:ff9b:1::1 100::1 100:0:0:1::1 2001::1 2001:2::1 2001:10::1 2001:db8::1 2002:a00:1::
2002:c000:c0:: 3fff::1 3fff:fff::1 5f00::1 fc00::1 fe80::1 fec0::1 ff02::1
"""


@pytest.mark.parametrize("address", SPECIAL.split())
def test_address_of_special_purpose_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


def test_address_is_public() -> None:
    for address in ("93.184.216.34", "2606:4700::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"):
        assert is_public(ip_address(address)), address


def test_name_is_resolved_once(canary: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: an address that is public when checked must not become private when connecting."""
    answers = iter([[PUBLIC], [LOOPBACK], [LOOPBACK]])
    tried: list[object] = []

    def connect(target: object, **_: object) -> socket.socket:
        tried.append(target)
        raise ConnectionRefusedError

    monkeypatch.setattr(outbound_http.socket, "create_connection", connect)
    with pytest.raises(ConnectionRefusedError):
        OutboundHttpClient(resolve=lambda host, seconds: next(answers)).send("GET", f"https://{HOST}/", headers={})
    assert tried == [(PUBLIC, 443)]


def test_public_addresses_of_a_host_are_tried(canary: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def connect(target: object, **_: object) -> socket.socket:
        tried.append(target)
        raise ConnectionRefusedError

    monkeypatch.setattr(outbound_http.socket, "create_connection", connect)
    found = [LOOPBACK, "2606:4700::1", "10.0.0.1", PUBLIC]
    with pytest.raises(ConnectionRefusedError):
        OutboundHttpClient(resolve=lambda host, seconds: found).send("GET", f"https://{HOST}/", headers={})
    assert tried == [("2606:4700::1", 443), (PUBLIC, 443)]


@pytest.fixture
def client(canary: WebServer) -> OutboundHttpClient:
    """A client that may connect to the loopback server, because a setting names its network."""
    return OutboundHttpClient(
        networks=OutboundHttpClient.parse_networks([LOOPBACK]),
        resolve=lambda host, seconds: [LOOPBACK],
        ca_file=canary.certificate,
    )


def test_configured_network_is_allowed(canary: WebServer, client: OutboundHttpClient) -> None:
    canary.files[HOST, "/file?a=b"] = (200, {}, b"found")
    answer = client.send("GET", f"https://{HOST}:{canary.port}/file?a=b", headers={})
    assert (answer.status, answer.body) == (200, b"found")


def test_certificate_of_another_name_is_refused(canary: WebServer, client: OutboundHttpClient) -> None:
    with pytest.raises(OSError, match="certificate"):
        client.send("GET", f"https://other.example:{canary.port}/", headers={})
    assert canary.received == []


def test_redirect_is_not_followed(canary: WebServer, client: OutboundHttpClient) -> None:
    canary.files[HOST, "/"] = (302, {"Location": f"https://localhost:{canary.port}/secret"}, b"")
    assert client.send("GET", f"https://{HOST}:{canary.port}/", headers={}).status == 302
    assert canary.received == [(HOST, "/")]


def test_response_size_is_limited(canary: WebServer, client: OutboundHttpClient) -> None:
    canary.files[HOST, "/"] = (200, {}, b"x" * (4 * MAX_RESPONSE_BYTES))
    assert len(client.send("GET", f"https://{HOST}:{canary.port}/", headers={}).body) == MAX_RESPONSE_BYTES


def _status_line(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("begin", [lambda connection: None, _status_line], ids=["nothing", "headers"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_slow_response_is_cut_off(scheme: str, begin: Callable[[socket.socket], None]) -> None:
    """Every byte arrives before the read timeout, but the response never ends."""
    with socket.create_server((LOOPBACK, 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                begin(connection)
                try:
                    while True:
                        connection.sendall(b"x")
                        time.sleep(0.05)
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        started = time.monotonic()
        slow = OutboundHttpClient(networks=OutboundHttpClient.parse_networks([LOOPBACK]), seconds=0.5)
        with pytest.raises((OSError, HTTPException)):
            slow.send("GET", f"{scheme}://{LOOPBACK}:{server.getsockname()[1]}/", headers={})
        assert time.monotonic() - started < 5
        thread.join(10)
        assert not thread.is_alive()

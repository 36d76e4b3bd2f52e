"""Faults caused by clients and operators."""

import http.client
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from urllib.parse import parse_qs, urlencode, urlsplit

from benchmarks.service_process import ROOT
from faults.endpoint_paths import MANAGEMENT, TOKEN, USERINFO
from faults.fault_run import Fault, FaultEnvironment
from faults.http_client import FailoverClient, ResponseClass, ResponseTally
from faults.ledger import Ledger, refresh_form
from faults.mixed_load import AssertionLane, AuthorizationCodeLane, IdTokenLane, RefreshTokenLane, RevocationLane
from faults.seed_data import code_form
from faults.service_nodes import PROGRAM
from faults.wrong_clock import clock_environment, clock_offset, set_clock_offset

_RESETS = 10_000
#: Number of key rotations, seconds that the clock gains during each, and seconds of real time until a new key must
#: sign.
_ROTATIONS, _FASTER, _ROTATION_TIMEOUT = 5, 9, 60.0
_KEYS = "SELECT count(*) FROM signing_keys"
_HOUR = 3600
#: Tokens of each kind that expire before the clock is changed.
_STEPS = 8
#: The load's own clock is right, and the library checks ten times a second.
_POLL_SECONDS = 0.2
#: Fewer than the limit per address, and from other addresses than the load's.
_SLOW = 90
_RESET = struct.pack("ii", 1, 0)
_AMBIGUOUS = b"Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\ngrant_type=x"


def _reset_connections(scene: FaultEnvironment) -> None:
    reached = 0
    for number in range(_RESETS):
        with suppress(OSError), socket.socket() as client:
            client.bind((f"127.0.2.{1 + number % 250}", 0))
            client.settimeout(5)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.connect(("127.0.0.1", scene.nodes.ports[number % len(scene.nodes)]))
            reached += 1
            if number % 3 == 0:
                client.sendall(b"POST /oauth/v2/token HTTP/1.1\r\nHost: ")
    if reached < _RESETS * 0.9:
        raise AssertionError(f"only {reached} connections were there to be reset")


def _send_malformed_requests(scene: FaultEnvironment) -> None:
    """Clients that send slowly, endless bodies, and requests with ambiguous ends."""
    host = scene.nodes.host.encode()
    slow = []
    refused = 0
    try:
        for number in range(_SLOW):
            connection = socket.create_connection(
                ("127.0.0.1", scene.nodes.ports[0]), 5, (f"127.0.3.{1 + number % 2}", 0)
            )
            slow.append(connection)
        give_up_at = time.monotonic() + scene.fault_seconds
        while time.monotonic() < give_up_at:
            for connection in slow:
                with suppress(OSError):
                    connection.sendall(b"X")
            refused += _send(scene, b"POST /oauth/v2/token HTTP/1.1\r\nHost: " + host + b"\r\n" + _AMBIGUOUS)
            huge = b"POST /oauth/v2/token HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 99999999\r\n\r\n"
            _send(scene, huge + b"x" * (4 << 20))
    finally:
        for connection in slow:
            connection.close()
    if not refused:
        raise AssertionError("no wrong request was answered")


def _send(scene: FaultEnvironment, request: bytes) -> bool:
    """Send the request; True for an error response, False if the connection ended."""
    with (
        suppress(OSError),
        socket.create_connection(("127.0.0.1", scene.nodes.ports[1]), 5, ("127.0.3.9", 0)) as client,
    ):
        client.sendall(request)
        answer = client.recv(1000)
        if answer and answer[:5] + answer[8:10] != b"HTTP/ 4":
            raise AssertionError(f"a wrong request was answered {answer[:100]!r}")
        return bool(answer)
    return False


def race_redemptions(scene: FaultEnvironment) -> None:
    """A hundred clients redeem the same code at all processes at once, and the same refresh token; three of each."""
    for _ in range(3):
        for form in (_request_code(scene), _request_refresh_token(scene)):
            statuses = _race_form(scene, form)
            if statuses != {200: 1, 400: 99}:
                raise AssertionError(f"one {form['grant_type']} was answered {dict(statuses)}")


def _request_code(scene: FaultEnvironment) -> dict[str, str]:
    with closing(FailoverClient(scene.nodes.ports, scene.nodes.host, ResponseTally())) as asking:
        answer = asking.get(scene.stock.authorize_path, scene.stock.visitor_headers, 303)
    if answer is None:
        raise AssertionError("there was no code to be had")
    return code_form(parse_qs(urlsplit(answer.location).query)["code"][0])


def _request_refresh_token(scene: FaultEnvironment) -> Mapping[str, str]:
    with closing(FailoverClient(scene.nodes.ports, scene.nodes.host, ResponseTally())) as asking:
        answer = asking.post(TOKEN, _request_code(scene), scene.stock.application, 200)
    if answer is None:
        raise AssertionError("there was no refresh token to be had")
    return refresh_form(answer.json["refresh_token"])


def _race_form(scene: FaultEnvironment, form: Mapping[str, str]) -> Counter[int]:
    together = threading.Barrier(100)
    statuses: Counter[int] = Counter()
    headers = {
        "Host": scene.nodes.host,
        "Authorization": scene.stock.application,
        "Content-Type": "application/x-www-form-urlencoded",
    }

    def show(number: int) -> None:
        port = scene.nodes.ports[number % len(scene.nodes)]
        source = (f"127.0.4.{1 + number % 10}", 0)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=source)
        connection.connect()
        together.wait(60)
        for _ in range(20):
            connection.request("POST", TOKEN, urlencode(form), headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 503:
                break
        statuses[answer.status] += 1
        connection.close()

    threads = [threading.Thread(target=show, args=[number], daemon=True) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return statuses


def _race_key_rotations(scene: FaultEnvironment) -> None:
    """Two nodes repeatedly create the next signing key at the same time, by the operators' command."""
    tally = ResponseTally()
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(closing(FailoverClient([port], scene.nodes.host, tally))) for port in scene.nodes.ports
        ]
        client = stack.enter_context(closing(FailoverClient(scene.nodes.ports, scene.nodes.host, tally, stays=1)))
        lane = IdTokenLane(scene.stock, client, Ledger(), nodes)
        for _ in range(_ROTATIONS):
            _wait_for_rotated_key(scene, lane)
        first, second = (sorted(key["kid"] for key in published_key["keys"]) for published_key in lane.published_keys())
    if first != second or len(first) < _ROTATIONS:
        raise AssertionError(f"the nodes show the keys {first} and {second}")
    if tally.counts.total() > tally.counts[ResponseClass.RIGHT]:
        raise AssertionError(f"who verifies has met {dict(tally.counts)}: {tally.violations}")


def _wait_for_rotated_key(scene: FaultEnvironment, lane: IdTokenLane) -> None:
    """Wait until tokens are signed with the one key that both have created."""
    before = scene.database.query_number(_KEYS)
    commands = [
        subprocess.Popen(
            [*PROGRAM, "rotate-keys", "--emergency", "-c", str(node.ini)],
            cwd=ROOT,
            env=node.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in (scene.nodes[0], scene.nodes[1])
    ]
    while any(command.poll() is None for command in commands):
        lane.step()
    outputs = [command.communicate()[0] for command in commands]
    if any(command.returncode for command in commands):
        raise AssertionError(f"keys were not rotated: {outputs}")
    added = scene.database.query_number(_KEYS) - before
    if added != 1:
        raise AssertionError(f"{added} keys were made: {outputs}")
    # The fast clock shortens the announcement of half a minute, and the cache lifetimes of nodes.
    folder = scene.nodes[0].ini.parent
    set_clock_offset(folder, clock_offset(folder), faster=_FASTER)
    give_up_at = time.monotonic() + _ROTATION_TIMEOUT
    while not all(lane.signed_by in item for item in outputs):
        if time.monotonic() > give_up_at:
            raise AssertionError(f"tokens are signed by {lane.signed_by}: {outputs}")
        lane.step()
    set_clock_offset(folder, clock_offset(folder))


def _step_clock(scene: FaultEnvironment) -> None:
    """Forward an hour, back two, and right again. What had expired before stays invalid throughout."""
    folder = scene.nodes[0].ini.parent
    ledger = Ledger()
    with closing(FailoverClient(scene.nodes.ports, scene.nodes.host, ResponseTally(), stays=1)) as client:
        lanes = [
            kind(scene.stock, client, ledger)
            for kind in (AssertionLane, RefreshTokenLane, AuthorizationCodeLane, RevocationLane)
        ]
        for lane in lanes * _STEPS:
            lane.step()
        if not (ledger.used_assertions and ledger.revoked and ledger.chains and ledger.chains[0].rotated):
            raise AssertionError("nothing has died")
        for seconds in (_HOUR, -_HOUR, 0):
            set_clock_offset(folder, seconds)
            time.sleep(scene.fault_seconds if seconds else _POLL_SECONDS)
            if seconds > 0:
                scene.nodes[0].run_command("purge")
            revived = ledger.find_revived(scene.stock, client)
            if revived:
                raise AssertionError(f"by a clock that is wrong by {seconds} s these live: {revived[:5]}")


CLIENT_FAULTS = (
    Fault(
        "redemptions",
        "100 at one moment show one code, and one refresh token",
        race_redemptions,
        nodes=4,
        is_quick_on_all_storages=True,
    ),
    Fault("resets", "10,000 connections that are reset", _reset_connections),
    Fault("hostile", "slow clients, huge bodies, ambiguous framing", _send_malformed_requests),
    Fault(
        "rotations",
        "two nodes rotate the signing key",
        _race_key_rotations,
        is_quiet=True,
        environment=clock_environment,
    ),
    Fault(
        "clock",
        "the wall clock steps by an hour, forth and back",
        _step_clock,
        expected_classes=(ResponseClass.FITTING,),
        tolerated_statuses=(("jwt-bearer", 400), ("authorization_code", 400), (MANAGEMENT, 401), (USERINFO, 401)),
        environment=clock_environment,
    ),
)

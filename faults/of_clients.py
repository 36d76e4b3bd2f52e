"""What clients do to the service, and what its operators do beside."""

import http.client
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from urllib.parse import parse_qs, urlencode, urlsplit

from benchmarks.service import ROOT
from faults.client import Client, Tally
from faults.clock import environment, set_wrong
from faults.ledger import refreshing
from faults.nodes import PROGRAM
from faults.paths import TOKEN
from faults.scene import Fault, Scene
from faults.stock import code_form

_RESETS = 10_000
#: Less than one address may have open at a time, and other addresses than the load's.
_SLOW = 90
_RESET = struct.pack("ii", 1, 0)
_AMBIGUOUS = b"Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\ngrant_type=x"


def _resets(scene: Scene) -> None:
    for number in range(_RESETS):
        with suppress(OSError), socket.socket() as one:
            one.bind((f"127.0.2.{1 + number % 250}", 0))
            one.settimeout(5)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            one.connect(("127.0.0.1", scene.nodes.ports[number % len(scene.nodes)]))
            if number % 3 == 0:
                one.sendall(b"POST /oauth/v2/token HTTP/1.1\r\nHost: ")


def _hostile(scene: Scene) -> None:
    """Clients that send a byte now and then, bodies without an end, and requests with two ends."""
    host = scene.nodes.host.encode()
    slow = []
    with suppress(OSError):
        for number in range(_SLOW):
            one = socket.create_connection(("127.0.0.1", scene.nodes.ports[0]), 5, (f"127.0.3.{1 + number % 2}", 0))
            slow.append(one)
    try:
        give_up_at = time.monotonic() + scene.span
        while time.monotonic() < give_up_at:
            for one in slow:
                with suppress(OSError):
                    one.sendall(b"X")
            _send(scene, b"POST /oauth/v2/token HTTP/1.1\r\nHost: " + host + b"\r\n" + _AMBIGUOUS)
            huge = b"POST /oauth/v2/token HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 99999999\r\n\r\n"
            _send(scene, huge + b"x" * (4 << 20))
    finally:
        for one in slow:
            one.close()


def _send(scene: Scene, request: bytes) -> None:
    """Send it; the answer is a refusal, or the connection ends."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", scene.nodes.ports[1]), 5, ("127.0.3.9", 0)) as one:
        one.sendall(request)
        answer = one.recv(1000)
        if answer and answer[:5] + answer[8:10] != b"HTTP/ 4":
            raise AssertionError(f"a wrong request was answered {answer[:100]!r}")


def redemptions(scene: Scene) -> None:
    """A hundred at the same moment show one code, to all processes, and one refresh token; of three each."""
    for _ in range(3):
        for form in (_code(scene), _refresh_token(scene)):
            statuses = _raced(scene, form)
            if statuses != {200: 1, 400: 99}:
                raise AssertionError(f"one {form['grant_type']} was answered {dict(statuses)}")


def _code(scene: Scene) -> dict[str, str]:
    with closing(Client(scene.nodes.ports, scene.nodes.host, Tally())) as asking:
        answer = asking.get(scene.stock.authorize_path, scene.stock.visitor, 303)
    if answer is None:
        raise AssertionError("there was no code to be had")
    return code_form(parse_qs(urlsplit(answer.location).query)["code"][0])


def _refresh_token(scene: Scene) -> Mapping[str, str]:
    with closing(Client(scene.nodes.ports, scene.nodes.host, Tally())) as asking:
        answer = asking.post(TOKEN, _code(scene), scene.stock.application, 200)
    if answer is None:
        raise AssertionError("there was no refresh token to be had")
    return refreshing(answer.members["refresh_token"])


def _raced(scene: Scene, form: Mapping[str, str]) -> Counter[int]:
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


def _rotations(scene: Scene) -> None:
    """Two nodes make the next signing key at the same time, by the operators' command."""
    commands = [
        subprocess.Popen(
            [*PROGRAM, "rotate-keys", "-c", str(node.ini)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in (scene.nodes[0], scene.nodes[1])
    ]
    said = [command.communicate(timeout=120)[0] for command in commands]
    if any(command.returncode for command in commands):
        raise AssertionError(f"keys were not rotated: {said}")
    # Both may take the one key for new: which of them was first shows when it is written.
    if len({one for one in said if "The new signing key" in one}) > 1:
        raise AssertionError(f"two keys were made: {said}")


def _clock_steps(scene: Scene) -> None:
    """Forth by five minutes, back by as much, and right again."""
    folder = scene.nodes[0].ini.parent
    for seconds in (300, -300, 0):
        set_wrong(folder, seconds)
        if seconds:
            time.sleep(scene.span)
    # The load's own clock is right, and the library looks ten times a second.
    time.sleep(0.2)


CLIENTS = (
    Fault(
        "redemptions", "100 at one moment show one code, and one refresh token", redemptions, nodes=4, everywhere=True
    ),
    Fault("resets", "10,000 connections that are reset", _resets),
    Fault("hostile", "slow clients, huge bodies, ambiguous framing", _hostile),
    Fault("rotations", "two nodes rotate the signing key", _rotations, is_quiet=True),
    Fault(
        "clock",
        "the wall clock steps by 5 minutes, forth and back",
        _clock_steps,
        fitting=(400, 401, 422),
        environment=environment,
    ),
)

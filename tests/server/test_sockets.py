"""The server's loop hears from sockets as waitress's own does, and asks only those of which there is news."""

import socket
from collections.abc import Iterator

import pytest
from waitress.wasyncore import dispatcher

from identity.server.sockets import Sockets

ENDS: list[socket.socket] = []


class Heard(dispatcher):  # type: ignore[misc]
    """One end of a connection; notes what it is told."""

    def __init__(self, sockets: Sockets) -> None:
        self.end, other = socket.socketpair()
        ENDS.append(self.end)
        self.asked = 0
        self.reads = True
        self.heard: list[bytes] = []
        self.victim: Heard | None = None
        super().__init__(other, map=sockets)

    def readable(self) -> bool:
        self.asked += 1
        return self.reads

    def writable(self) -> bool:
        return False

    def handle_read(self) -> None:
        self.heard.append(self.recv(100))
        if self.victim is not None:
            self.victim.close()

    def handle_error(self) -> None:
        self.heard.append(b"failed")


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    sockets = Sockets()
    yield sockets
    sockets.close()
    while ENDS:
        ENDS.pop().close()


def test_who_has_nothing_to_say_is_not_asked_again(sockets: Sockets) -> None:
    quiet = [Heard(sockets) for _ in range(50)]
    speaks = Heard(sockets)
    sockets.look(0)
    for _ in range(3):
        speaks.end.send(b"x")
        sockets.look(1)
    assert speaks.heard == [b"x"] * 3
    assert {one.asked for one in quiet} == {1}


def test_what_is_not_read_yet_is_read_once_it_is(sockets: Sockets) -> None:
    one = Heard(sockets)
    sockets.look(0)
    one.reads = False
    one.end.send(b"x")
    for _ in range(5):
        sockets.look(0)
    assert one.asked == 2, "found out once"
    one.reads = True
    sockets.reads_on(one)
    sockets.look(0)
    sockets.look(0)
    assert one.heard == [b"x"]


def test_who_was_closed_meanwhile_is_told_nothing(sockets: Sockets) -> None:
    first, second = Heard(sockets), Heard(sockets)
    first.victim, second.victim = second, first
    sockets.look(0)
    for one in (first, second):
        one.end.send(b"x")
    sockets.look(1)
    assert sorted([first.heard, second.heard]) == [[], [b"x"]]
    assert len(sockets) == 1


def test_a_number_may_be_another_s_by_now(sockets: Sockets) -> None:
    first = Heard(sockets)
    sockets.look(0)
    number = first._fileno
    first.end.close()
    first.close()
    second = Heard(sockets)
    while second._fileno != number:
        second = Heard(sockets)
    sockets.look(0)
    second.end.send(b"x")
    sockets.look(1)
    assert (first.heard, second.heard) == ([], [b"x"])

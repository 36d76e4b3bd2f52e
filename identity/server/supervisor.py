"""The supervisor: holds the sockets, and sees to it that a generation of workers answers there. Loads nothing else."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from identity.server import systemd
from identity.server.plan import Plan
from identity.server.waking import Waking

log = logging.getLogger(__name__)

#: A generation that answered for a shorter time than this was hardly there: the next one waits, each time longer.
_HARDLY = 5.0
_PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
#: A generation that is told to stop and has not after so long is killed; its workers end by themselves.
_STUBBORN = 40.0

_HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD)


@dataclass
class _Started:
    """A generation's process. It and its workers end when we let go of the lifeline, whose other end they have, and it
    writes to ``ready`` once it answers."""

    process: "subprocess.Popen[bytes]"
    lifeline: socket.socket
    ready: int
    since: float = field(default_factory=time.monotonic)
    stubborn_at: float = float("inf")

    def leave(self) -> None:
        """Have it finish what it is answering, and end."""
        self.stubborn_at = time.monotonic() + _STUBBORN
        self.process.send_signal(signal.SIGTERM)

    def forget(self) -> None:
        """It has ended, and whoever it has left behind is to."""
        self.lifeline.close()
        if self.ready >= 0:
            os.close(self.ready)


class Supervisor:
    """Told to reload (SIGHUP) it starts a generation beside the one that answers, which ends once the new one answers.

    What dies is started anew. The workers of a generation that died answer until another one does.
    """

    def __init__(self, plan: Plan, sockets: Iterable[socket.socket]) -> None:
        self._plan = plan
        self._sockets = list(sockets)
        self._waking = Waking(_HEARD)
        #: The one that answers, the one that is to, and those that finish.
        self._current: _Started | None = None
        self._coming: _Started | None = None
        self._leaving: list[_Started] = []
        #: Those that died, of which there may be workers.
        self._orphaned: list[_Started] = []
        self._stopping = False
        self._failures = 0
        self._due = 0.0
        self._ever_ready = False

    def run(self) -> int:
        """Until told to stop; returns the exit status."""
        try:
            self._coming = self._start()
        except OSError as problem:
            raise SystemExit(f"identity cannot start. {problem}") from None
        while True:
            if self._stopping and not self._all() and not self._orphaned:
                return 0
            coming = self._coming
            telling = coming.ready if coming is not None else -1
            files = [telling] * (telling >= 0) + [one.lifeline.fileno() for one in self._orphaned]
            heard, ready = self._waking.wait(self._seconds(), files)
            self._forget_orphans(ready)
            if telling in ready:
                self._hear_from_coming()
            for number in heard:
                self._obey(number)
            if not self._bury():
                return 1
            self._start_if_due()
            for one in self._all():
                if time.monotonic() > one.stubborn_at:
                    one.process.kill()

    def _all(self) -> list[_Started]:
        return [one for one in (self._current, self._coming, *self._leaving) if one is not None]

    def _seconds(self) -> float | None:
        wanted = [one.stubborn_at for one in self._all()]
        if self._current is None and self._coming is None and not self._stopping:
            wanted.append(self._due)
        first = min(wanted, default=float("inf"))
        return None if first == float("inf") else max(0.0, first - time.monotonic())

    def _bring(self) -> None:
        """Start another one. Where the system gives none, what answers goes on, and it is tried again later."""
        try:
            self._coming = self._start()
        except OSError as problem:
            self._coming = None
            self._after_failed_start(problem)

    def _start(self) -> _Started:
        """A process that loads everything anew: the code that is installed, the settings that are in the ini file.

        Raises OSError if there can be none: no interpreter while an environment is made anew, or too many processes.
        """
        with ExitStack() as theirs, ExitStack() as ours:
            alive, lifeline = socket.socketpair()
            theirs.callback(alive.close)
            ours.callback(lifeline.close)
            ready, telling = _pipe(ours, theirs)
            plan = replace(self._plan, lifeline=alive.fileno(), ready=telling)
            environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and words
                # A group of its own: Ctrl-C is for the supervisor, which hands it on.
                [sys.executable, "-P", "-m", "identity.server.generation", plan.to_json()],
                pass_fds=[alive.fileno(), telling, *(one.fileno() for one in self._sockets)],
                env=environment,
                process_group=0,
            )
            ours.pop_all()
        return _Started(process, lifeline, ready)

    def _hear_from_coming(self) -> None:
        coming = self._coming
        if coming is None:
            return
        answers = os.read(coming.ready, 1)
        os.close(coming.ready)
        coming.ready = -1
        if not answers or self._stopping:
            # Without an answer it is about to end: ``_bury`` hears of that.
            return
        if self._current is not None:
            self._current.leave()
            self._leaving.append(self._current)
        self._current, self._coming = coming, None
        self._let_go_of_orphans()
        self._ever_ready = True
        coming.since = time.monotonic()
        where = ", ".join(f"{name} = {value}" for name, value in self._plan.where.items())
        log.info("%s: process %d answers, with %d workers", where, coming.process.pid, len(self._plan.sockets))
        systemd.notify("READY=1")

    def _obey(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop()
        elif number == signal.SIGHUP and not self._stopping:
            self._reload()
        elif number == signal.SIGUSR1:
            for one in self._all():
                what = "looks after the workers" if one is self._current else "starts or ends"
                log.warning("process %d %s", one.process.pid, what)
                one.process.send_signal(signal.SIGUSR1)

    def _stop(self) -> None:
        if self._stopping:
            # Told twice, it waits for nobody.
            for one in self._all():
                one.process.send_signal(signal.SIGINT)
            for one in self._orphaned:
                # There is somebody in the group, as the lifeline tells: nobody else can have its number.
                with suppress(ProcessLookupError):
                    os.killpg(one.process.pid, signal.SIGINT)
            return
        self._stopping = True
        systemd.notify("STOPPING=1")
        for held in self._sockets:
            held.close()
        for one in self._all():
            one.leave()
        self._let_go_of_orphans()

    def _reload(self) -> None:
        log.info("told to reload: another generation of workers starts")
        systemd.reloading()
        if self._coming is not None:
            self._coming.leave()
            self._leaving.append(self._coming)
        self._bring()

    def _bury(self) -> bool:
        """Take note of those that have ended; False if the first one could not start."""
        self._bury_strangers()
        for one in self._all():
            status = one.process.poll()
            if status is None:
                continue
            if one is self._current and not self._stopping:
                self._orphaned.append(one)
            else:
                one.forget()
            if one in self._leaving:
                self._leaving.remove(one)
            elif one is self._coming:
                self._coming = None
                if not self._ever_ready and not self._stopping:
                    return False
                self._after_failed_start(f"status {status}")
            else:
                self._current = None
                self._after_death(one, status)
        return True

    def _bury_strangers(self) -> None:
        """The first process of a container is given those whose parent has died: workers of a killed generation."""
        ours = {one.process.pid for one in self._all()}
        with suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid in ours:
                    break
                os.waitpid(ended.si_pid, 0)

    def _let_go_of_orphans(self) -> None:
        """Have workers that nobody looks after finish what they are answering, and end."""
        for one in self._orphaned:
            with suppress(OSError):
                one.lifeline.shutdown(socket.SHUT_WR)

    def _forget_orphans(self, ready: Iterable[int]) -> None:
        """None of them is left where the other end of the lifeline is closed."""
        for one in [one for one in self._orphaned if one.lifeline.fileno() in ready]:
            self._orphaned.remove(one)
            one.forget()

    def _after_failed_start(self, why: object) -> None:
        if self._stopping:
            return
        if self._current is not None:
            log.error("the new generation of workers could not start (%s): the one before it goes on", why)
            systemd.notify("READY=1")
            return
        pause = self._wait_longer()
        log.error("the workers could not start (%s): another attempt in %g s", why, pause)

    def _after_death(self, one: _Started, status: int) -> None:
        if self._stopping:
            return
        log.error("process %d, which looks after the workers, ended (%d): another one starts", one.process.pid, status)
        if time.monotonic() - one.since < _HARDLY:
            self._wait_longer()
        else:
            self._failures, self._due = 0, 0.0

    def _wait_longer(self) -> float:
        """For so many seconds from now on."""
        self._failures += 1
        pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._due = time.monotonic() + pause
        return pause

    def _start_if_due(self) -> None:
        if self._stopping or self._current is not None or self._coming is not None:
            return
        if self._due <= time.monotonic():
            self._bring()


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """Both ends, each closed with its stack."""
    read, write = os.pipe()
    reading.callback(os.close, read)
    writing.callback(os.close, write)
    return read, write

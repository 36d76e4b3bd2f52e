"""A generation of workers: loads the service once, then forks a process for each, and another for each that dies.

``python -P -m identity.server.generation PLAN``; the supervisor starts it.
"""

import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from identity.ini_file import SERVER, read_section, set_up_logging
from identity.ini_file import application as load_application
from identity.ini_values import BadSetting
from identity.server.beats import Beats, Phase
from identity.server.listening import WHERE, WORKERS, made, read_patience, read_workers
from identity.server.plan import Plan
from identity.server.serving import GRACE, Application, Serving, serve
from identity.server.waking import Waking

# Run as a program, it is __main__.
log = logging.getLogger("identity.server.generation")

#: What a worker of this number does; it calls the other one whenever its loop goes round.
Work = Callable[[int, Callable[[], None]], None]

#: Whoever ends sooner than this was hardly there: the next one waits a little, each time longer.
_HARDLY = 5.0
_PAUSES = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
#: A worker that is told to stop and has not after so long is killed.
_STUBBORN = GRACE + 5
#: How long one that hangs has to write down where.
_LAST_WORDS = 0.5

_HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD)


@dataclass
class _Slot:
    """One worker's place."""

    number: int
    pid: int = 0
    since: float = 0.0
    starts: int = 0
    #: How often in a row one has hardly been there.
    failures: int = 0
    due: float = 0.0


class Generation:
    """Its workers, each with its own sockets. ``run`` returns once none is left."""

    def __init__(
        self,
        work: Work,
        count: int,
        *,
        sockets: Iterable[int] = (),
        lifeline: int,
        ready: int = -1,
        patience: float,
    ) -> None:
        self._work = work
        self._sockets = tuple(sockets)
        self._lifeline, self._ready, self._patience = lifeline, ready, patience
        self._waking = Waking(_HEARD)
        self._beats = Beats(count, self._waking.ringing)
        self._slots = [_Slot(number) for number in range(count)]
        # Its other end tells the workers that this process is gone.
        self._alive, self._held = os.pipe()
        self._is_ready = False
        self._stopping = False
        self._stubborn_at = float("inf")
        self._status = 0

    def run(self) -> int:
        """Look after them until told to stop, or until the supervisor is gone; returns the exit status."""
        looked = time.monotonic()
        while True:
            self._start_those_due()
            if self._stopping and not any(one.pid for one in self._slots):
                return self._status
            files = () if self._stopping else (self._lifeline,)
            heard, ready = self._waking.wait(self._seconds(), files)
            if ready:
                self._stop("the supervisor is gone")
            for number in heard:
                self._obey(number)
            self._bury()
            self._tell_if_ready()
            now = time.monotonic()
            # Where this process itself had to wait long for its turn, the others had to as well.
            if now - looked < self._patience:
                self._replace_hanging(now)
            looked = now

    def _seconds(self) -> float:
        now = time.monotonic()
        wanted = [self._stubborn_at - now] if self._stopping else []
        if self._is_ready and not self._stopping:
            wanted += [one.due - now for one in self._slots if not one.pid]
        return max(0.0, min([self._patience / 4, *wanted]))

    def _obey(self, number: int) -> None:
        if number == signal.SIGTERM:
            self._stop("told to stop")
        elif number == signal.SIGINT:
            self._stop("told to stop at once")
            self._signal_all(signal.SIGINT)
        elif number == signal.SIGUSR1:
            self._tell()

    def _start_those_due(self) -> None:
        if self._stopping:
            return
        now = time.monotonic()
        for one in self._slots:
            if not one.pid and one.due <= now:
                self._start(one)
            if not self._is_ready and not self._beats.last(one.number):
                # What cannot start at all is told once, by the first.
                break

    def _start(self, slot: _Slot) -> None:
        self._beats.clear(slot.number)
        sys.stdout.flush()
        sys.stderr.flush()
        # Until it has let go of our signals, it would hear them in vain.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        try:
            slot.pid = os.fork()
            if not slot.pid:
                self._be_worker(slot.number)
        except OSError as problem:
            # Too many processes, or no memory: as if it had ended at once.
            slot.since = time.monotonic()
            self._after(slot, f"cannot be forked ({problem})", 1)
            return
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        slot.since = time.monotonic()
        slot.starts += 1
        self._beats.started(slot.number, slot.pid, slot.since, slot.starts)

    def _be_worker(self, number: int) -> NoReturn:
        """What a process that was forked does."""
        status = 1
        try:
            self._waking.forget()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
            os.close(self._held)
            if self._ready >= 0:
                os.close(self._ready)
            # Where it hangs, if it has to be replaced.
            faulthandler.register(signal.SIGUSR2)
            threading.Thread(target=self._end_with_parent, name="identity-lifeline", daemon=True).start()
            self._work(number, partial(self._beats.beat, number))
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)  # noqa: T201
        except BaseException:
            log.exception("a worker failed")
        finally:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _end_with_parent(self) -> None:
        """Once this process is gone that looks after us, we answer until the supervisor has another one, or is gone."""
        os.read(self._alive, 1)
        os.read(self._lifeline, 1)
        # If it does not, the system ends it.
        signal.alarm(int(_STUBBORN))
        os.kill(os.getpid(), signal.SIGTERM)

    def _bury(self) -> None:
        for slot in self._slots:
            if not slot.pid:
                continue
            pid, status = os.waitpid(slot.pid, os.WNOHANG)
            if pid:
                slot.pid = 0
                self._beats.ended(slot.number)
                code = os.waitstatus_to_exitcode(status)
                end = f"ended with status {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
                self._after(slot, f"(process {pid}) {end}", code)

    def _after(self, slot: _Slot, end: str, status: int) -> None:
        if self._stopping:
            return
        if not self._is_ready:
            self._status = status if status > 0 else 1
            log.error("worker %d %s", slot.number, end)
            self._stop("a worker cannot start")
            return
        now = time.monotonic()
        slot.failures = slot.failures + 1 if now - slot.since < _HARDLY else 0
        pause = _PAUSES[min(slot.failures, len(_PAUSES) - 1)]
        slot.due = now + pause
        then = f"in {pause:g} s" if pause else "now"
        log.error("worker %d %s; another one takes its place %s", slot.number, end, then)

    def _tell_if_ready(self) -> None:
        if self._is_ready or self._stopping or not all(self._beats.last(one.number) for one in self._slots):
            return
        self._is_ready = True
        self._beats.enter(Phase.ANSWERS)
        if self._ready >= 0:
            os.write(self._ready, b"1")
            os.close(self._ready)
            self._ready = -1

    def _replace_hanging(self, now: float) -> None:
        for slot in self._slots:
            # One that has not begun to answer counts from its start.
            seen = max(self._beats.last(slot.number), slot.since)
            if slot.pid and now - seen > self._patience and not self._stopping:
                log.error("worker %d (process %d) hangs: no sign of life for %.0f s", slot.number, slot.pid, now - seen)
                os.kill(slot.pid, signal.SIGUSR2)
                time.sleep(_LAST_WORDS)
                os.kill(slot.pid, signal.SIGKILL)
        if now > self._stubborn_at:
            self._signal_all(signal.SIGKILL)

    def _stop(self, why: str) -> None:
        """Have all finish what they are answering."""
        if not self._stopping:
            log.info("%s: %d workers finish what they are answering", why, sum(1 for one in self._slots if one.pid))
            self._stopping = True
            self._beats.enter(Phase.ENDS)
            # Nobody is to be forked for them any more: where the supervisor has let go too, callers are refused.
            for one in self._sockets:
                os.close(one)
            self._stubborn_at = time.monotonic() + _STUBBORN
            self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: int) -> None:
        for one in self._slots:
            if one.pid:
                os.kill(one.pid, number)

    def _tell(self) -> None:
        now = time.monotonic()
        for one in self._slots:
            replaced = f"replaced {max(0, one.starts - 1)} times"
            if not one.pid:
                log.warning("worker %d: none for %.1f s more, %s", one.number, max(0.0, one.due - now), replaced)
                continue
            age, last = timedelta(seconds=round(now - one.since)), self._beats.last(one.number)
            sign = f"last sign of life {now - last:.1f} s ago" if last else "about to answer"
            log.warning("worker %d: process %d, %s old, %s, %s", one.number, one.pid, age, sign, replaced)


def main(argv: list[str]) -> int:
    """Load what the plan names, and look after its workers; returns the exit status."""
    # Whoever stops it while it loads need not be told where.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    plan = Plan.from_json(argv[1])
    try:
        work, patience = _load(plan)
    except (BadSetting, OSError) as problem:
        raise SystemExit(f"identity cannot start. {problem}") from None
    sockets = {one for own in plan.sockets for one in own}
    ends = {"lifeline": plan.lifeline, "ready": plan.ready}
    return Generation(work, len(plan.sockets), sockets=sockets, **ends, patience=patience).run()


def _load(plan: Plan) -> tuple[Work, float]:
    """What a worker does, and how long it may give no sign of life. Raises BadSetting, OSError or SystemExit."""
    set_up_logging(plan.ini, plan.variables)
    settings = read_section(plan.ini, SERVER, plan.variables)
    if {name: value for name, value in settings.items() if name in WHERE} != plan.where:
        log.warning("[server:main] names another address than the one that is served: that takes a new start")
    count = len(plan.sockets)
    if plan.counted and read_workers(settings.get(WORKERS, "")) != count:
        log.warning(
            "[server:main] names another number of workers than the %d that serve: that takes a new start", count
        )
    patience = read_patience(settings)
    # What a start makes stays: to look for garbage in it is a twentieth of the start.
    gc.disable()
    application = load_application(plan.ini, plan.variables)
    _prepare(getattr(getattr(application, "registry", None), "identity", None), count)
    kind = import_module(f"identity.server.{plan.server}_server").Server
    gc.freeze()
    return partial(_serve, kind, settings, plan.sockets, application), patience


def _prepare(identity: Any, count: int) -> None:
    """Nothing is open, and no thread runs, when processes are forked. Raises SystemExit."""
    if identity is None:
        return
    if count > 1 and not identity.backend.concurrent:
        raise SystemExit(
            f"identity cannot start. Several workers cannot share the storage {identity.backend.name}:"
            " serve with workers = 1, or keep it elsewhere (identity.storage)."
        )
    identity.before_fork(count)


def _serve(
    kind: Callable[[Mapping[str, Any]], Serving],
    settings: Mapping[str, str],
    sockets: tuple[tuple[int, ...], ...],
    application: Application,
    number: int,
    beat: Callable[[], None],
) -> None:
    """Be the worker of this number."""
    own = [socket.socket(fileno=one) for one in sockets[number]]
    for other in {one for others in sockets for one in others} - set(sockets[number]):
        os.close(other)
    server = made(kind, {name: value for name, value in settings.items() if name not in WHERE} | {"sockets": own})
    server.beat = beat
    server.obey_parent()
    serve(server, application)


if __name__ == "__main__":
    sys.exit(main(sys.argv))

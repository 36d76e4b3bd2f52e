"""gunicorn's application, arbiter and logger, for ``identity serve``."""

import logging
import os
import socket
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gunicorn import systemd
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter as StockArbiter
from gunicorn.glogging import Logger as StockLogger

from identity import cpu_count
from identity.ini_file import APP_SECTION, load_wsgi_app, read_section, read_server_section, setup_logging
from identity.server_settings import build_gunicorn_settings
from identity.settings_parser import InvalidSetting

log = logging.getLogger(__name__)

#: Seconds between attempts to start a worker that cannot start.
_POLL_SECONDS = 1.0
_START_TIMEOUT = 60.0
_NOTIFY_SOCKET_VARIABLE = "NOTIFY_SOCKET"
#: Environment variables that name inherited sockets.
_SOCKET_VARIABLES = frozenset({"LISTEN_PID", "GUNICORN_FD"})


class WorkerStartError(Exception):
    """A worker ended or timed out before it was ready."""


class GunicornLogger(StockLogger):  # type: ignore[misc]
    """Sends gunicorn's messages to the logging of the ini file."""

    def setup(self, cfg: Any) -> None:
        """Without gunicorn's own handlers, format and level."""
        cfg.set("errorlog", None)
        super().setup(cfg)
        self.error_log.setLevel(logging.NOTSET)
        self.error_log.propagate = True


class GunicornApplication(BaseApplication):  # type: ignore[misc]
    """Serves an ini file. Only workers load the code, so that SIGHUP picks up what is installed then."""

    def __init__(self, ini: str, variables: Mapping[str, str]) -> None:
        self._ini, self._variables = ini, variables
        self._bind: list[str] | None = None
        #: True once a worker was ready; from then on, failed starts are retried.
        self.has_started = False
        #: The arbiter's name, and how many workers have been replaced.
        self.worker_replacements: tuple[str, int] | None = None
        super().__init__()

    def read(self) -> dict[str, Any]:
        """gunicorn's settings from the ini file. Raises InvalidSetting and OSError."""
        data = read_section(self._ini, APP_SECTION, self._variables).get("identity.data") or "."
        settings = build_gunicorn_settings(read_server_section(self._ini, self._variables), Path(data).absolute())
        if "WEB_CONCURRENCY" not in os.environ:
            settings.setdefault("workers", cpu_count.available_cpus())
        return settings

    def do_load_config(self) -> None:
        """Called by gunicorn at start and reload. Raises InvalidSetting and OSError instead of exiting."""
        settings = self.read()
        self.load_default_config()
        setup_logging(self._ini, self._variables)
        if self._bind is not None and self._bind != settings["bind"]:
            log.warning("[server:main] bind has changed: that takes a restart")
            settings["bind"] = self._bind
        self._bind = settings["bind"]
        for name, value in settings.items():
            self.cfg.set(name, value)
        self.cfg.set("default_proc_name", Path(self._ini).name)
        self.cfg.validate()

    def load(self) -> Any:
        """The application, in a worker. Logs the reason and raises SystemExit if it cannot start."""
        try:
            return load_wsgi_app(self._ini, self._variables, print_getting_started=not self.has_started)
        except (SystemExit, InvalidSetting) as problem:
            if self.has_started:
                log.error("%s", problem)
                time.sleep(_POLL_SECONDS)
            else:
                print(problem, file=sys.stderr, flush=True)  # noqa: T201
            raise SystemExit(1) from None

    def require_free_addresses(self) -> None:
        """Raise OSError if an address is in use. gunicorn would retry for five seconds."""
        for address in [] if _SOCKET_VARIABLES & os.environ.keys() else self.cfg.address:
            if isinstance(address, tuple):
                family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
                with socket.socket(family, socket.SOCK_STREAM) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    try:
                        probe.bind(address)
                    except OSError as problem:
                        problem.filename = f"{address[0]}:{address[1]}"
                        raise

    def run(self) -> None:
        """Serves until it is stopped by SystemExit."""
        GunicornArbiter(self).run()


class GunicornArbiter(StockArbiter):  # type: ignore[misc]
    """Differs from gunicorn's in three points: the first worker shows whether the service can start, a reload stops
    old workers only when the new ones are ready, and keeps the old ones if the new ones cannot start.
    """

    # No process exits with this code. With gunicorn's codes, one worker that cannot start would stop all.
    WORKER_BOOT_ERROR = APP_LOAD_ERROR = -1

    num_workers: int
    _is_first_worker_ready = False
    _replacements = 0
    #: Age of the youngest worker before the last reload.
    _age_before_reload = 0

    def start(self) -> None:
        """Notifies systemd only once a worker is ready; gunicorn's sends READY=1 before."""
        notify = os.environ.pop(_NOTIFY_SOCKET_VARIABLE, None)
        super().start()
        if notify is not None:
            os.environ[_NOTIFY_SOCKET_VARIABLE] = notify

    def spawn_worker(self) -> int:
        """Raises WorkerStartError if the first worker since a start or reload does not become ready."""
        if len(self._newest_workers()) >= self.num_workers:
            return 0
        pid: int = super().spawn_worker()
        if not self._is_first_worker_ready:
            self._wait_until_ready([pid])
            self._is_first_worker_ready = True
            if self.num_workers > 1 and os.pread(self.WORKERS[pid].tmp.fileno(), 1, 0):
                log.info("the storage has one writer: one worker serves, not %d", self.num_workers)
                self.num_workers = 1
        return pid

    def spawn_workers(self) -> None:
        """Raises SystemExit if the service cannot start."""
        if self.app.has_started:
            self._replacements += self.num_workers - len(self.WORKERS)
            self.app.worker_replacements = (str(self.pid), self._replacements)
            super().spawn_workers()
            return
        self.app.worker_replacements = (str(self.pid), 0)
        try:
            self.spawn_worker()
        except WorkerStartError as problem:
            log.error("%s", problem)
            self.stop(graceful=False)
            raise SystemExit(1) from None
        self.app.has_started = True
        super().spawn_workers()
        with suppress(WorkerStartError):
            self._wait_until_ready(self.WORKERS)
        systemd.sd_notify("READY=1", self.log)

    def reload(self) -> None:
        """Replace the workers; keep the old ones if the new ones cannot start."""
        systemd.sd_notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}", self.log)
        try:
            self._is_first_worker_ready, self._age_before_reload = False, self.worker_age
            super().reload()
        except (InvalidSetting, OSError, WorkerStartError) as problem:
            self._is_first_worker_ready = True
            log.error("cannot reload, the workers from before go on: %s", problem)
        systemd.sd_notify("READY=1", self.log)

    def manage_workers(self) -> None:
        """Stops surplus workers only when the newest are ready."""
        if len(self.WORKERS) > self.num_workers:
            with suppress(WorkerStartError):
                self._wait_until_ready(self._newest_workers())
        super().manage_workers()

    def _newest_workers(self) -> list[int]:
        return [pid for pid, worker in self.WORKERS.items() if worker.age > self._age_before_reload]

    def _wait_until_ready(self, pids: Collection[int]) -> None:
        """Raises WorkerStartError."""
        pids, give_up_at = set(pids), time.monotonic() + (self.timeout or _START_TIMEOUT)
        while time.monotonic() < give_up_at:
            self.reap_workers()
            if not pids <= self.WORKERS.keys():
                raise WorkerStartError("a worker could not start")
            # A worker's first heartbeat changes the file's time from wall clock to monotonic clock.
            if all(self.WORKERS[pid].tmp.last_update() <= time.monotonic() for pid in pids):
                return
            time.sleep(0.02)
        raise WorkerStartError(f"a worker did not start within {self.timeout} s")

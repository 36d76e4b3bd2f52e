"""Metrics for Prometheus: what requests, sign-ins, passwords, the database and the storage are like."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity import hookimpl
from identity.crypto.secrets import digest, same
from identity.domain.audit import AuditEvent
from identity.ini_values import BadSetting, setting
from identity.operations import Running
from identity.plugins.metrics.answer import PATH, Answer
from identity.plugins.metrics.counts import Counts, noughts
from identity.plugins.metrics.families import EVENTS, REPLACED
from identity.plugins.metrics.requests import observer
from identity.plugins.metrics.shares import Share, Shares, Telling
from identity.watching import Watcher

_SHORTEST_TOKEN = 32


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where metrics are told, and to whom. Without an address and without a token nothing is counted."""

    listen: str = setting(
        "An address of their own, such as 127.0.0.1:9464, for all processes together: ``GET /metrics``. One that is not"
        " of this machine alone needs ``token_file``.",
        default="",
    )
    token_file: Path | None = setting(
        "A file with the token that whoever asks has to send (``Authorization: Bearer``): 32 characters or more, closed"
        " to others (mode 0600). Read anew for each answer. Without ``listen`` metrics are then told at ``/metrics`` of"
        " the service.",
        default=None,
    )
    directory: Path | None = setting(
        "Where the processes of this machine tell each other what they have counted; by default ``metrics`` in"
        " ``identity.data``. Each machine needs one of its own.",
        default=None,
        made=True,
    )

    def __post_init__(self) -> None:
        if self.listen:
            host, _ = self.address
            if self.token_file is None and not ip_address(host).is_loopback:
                raise BadSetting("listen", f"{host} is not of this machine alone: name a token_file too, or 127.0.0.1")
        if self.token_file is not None:
            self.token()
        if self.enabled and find_spec("prometheus_client") is None:
            problem = "needs the client of Prometheus, which the extra metrics of this package brings"
            raise BadSetting("listen" if self.listen else "token_file", problem)

    @property
    def enabled(self) -> bool:
        """True if anybody can ask."""
        return bool(self.listen) or self.token_file is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen at. Raises BadSetting."""
        host, _, port = self.listen.rpartition(":")
        try:
            ip_address(host.strip("[]"))
            number = int(port)
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 16:
            raise BadSetting("listen", "must be an address and a port, such as 127.0.0.1:9464 or [::1]:9464")
        return host.strip("[]"), number

    def token(self) -> str | None:
        """The token at this moment, None if none is asked for. Raises BadSetting, which quotes no token."""
        if self.token_file is None:
            return None
        try:
            open_to_others = self.token_file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            token = self.token_file.read_text("ascii").strip()
        except OSError as problem:
            raise BadSetting("token_file", f"{self.token_file} cannot be read: {problem.strerror}") from None
        except UnicodeDecodeError:
            token, open_to_others = "", 0
        if open_to_others:
            raise BadSetting("token_file", f'{self.token_file} is open to others: run "chmod 600 {self.token_file}"')
        if len(token) < _SHORTEST_TOKEN or not token.isprintable() or " " in token:
            raise BadSetting(
                "token_file", f"{self.token_file} must hold one token of {_SHORTEST_TOKEN} characters or more, in ASCII"
            )
        return token


# Inside Plugin the name stands for the attribute that every plugin has.
_Settings = Settings


class Plugin:
    """Counts what the service does, and tells it to Prometheus at an address of its own or behind a token."""

    hookspecs = 1
    Settings = Settings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.counts = Counts()
        self._noughts = Share()
        self._running: _Running | None = None

    @hookimpl
    def identity_watchers(self) -> Iterable[Watcher]:
        """What hears how long work takes; nothing unless somebody can ask."""
        return [self.counts] if self.settings.enabled else []

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        """Count requests; where no address is set, tell the figures at one of the service's."""
        if not self.settings.enabled:
            return
        identity = config.registry.identity
        self.counts.methods = frozenset({*identity.process.choices.ways, *identity.protocol.factors})
        self._noughts = Share(noughts(identity.protocol.grants, sorted(self.counts.methods)))
        config.add_request_observer(observer(self.counts))
        if not self.settings.listen:
            config.add_route("metrics", PATH)
            config.add_view(self._view, route_name="metrics", permission=NO_PERMISSION_REQUIRED)

    @hookimpl
    def identity_audited(self, event: AuditEvent) -> None:
        """Count it."""
        if self.settings.enabled:
            self.counts.count(EVENTS, event.event)

    @hookimpl
    def identity_running(self, running: Running) -> AbstractContextManager[object]:
        """Listen, and tell other processes. Raises BadSetting where the address is taken or the folder closed."""
        return self._answering(running)

    @contextmanager
    def _answering(self, running: Running) -> Iterator[None]:
        if not self.settings.enabled:
            yield
            return
        from identity.plugins.metrics.listener import Listener

        folder = self.settings.directory or running.settings.data / "metrics"
        shown = _Running(self.counts, self._noughts, running, folder)
        listener = None
        try:
            setting, value = "listen", self.settings.listen
            if self.settings.listen:
                listener = Listener(*self.settings.address, partial(self._answer, shown))
            setting, value = "directory", str(shown.folder)
            shown.begin()
        except OSError as problem:
            why = f"{value} cannot be used: {problem.strerror}"
            raise BadSetting(f"identity.plugin.metrics.{setting}", why) from None
        if listener is not None:
            listener.begin()
        self._running = shown
        try:
            yield
        finally:
            self._running = None
            if listener is not None:
                listener.end()
            shown.end()

    def _view(self, request: Request) -> Response:
        environ = request.environ
        answer = Answer(503, b"Not yet.\n", headers=(("Retry-After", "5"),))
        if self._running is not None:
            answer = self._answer(self._running, environ.get("HTTP_AUTHORIZATION"), environ.get("HTTP_ACCEPT", ""))
        headers = [("Content-Type", answer.media_type), ("Content-Length", str(len(answer.body))), *answer.headers]
        return Response(body=answer.body, status=answer.status, headerlist=headers)

    def _answer(self, shown: "_Running", authorization: str | None, accept: str) -> Answer:
        try:
            token = self.settings.token()
        except BadSetting as problem:
            return Answer(503, f"{problem}\n".encode())
        if token is not None and not same(digest(authorization or ""), digest(f"Bearer {token}")):
            return Answer(401, b"Send the token as Authorization: Bearer.\n", headers=(("WWW-Authenticate", "Bearer"),))
        body, media_type = shown.text(accept)
        return Answer(200, body, media_type)


class _Running:
    """The figures of this process while it answers, and of those beside it."""

    def __init__(self, counts: Counts, noughts: Share, running: Running, folder: Path) -> None:
        from identity.plugins.metrics.stored import Stored

        self.folder = folder
        self._counts = counts
        self._noughts = noughts
        self._loads = running.loads
        self._replaced = running.replaced
        self._shares = Shares(folder, self._own)
        self._telling = Telling(self._shares, counts.busy)
        self._stored = Stored(running.reading)

    def begin(self) -> None:
        """Count, and tell others, from now on. Raises OSError."""
        self._counts.forget()
        self._telling.begin()
        self._counts.on_change = self._telling.news

    def end(self) -> None:
        """Tell them a last time."""
        self._counts.on_change = lambda: None
        self._telling.end()

    def text(self, accept: str) -> tuple[bytes, str]:
        """All of them together, and the media type."""
        from identity.plugins.metrics.exposition import text

        return text([self._noughts, *self._shares.all()], self._stored.gauges(), accept)

    def _own(self) -> Share:
        counted = self._counts.snapshot()
        replaced = self._replaced()
        if replaced is not None:
            generation, times = replaced
            counted[REPLACED.name] = {(generation,): [times]}
        return Share(counted, self._loads(), os.getpid())

"""The process: one assembled service, and the ways into it."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from identity import offers, watching
from identity.backlogs import Backlogs
from identity.checks import Checks
from identity.clock import Clock
from identity.domain.audit import OPERATOR, SYSTEM, Actor, AuditEvent
from identity.domain_checks import DomainChecks
from identity.jobs import Jobs
from identity.mailer import Mailer
from identity.offers import CheckPassword
from identity.operations import Check, Running
from identity.plugin_host import PluginHost, PluginProblem
from identity.provider.client_authentication import authenticate_client
from identity.provider.discovery import capabilities
from identity.provider.endpoint import Endpoint, Host
from identity.provider.protocol import Protocol
from identity.sender import Sender
from identity.services.bundle import Services
from identity.services.changes import Look
from identity.services.outbox import Delivery
from identity.services.policies import PolicyCache
from identity.services.process_state import ProcessState
from identity.services.signing_keys import KeyRing
from identity.services.unit_of_work import UnitOfWork
from identity.settings import Settings
from identity.storage.backend import Backend, Storage
from identity.storage.errors import Unavailable
from identity.transactions import Transactions
from identity.worker import Job, Worker

if TYPE_CHECKING:
    from identity.provider.oidc import IdentityProvider

log = logging.getLogger(__name__)

_REMEMBERED_REFUSALS = 10_000
_OUTBOX_INTERVAL = timedelta(minutes=1)


@dataclass
class Identity:
    """One assembled service: what a process keeps, and the ways into it. Found as ``registry.identity``."""

    settings: Settings
    host: PluginHost
    protocol: Protocol
    backend: Backend
    process: ProcessState
    mailer: Mailer
    domain_checks: DomainChecks
    clock: Clock
    check_password: CheckPassword | None = None
    jobs: Jobs = field(init=False)
    worker: Worker = field(init=False)
    senders: Mapping[str, Sender] = field(init=False)
    checks: Checks = field(init=False)
    backlogs: Backlogs = field(init=False)
    watchers: Sequence[watching.Watcher] = field(init=False)
    #: How many processes of this service there are on this machine.
    processes: int = 1
    #: Below a parent process: its name, and how many processes took the place of another one before this one.
    replaced: tuple[str, int] | None = None
    _refusals: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.watchers = offers.watchers(self.host)
        watching.begin(self.watchers)
        self.senders = {kind: self._sender(delivery) for kind, delivery in self.process.deliveries.items()}
        self.jobs = Jobs(
            self.process,
            transaction=self.transaction,
            reading=self.reading,
            clock=lambda: self.clock(),
            relieve=lambda: self.backend.relieve(),
            stopping=lambda: self.worker.stopping,
        )
        self.worker = self._idle_worker()
        self.checks = Checks(
            self.settings,
            self.backend,
            self.reading,
            self.process.sealer,
            [
                *([Check("mail", self.mailer.check, readiness=False)] if self.settings.smtp.host else []),
                *(Check(one.name, one.check, readiness=False) for one in self.senders.values()),
                *(
                    offer.value
                    for offer in self.host.offers("identity_checks", settings=self.settings, reading=self.reading)
                ),
            ],
            self.host.settings,
            lambda: self.processes,
        )
        self.backlogs = Backlogs(self.settings, lambda: self.reading(SYSTEM), lambda: self.worker)
        #: Whether requests to an endpoint write, by its path; where paths begin that differ and lead to one that does.
        self.writing_paths: dict[str, bool] = {}
        self.writing_starts: tuple[str, ...] = ()
        #: Pages below ``/login/{request}`` that write when they are shown.
        self.writing_steps: set[str] = set()
        self.host_of_path: dict[str, Host] = {}
        for endpoint in self.protocol.endpoints:
            self._learn(endpoint)
        self.strict_transport = self.settings.base_url.startswith("https://")

    def add_endpoint(self, endpoint: Endpoint) -> None:
        """Count in an endpoint of a plugin, while it is configured. Raises PluginProblem if something has its place."""
        for other in self.protocol.endpoints:
            if other.name == endpoint.name or (other.path, other.host) == (endpoint.path, endpoint.host):
                raise PluginProblem(f'There is an endpoint "{other.name}" at {other.path} already.')
            if endpoint.advertised_as is not None and other.advertised_as == endpoint.advertised_as:
                raise PluginProblem(
                    f'The endpoints "{other.name}" and "{endpoint.name}" are both advertised as'
                    f" {endpoint.advertised_as}."
                )
        self.protocol.endpoints.append(endpoint)
        self._learn(endpoint)

    def _learn(self, endpoint: Endpoint) -> None:
        start, differs, _ = endpoint.path.partition("{")
        if differs:
            self.writing_starts += (start,) if endpoint.writes else ()
            return
        self.writing_paths[endpoint.path] = endpoint.writes
        self.host_of_path[endpoint.path] = endpoint.host

    @cached_property
    def provider(self) -> "IdentityProvider":
        """pyoidc's provider, wired to this service. Made when first needed: to import pyoidc is a third of a start."""
        from identity.provider.oidc import IdentityProvider

        return IdentityProvider(
            self.settings.issuer_url,
            base_url=self.settings.base_url,
            capabilities=capabilities(self.protocol, self.settings),
            client_authn=authenticate_client,
        )

    def services(
        self, open_storage: Callable[[], Storage], actor: Actor | Callable[[], Actor], *, look: Look | None = None
    ) -> UnitOfWork:
        """The use cases over a storage that is opened when first needed, as is told only then who acts."""
        return UnitOfWork(self.process, open_storage, self.clock(), actor, look=look)

    def lagging_services(self, storage: Storage, actor: Callable[[], Actor]) -> UnitOfWork:
        """The use cases over a storage that may be behind; what is kept of what they read is kept for them alone."""
        return UnitOfWork(self._lagging_process, lambda: storage, self.clock(), actor)

    @cached_property
    def _lagging_process(self) -> ProcessState:
        process = self.process
        ring = KeyRing(process.sealer, published_age=process.ring.published_age)
        return replace(process, ring=ring, policy_cache=PolicyCache(), instance=None)

    def committed(self, services: UnitOfWork) -> None:
        """Tell whom it concerns what these services did, now that it is committed."""
        self.host.notify(services.recorded)
        for kind in sorted(services.queued):
            self.worker.call(self.senders[kind].name)

    @contextmanager
    def transaction(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        """Services in a transaction of their own: committed at the end, aborted by an exception.

        Observers are told after the commit. For programs and background work; requests have pyramid_tm.
        """
        transactions = Transactions()
        with transactions:
            services = self.services(lambda: self.backend.writing(transactions), actor, look=self.backend.reading)
            yield services
        self.committed(services)

    @contextmanager
    def reading(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        """Services on a read connection."""
        with ExitStack() as stack:
            yield self.services(lambda: stack.enter_context(self.backend.reading()), actor)

    @contextmanager
    def snapshot(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        """Services that see what is committed now, for as long as they read."""
        with self.backend.snapshot() as storage:
            yield self.services(lambda: storage, actor)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around all that a process answers: what plugins do meanwhile. Raises what they raise."""
        shown = Running(self.settings, lambda: self.reading(SYSTEM), self._loads, lambda: self.replaced)
        with ExitStack() as stack:
            for _, hook in self.host.implementations("identity_running"):
                stack.enter_context(hook(running=shown))
            yield

    def _loads(self) -> Sequence[watching.Load]:
        return (self.process.hasher.load, *self.backend.loads)

    def write_refusals(self, events: list[AuditEvent]) -> None:
        """Write refused attempts, each ``once`` at most; a storage that is away is logged, the answer stands."""
        fresh = [event for event in events if event.once is None or event.once not in self._refusals]
        if not fresh:
            return
        try:
            with self.transaction(SYSTEM) as services:
                for event in fresh:
                    services.audit.write_refused(event)
        except Unavailable as problem:
            log.warning("a refusal could not be audited: %s", problem)
            return
        # A copy per process keeps floods away from the database; the storage decides over all processes.
        if len(self._refusals) > _REMEMBERED_REFUSALS:
            self._refusals.clear()
        self._refusals.update((event.once, None) for event in fresh if event.once is not None)

    def _idle_worker(self) -> Worker:
        sending = (Job(one.name, _OUTBOX_INTERVAL, one.run, alone=True) for one in self.senders.values())
        return Worker([*self.jobs.table, *sending])

    def _sender(self, delivery: Delivery) -> Sender:
        return Sender(
            delivery,
            transaction=lambda: self.transaction(SYSTEM),
            reading=lambda: self.reading(SYSTEM),
            clock=lambda: self.clock(),
            stopping=lambda: self.worker.stopping,
        )

    def share_machine(self, processes: int, replaced: tuple[str, int] | None) -> None:
        """Take a part of the processors, as one of so many processes. Called before the first request."""
        self.processes, self.replaced = processes, replaced
        self.process.hasher.share(processes)

    def close(self) -> None:
        """Finish background work and give back connections."""
        watching.end(self.watchers)
        self.worker.stop()
        try:
            self.jobs.write_last_uses()
        except Unavailable as problem:
            log.warning("last uses could not be written: %s", problem)
        self.process.hasher.close()
        self.backend.close()

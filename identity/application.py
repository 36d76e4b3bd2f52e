"""The assembled service of one process."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

from identity import extension_registry, instrumentation
from identity.background_jobs import ACTIVITY_INTERVAL, ACTIVITY_JOB, BackgroundJobs
from identity.background_monitor import BackgroundWorkMonitor
from identity.background_worker import BackgroundJob, BackgroundWorker
from identity.clock import Clock
from identity.domain.audit import OPERATOR, SYSTEM, Actor, AuditEvent
from identity.domain.mail_server import EffectiveMailServer
from identity.domain_verification import DomainVerifier
from identity.extension_points import ServingProcess, SystemCheck
from identity.extension_registry import PasswordCheck
from identity.mailer import Mailer
from identity.outbound_http import OutboundHttpClient
from identity.outbox_sender import OutboxSender
from identity.plugin_host import PluginHost
from identity.provider.client_authentication import authenticate_client
from identity.provider.protocol_registry import ProtocolRegistry
from identity.services.base import ReadSessionFactory
from identity.services.container import Services
from identity.services.outbox import Delivery
from identity.services.policies import PolicyCache
from identity.services.process_state import ProcessState
from identity.settings import Settings
from identity.storage.backend import Backend, Storage
from identity.storage.errors import StorageUnavailable
from identity.system_checks import SystemChecks
from identity.system_monitor import SYSTEM_REPORT_JOB, SystemMonitor
from identity.transaction_manager import ExplicitTransactionManager
from identity.webhook_sender import WebhookSender

if TYPE_CHECKING:
    from identity.provider.pyoidc_provider import IdentityProvider

log = logging.getLogger(__name__)

_MAX_CACHED_REFUSALS = 10_000
_OUTBOX_INTERVAL = timedelta(minutes=1)
_SYSTEM_REPORT_INTERVAL = timedelta(hours=1)


@dataclass
class IdentityApplication:
    """One assembled service and its entry points. Pyramid keeps it as ``registry.application``."""

    settings: Settings
    plugin_host: PluginHost
    protocol_registry: ProtocolRegistry
    backend: Backend
    process_state: ProcessState
    mailer: Mailer
    domain_verifier: DomainVerifier
    clock: Clock
    check_password: PasswordCheck | None = None
    background_jobs: BackgroundJobs = field(init=False)
    background_worker: BackgroundWorker = field(init=False)
    senders: Mapping[str, OutboxSender] = field(init=False)
    webhook_sender: WebhookSender = field(init=False)
    system_checks: SystemChecks = field(init=False)
    background_monitor: BackgroundWorkMonitor = field(init=False)
    system_monitor: SystemMonitor = field(init=False)
    observers: Sequence[instrumentation.InstrumentationObserver] = field(init=False)
    #: Number of processes of this service on this machine.
    process_count: int = 1
    #: In a worker: the name of its worker group, and how many workers the group has replaced so far.
    worker_replacements: tuple[str, int] | None = None
    _refusals: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.observers = extension_registry.collect_observers(self.plugin_host)
        instrumentation.add_observers(self.observers)
        self.mailer.load = self._load_mail_server
        self.process_state.open_transaction = lambda: self.backend.separate_transaction(ExplicitTransactionManager())
        self.senders = {
            kind: self._create_outbox_sender(delivery) for kind, delivery in self.process_state.deliveries.items()
        }
        self.webhook_sender = WebhookSender(
            OutboundHttpClient(
                networks=OutboundHttpClient.parse_networks(self.settings.allowed_networks), bounds_name_lookups=True
            ),
            transaction=lambda: self.transaction(SYSTEM),
            reading=lambda: self.read_session(SYSTEM),
            clock=lambda: self.clock(),
            stopping=lambda: self.background_worker.is_stopping,
        )
        self.background_jobs = BackgroundJobs(
            self.process_state,
            transaction=self.transaction,
            reading=self.read_session,
            clock=lambda: self.clock(),
            relieve=lambda: self.backend.checkpoint(),
            stopping=lambda: self.background_worker.is_stopping,
        )
        self.background_worker = self._create_background_worker()
        self.system_checks = SystemChecks(
            self.settings,
            self.backend,
            self.read_session,
            self.process_state.sealer,
            [
                SystemCheck("mail", self.mailer.find_problem, affects_readiness=False),
                *(
                    SystemCheck(outbox_sender.name, outbox_sender.find_problem, affects_readiness=False)
                    for outbox_sender in self.senders.values()
                ),
                *(
                    offer.value
                    for offer in self.plugin_host.extensions(
                        "identity_system_checks", settings=self.settings, open_services=self.read_session
                    )
                ),
            ],
            self.plugin_host.settings,
            lambda: self.process_count,
        )
        self.background_monitor = BackgroundWorkMonitor(
            self.settings,
            lambda: self.read_session(SYSTEM),
            lambda: self.background_worker,
            self.process_state.key_ring.failing_signers,
        )
        self.system_monitor = SystemMonitor(
            self.system_checks.run,
            lambda: self.backend.read_facts(),
            lambda: self.clock(),
            lambda: self.background_worker.run_now(SYSTEM_REPORT_JOB),
        )
        self.has_hsts = self.settings.base_url.startswith("https://")

    @cached_property
    def pyoidc_provider(self) -> "IdentityProvider":
        """pyoidc's provider, wired to this service. Created on first use: importing pyoidc takes a third of a start."""
        from identity.provider.pyoidc_provider import IdentityProvider

        return IdentityProvider(
            self.settings.issuer_url,
            base_url=self.settings.base_url,
            client_authn=authenticate_client,
        )

    def create_services(
        self,
        open_storage: Callable[[], Storage],
        actor: Actor | Callable[[], Actor],
        *,
        read_session: ReadSessionFactory | None = None,
    ) -> Services:
        """Services on a storage that is opened on first use, when ``actor`` is known."""
        return Services(self.process_state, open_storage, self.clock(), actor, read_session_factory=read_session)

    def create_standby_services(self, storage: Storage, actor: Callable[[], Actor]) -> Services:
        """Services on a storage that may lag behind. What they cache is never shared with services on the primary."""
        return Services(self._standby_process_state, lambda: storage, self.clock(), actor)

    @cached_property
    def _standby_process_state(self) -> ProcessState:
        process = self.process_state
        return replace(process, key_ring=process.key_ring.without_copy(), policy_cache=PolicyCache(), instance=None)

    def after_commit(self, services: Services) -> None:
        """Notify observers and caches of what these services changed. Call it after the commit."""
        self.process_state.activity_collector.count_events(services.recorded_events)
        self.plugin_host.notify_audit_events(services.recorded_events)
        for kind in sorted(services.queued_kinds):
            self.background_worker.run_now(self.senders[kind].name if kind in self.senders else kind)

    @contextmanager
    def transaction(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        """Services in a transaction of their own, committed at the end and rolled back on an exception.

        Observers are notified after the commit. For programs and background work; requests use pyramid_tm.
        """
        transactions = ExplicitTransactionManager()
        with transactions:
            services = self.create_services(
                lambda: self.backend.join_transaction(transactions), actor, read_session=self.backend.read_session
            )
            yield services
        self.after_commit(services)

    @contextmanager
    def read_session(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        with ExitStack() as stack:
            yield self.create_services(lambda: stack.enter_context(self.backend.read_session()), actor)

    def _load_mail_server(self) -> EffectiveMailServer:
        """The mail server now, so that a change takes effect in every process with the next mail."""
        with self.read_session() as services:
            return services.mail_server.effective()

    @contextmanager
    def snapshot(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        """Services on a snapshot: all reads see what was committed when it was opened."""
        with self.backend.snapshot() as storage:
            yield self.create_services(lambda: storage, actor)

    @contextmanager
    def lifespan(self) -> Iterator[None]:
        """Runs the plugins' ``identity_lifespan`` around everything that a process serves. Raises what they raise."""
        serving_process = ServingProcess(
            self.settings, lambda: self.read_session(SYSTEM), self._pool_usages, lambda: self.worker_replacements
        )
        with ExitStack() as stack:
            # Not before: no thread may start before a fork.
            self.process_state.activity_collector.on_first = partial(
                self.background_worker.schedule, ACTIVITY_JOB, ACTIVITY_INTERVAL
            )
            for _, hook in self.plugin_host.implementations("identity_lifespan"):
                stack.enter_context(hook(process=serving_process))
            yield

    def _pool_usages(self) -> Sequence[instrumentation.PoolUsage]:
        return (self.process_state.hasher.pool_usage, *self.backend.pool_usages)

    def record_refusals(self, events: list[AuditEvent]) -> None:
        """Write audit events for refused attempts, each ``once`` key at most once.

        A storage failure is logged and does not change the response.
        """
        self.process_state.activity_collector.count_refusals(events)
        fresh = [event for event in events if event.once is None or event.once not in self._refusals]
        if not fresh:
            return
        try:
            with self.transaction(SYSTEM) as services:
                for event in fresh:
                    services.audit.write_refusal(event)
        except StorageUnavailable as problem:
            log.warning("a refusal could not be audited: %s", problem)
            return
        # This cache per process keeps floods away from the database; the storage deduplicates across processes.
        if len(self._refusals) > _MAX_CACHED_REFUSALS:
            self._refusals.clear()
        self._refusals.update((event.once, None) for event in fresh if event.once is not None)

    def _create_background_worker(self) -> BackgroundWorker:
        sending = (
            BackgroundJob(outbox_sender.name, _OUTBOX_INTERVAL, outbox_sender.run, has_own_thread=True)
            for outbox_sender in self.senders.values()
        )
        webhooks = BackgroundJob(
            self.webhook_sender.name, _OUTBOX_INTERVAL, self.webhook_sender.run, has_own_thread=True
        )
        report = BackgroundJob(
            SYSTEM_REPORT_JOB, _SYSTEM_REPORT_INTERVAL, lambda: self.system_monitor.run(), has_own_thread=True
        )
        return BackgroundWorker([*self.background_jobs.jobs, *sending, webhooks, report])

    def _create_outbox_sender(self, delivery: Delivery) -> OutboxSender:
        return OutboxSender(
            delivery,
            transaction=lambda: self.transaction(SYSTEM),
            reading=lambda: self.read_session(SYSTEM),
            clock=lambda: self.clock(),
            stopping=lambda: self.background_worker.is_stopping,
        )

    def set_process_count(self, processes: int, replaced: tuple[str, int] | None) -> None:
        """Take a share of the processors, as one of ``processes`` processes. Call it before the first request."""
        self.process_count, self.worker_replacements = processes, replaced
        self.process_state.hasher.set_process_count(processes)

    def close(self) -> None:
        """Finish background work and close connections."""
        instrumentation.remove_observers(self.observers)
        self.background_worker.stop()
        for name, flush in (
            ("last uses", self.background_jobs.flush_last_used),
            ("figures", self.background_jobs.flush_activity),
        ):
            try:
                flush()
            except StorageUnavailable as problem:
                log.warning("%s could not be written: %s", name, problem)
            except Exception:
                log.exception("%s could not be written", name)
        self.process_state.hasher.close()
        self.process_state.key_sets.close()
        if self.process_state.client_metadata is not None:
            self.process_state.client_metadata.close()
        self.process_state.key_ring.close()
        self.process_state.documents.close()
        self.backend.close()

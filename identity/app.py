"""The only assembler: settings → plugins → protocol → backend → Pyramid."""

import gc
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.router import Router
from transaction import ThreadTransactionManager

from identity import clock as real_clock
from identity.clock import Clock
from identity.crypto.passwords import Cost
from identity.crypto.sealing import Sealer, create_master_key_file, read_master_keys
from identity.domain.audit import OPERATOR, SYSTEM, Actor, AuditEvent
from identity.domain.errors import Invalid
from identity.domain.managers import Role
from identity.domain.permissions import PERMISSIONS
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.domain.users import User
from identity.domain_checks import DomainChecks
from identity.hashing import Hasher
from identity.ini_file import with_variables
from identity.mailer import MailDelivery, Mailer
from identity.operations import Check
from identity.plugin_host import PluginHost, PluginProblem
from identity.provider.client_authentication import authenticate_client
from identity.provider.discovery import capabilities
from identity.provider.endpoint import Host
from identity.provider.endpoints import ENDPOINTS, metadata
from identity.provider.grant import ClientRule
from identity.provider.interaction import Interaction
from identity.provider.protocol import Protocol
from identity.provider.response_type import ResponseType
from identity.provider.scope import Scopes
from identity.sender import Sender
from identity.services import last_uses, leases
from identity.services.access import Deny
from identity.services.bundle import ProcessState, Services
from identity.services.changes import Look
from identity.services.choices import Choices
from identity.services.lookup import Lookup
from identity.services.mails import KIND
from identity.services.outbox import Delivery
from identity.services.purge import BATCH, PURGES
from identity.services.signing_keys import KeyRing
from identity.settings import BadSetting, Settings, read_settings
from identity.storage.backend import Backend, Storage
from identity.storage.errors import Unavailable
from identity.worker import Job, Worker

if TYPE_CHECKING:
    from identity.provider.oidc import IdentityProvider

log = logging.getLogger(__name__)

_REMEMBERED_REFUSALS = 10_000
_EXPIRY_INTERVAL = timedelta(hours=6)
_USES_INTERVAL = timedelta(minutes=1)
_BREATH = 0.02
_OUTBOX_INTERVAL = timedelta(minutes=1)

#: Plugins' word on a password: user, password, lookup → whether it is theirs, or None for no opinion.
CheckPassword = Callable[[User, str, Lookup], bool | None]


class Transactions(ThreadTransactionManager):  # type: ignore[misc]
    """One manager for the process, a transaction per thread, each begun and ended explicitly."""

    def __init__(self) -> None:
        super().__init__()
        self.explicit = True

    def commit(self) -> None:
        """Commit. What cannot be committed is aborted, or the thread could never begin another transaction."""
        try:
            super().commit()
        except BaseException:
            self.abort()
            raise

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if value is None:
            self.commit()
        else:
            self.abort()


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
    checks: tuple[Check, ...]
    check_password: CheckPassword | None = None
    transactions: Transactions = field(default_factory=Transactions)
    worker: Worker = field(init=False)
    senders: Mapping[str, Sender] = field(init=False)
    _refusals: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.senders = {kind: self._sender(delivery) for kind, delivery in self.process.deliveries.items()}
        self.worker = Worker(
            [
                Job("purge", self.settings.purge_interval, self.purge_if_free),
                Job("key rotation", self.settings.purge_interval, self.rotate_if_due),
                Job("expiring keys", _EXPIRY_INTERVAL, self.note_expiring_keys),
                Job("last uses", _USES_INTERVAL, self.write_last_uses),
                *(Job(one.name, _OUTBOX_INTERVAL, one.run, alone=True) for one in self.senders.values()),
            ]
        )
        self.writing_paths = {endpoint.path: endpoint.writes for endpoint in ENDPOINTS}
        self.host_of_path: Mapping[str, Host] = {endpoint.path: endpoint.host for endpoint in ENDPOINTS}
        self.strict_transport = self.settings.base_url.startswith("https://")

    @cached_property
    def provider(self) -> "IdentityProvider":
        """pyoidc's provider, wired to this service. Made when first needed: to import pyoidc is a third of a start."""
        return _provider(self.settings, self.protocol)

    def services(self, open_storage: Callable[[], Storage], actor: Actor, *, look: Look | None = None) -> Services:
        """The use cases over a storage that is opened when first needed."""
        return Services(self.process, open_storage, self.clock(), actor, look=look)

    def committed(self, services: Services) -> None:
        """Tell whom it concerns what these services did, now that it is committed."""
        self.host.notify(services.recorded)
        for kind in sorted(services.queued):
            self.worker.call(self.senders[kind].name)

    @contextmanager
    def transaction(self, actor: Actor = OPERATOR) -> Iterator[Services]:
        """Services in a transaction of their own: committed at the end, aborted by an exception.

        Observers are told after the commit. For programs and background work; requests have pyramid_tm.
        """
        with self.transactions:
            services = self.services(lambda: self.backend.writing(self.transactions), actor, look=self.backend.reading)
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

    def failed_checks(self, *, of_readiness: bool = False) -> dict[str, str]:
        """What an operator has to fix: check → sentence. Empty if all is well. ``of_readiness`` leaves others out."""
        found = {}
        for check in self.checks:
            if of_readiness and not check.readiness:
                continue
            try:
                problem = check.run()
            except Exception as failure:
                log.warning("the check %s failed", check.name, exc_info=failure)
                problem = f"The check itself failed: {type(failure).__name__}."
            if problem is not None:
                found[check.name] = problem
                log.warning("check %s: %s", check.name, problem)
        return found

    def check_storage(self) -> str | None:
        """What is wrong with the storage, if anything."""
        try:
            self.backend.check()
        except Unavailable as problem:
            return str(problem)
        return None

    def check_signing_key(self) -> str | None:
        """Whether there is a key to sign with, and whether it can be opened."""
        try:
            with self.reading() as services:
                services.signing_keys.current()
        except Exception as problem:
            return str(problem) or type(problem).__name__
        return None

    def check_domains(self) -> str | None:
        """Which organizations go by a domain that nobody has proven, from the time before that was asked for."""
        with self.reading() as services:
            unproven = services.domains.unproven()
            if not unproven:
                return None
            names = ", ".join(one.name for one in unproven)
        return f"Nobody has proven these domains: {names}. Have each proven or asserted in the console, or changed."

    def check_proxy(self) -> str | None:
        """Whether it is decided whose word on people's addresses is believed."""
        if self.settings.trusted_proxy or self.settings.development:
            return None
        return (
            "identity.trusted_proxy does not say whether there is a proxy in front. Name its address, for the server"
            ' too (production.ini: proxy in [DEFAULT]), or say "none": behind a proxy that is not named, all people'
            " share one limit of attempts."
        )

    def purge(self) -> dict[str, int]:
        """Delete all that has expired, batch by batch; returns how many of each kind went."""
        before = self.clock() - self.settings.purge_after
        deleted = dict.fromkeys(PURGES, 0)
        for kind, purge in PURGES.items():
            while True:
                with self.transaction(SYSTEM) as services:
                    count = purge(services.storage, before)
                deleted[kind] += count
                if count < BATCH or self.worker.stopping:
                    break
                # Others are waiting to write.
                time.sleep(_BREATH)
        with self.transaction(SYSTEM) as services:
            deleted["signing keys"] = services.signing_keys.remove_unpublished()
        return {kind: count for kind, count in deleted.items() if count}

    def purge_if_free(self) -> None:
        """Purge, unless another node is at it."""
        if self._acquire("purge", self.settings.purge_interval / 2):
            self.purge()

    def rotate_if_due(self) -> None:
        """Announce the next signing key when the active one is old enough."""
        with self.reading(SYSTEM) as services:
            due = services.signing_keys.rotation_due()
        if due:
            with self.transaction(SYSTEM) as services:
                services.signing_keys.rotate()

    def note_expiring_keys(self) -> None:
        """Write audit events for keys and personal access tokens that expire soon, unless another node is at it."""
        if self._acquire("expiring keys", _EXPIRY_INTERVAL / 2):
            with self.transaction(SYSTEM) as services:
                services.service_users.note_expiring()

    def write_last_uses(self) -> None:
        """Write when secrets and personal access tokens were last used, as far as this process knows."""
        taken = self.process.uses.take()
        if not taken:
            return
        try:
            with self.transaction(SYSTEM) as services:
                last_uses.write(taken, services.storage)
        except Exception:
            self.process.uses.give_back(taken)
            raise

    def _sender(self, delivery: Delivery) -> Sender:
        return Sender(
            delivery,
            transaction=lambda: self.transaction(SYSTEM),
            reading=lambda: self.reading(SYSTEM),
            clock=lambda: self.clock(),
            stopping=lambda: self.worker.stopping,
        )

    def _acquire(self, name: str, span: timedelta) -> bool:
        now = self.clock()
        with self.transaction(SYSTEM) as services:
            return leases.acquire(services.storage, name, at=now, until=now + span)

    def close(self) -> None:
        """Finish background work and give back connections."""
        self.worker.stop()
        try:
            self.write_last_uses()
        except Unavailable as problem:
            log.warning("last uses could not be written: %s", problem)
        self.process.hasher.close()
        self.backend.close()


def assemble(settings: Mapping[str, str], *, clock: Clock = real_clock.now) -> Identity:
    """The service that these ini strings describe, nothing opened yet.

    Raises BadSetting or PluginProblem, saying what to mend.
    """
    file = read_settings(settings)
    core = file.core
    host = PluginHost.load(core.plugins, file.plugins)
    backends: dict[str, Backend] = host.unique("identity_storage_backends", lambda one: str(one.name), "storage")
    if core.storage not in backends:
        offered = ", ".join(sorted(backends)) or "none"
        raise BadSetting("identity.storage", f'"{core.storage}" is offered by no listed plugin; offered: {offered}')
    roles: dict[str, Role] = host.unique("identity_manager_roles", lambda one: str(one.name), "manager role")
    _check_roles(roles)
    protocol = Protocol(
        grants=host.unique("identity_grant_types", lambda one: str(one.grant_type), "grant type"),
        response_types=_response_types(host),
        interactions=_interactions(host),
        scopes=Scopes(_scopes(host)),
        client_authentications=host.unique(
            "identity_client_authentications", lambda one: str(one.name), "client authentication"
        ),
        user_claims=tuple(host.implementations("identity_user_claims")),
        token_claims=tuple(host.implementations("identity_token_claims")),
        discovery=tuple(host.implementations("identity_discovery")),
    )
    sealer = Sealer(_master_keys(core))
    ring = KeyRing(sealer, published_age=LONGEST_TOKEN_LIFETIME + core.clock_skew)
    cost = Cost(memory_kib=core.password_memory, iterations=core.password_iterations)
    hasher = Hasher(cost, workers=core.password_workers)
    mailer = Mailer(core.smtp)
    identity = Identity(
        settings=core,
        host=host,
        protocol=protocol,
        backend=backends[core.storage],
        process=ProcessState(
            settings=core,
            ring=ring,
            sealer=sealer,
            hasher=hasher,
            roles=roles,
            deny=_deny(host),
            choices=_choices(protocol),
            deliveries=_deliveries(host, core, mailer),
        ),
        mailer=mailer,
        domain_checks=DomainChecks(core),
        check_password=_check_password(host),
        clock=clock,
        checks=(),
    )
    identity.checks = (
        Check("storage", identity.check_storage),
        Check("signing key", identity.check_signing_key),
        Check("domains", identity.check_domains, readiness=False),
        Check("proxy", identity.check_proxy, readiness=False),
        *([Check("mail", mailer.check, readiness=False)] if core.smtp.host else []),
        *(Check(one.name, one.check, readiness=False) for one in identity.senders.values()),
        *(offer.value for offer in host.offers("identity_checks")),
    )
    return identity


def configure(identity: Identity, settings: Mapping[str, Any]) -> Router:
    """The Pyramid application around an assembled service."""
    # Built now, so that a plugin that fails to add to it stops the start and not the requests.
    metadata.document(identity.protocol, identity.settings)
    with Configurator(settings=dict(settings)) as config:
        config.registry.identity = identity
        config.include("identity.http")
        for name, hook in identity.host.implementations("identity_configure"):
            config.include(_named(partial(_configure_plugin, hook), name))
    router = config.make_wsgi_app()
    _check_permissions(config.registry)
    return router


def main(global_config: Mapping[str, str], **settings: str) -> Router:
    """The WSGI application for ``pserve``; in development it migrates and bootstraps first.

    Raises SystemExit with a clear sentence for settings, plugins or a storage that do not fit.
    """
    from identity import first_start

    # What a start makes stays, so that looking through it for garbage is in vain, now and later.
    gc.disable()
    try:
        settings = with_variables(global_config, settings)
        identity = assemble(settings)
        if identity.settings.development:
            first_start.prepare(identity, announce=True)
        else:
            _require_ready(identity)
        return configure(identity, settings)
    except (BadSetting, PluginProblem, Invalid, Unavailable) as problem:
        raise SystemExit(f"identity cannot start. {problem}") from None
    except OSError as problem:
        raise SystemExit(f"identity cannot start. {problem.filename}: {problem.strerror}.") from None
    finally:
        gc.freeze()
        gc.enable()


def _require_ready(identity: Identity) -> None:
    """Raise Unavailable, saying what to run first, unless the schema fits and there is a key that can be opened."""
    identity.backend.check()
    problem = identity.check_signing_key()
    if problem is not None:
        raise Unavailable(problem)


def _configure_plugin(hook: Callable[..., None], config: Configurator) -> None:
    hook(config=config)


def _named(function: partial[None], name: str) -> Callable[[Configurator], None]:
    """A function of its own per plugin: Pyramid includes each callable once and names it in conflicts."""

    def include(config: Configurator) -> None:
        function(config)

    include.__name__ = include.__qualname__ = f"plugin_{name}"
    return include


def _check_permissions(registry: Registry) -> None:
    """Every view says who may see it. Raises PluginProblem for one that does not."""
    for view in registry.introspector.get_category("views"):
        route, context = view["introspectable"]["route_name"], view["introspectable"]["context"]
        is_exception_view = route is None and context is not None
        if not is_exception_view and not any(one.category_name == "permissions" for one in view["related"]):
            raise PluginProblem(
                f"A view of the route {route} names no permission. Pass one to add_view, or NO_PERMISSION_REQUIRED."
            )


def _provider(settings: Settings, protocol: Protocol) -> "IdentityProvider":
    from identity.provider.oidc import IdentityProvider

    return IdentityProvider(
        settings.issuer_url,
        base_url=settings.base_url,
        capabilities=capabilities(protocol, settings),
        client_authn=authenticate_client,
    )


def _scopes(host: PluginHost) -> list[Any]:
    """All scopes; a name offered twice stops the start."""
    host.unique("identity_scopes", lambda one: " ".join(one.names) or type(one).__qualname__, "scope")
    return [offer.value for offer in host.offers("identity_scopes")]


def _response_types(host: PluginHost) -> Mapping[frozenset[str], ResponseType]:
    """All response types by their words; two with the same words stop the start."""
    named = host.unique("identity_response_types", lambda one: " ".join(sorted(one.words)), "response type")
    return {one.words: one for one in named.values()}


def _deliveries(host: PluginHost, settings: Settings, mailer: Mailer) -> Mapping[str, Delivery]:
    """All ways out of the service by kind: mails, where a mail server is set, and what plugins offer."""
    mails = {KIND: MailDelivery(mailer)} if settings.smtp.host else {}
    offered: dict[str, Delivery] = host.unique(
        "identity_deliveries", lambda one: str(one.kind), "delivery", settings=settings
    )
    if KIND in offered:
        raise PluginProblem(f'A plugin offers the delivery "{KIND}", which is the service\'s own.')
    return mails | offered


def _choices(protocol: Protocol) -> Choices:
    return Choices(
        authentication_methods=tuple(protocol.client_authentications),
        # A grant that knows no client is nothing that an application could be registered for.
        grant_types=tuple(name for name, one in protocol.grants.items() if one.client is not ClientRule.NONE),
        response_types=tuple(one.value for one in protocol.response_types.values()),
    )


def _interactions(host: PluginHost) -> Mapping[str, Interaction]:
    """All interactions by name, in the order in which they are asked: the late ones last."""
    named: dict[str, Interaction] = host.unique("identity_interactions", lambda one: str(one.name), "interaction")
    return dict(sorted(named.items(), key=lambda offer: offer[1].late))


def _check_password(host: PluginHost) -> CheckPassword | None:
    """One callable for all plugins that know passwords. What is told of a failure could show the password."""
    decide = host.deciding(
        "identity_check_password", lambda verdict: isinstance(verdict, bool), refused=False, traceback=False
    )
    if decide is None:
        return None
    return lambda user, password, lookup: decide(user=user, password=password, lookup=lookup)


def _check_roles(roles: Mapping[str, Role]) -> None:
    for role in roles.values():
        unknown = role.permissions - PERMISSIONS
        if unknown:
            raise PluginProblem(f"The role {role.name} names unknown permissions: {', '.join(sorted(unknown))}.")


def _deny(host: PluginHost) -> Deny | None:
    """One callable for all vetoes."""
    decide = host.deciding(
        "identity_deny",
        lambda reason: isinstance(reason, str) and bool(reason),
        refused="A check of this action failed.",
    )
    if decide is None:
        return None
    return lambda principal, permission, resource, lookup: decide(
        principal=principal, permission=permission, resource=resource, lookup=lookup
    )


def _master_keys(settings: Settings) -> Any:
    if settings.master_keys:
        return read_master_keys(settings.master_keys)
    path = settings.data / "master.key"
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        try:
            create_master_key_file(path)
        except FileExistsError:
            log.debug("another process made the master key first")
    return read_master_keys((f"development:{path}",))

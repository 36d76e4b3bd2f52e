"""Services: every use case, built for one transaction from what the process keeps."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

from identity.crypto.sealing import Sealer
from identity.domain.audit import Actor, AuditEvent
from identity.domain.instance import Instance
from identity.domain.managers import Role
from identity.domain.records import NameSpace
from identity.hashing import Hasher
from identity.services.access import Access, Deny
from identity.services.applications import Applications
from identity.services.attempts import Attempts
from identity.services.audit import AuditTrail, Recorder
from identity.services.changes import Look
from identity.services.choices import Choices
from identity.services.consents import Consents
from identity.services.cursors import Cursors
from identity.services.domains import Domains
from identity.services.effects import EffectsOf
from identity.services.idempotency import Idempotency
from identity.services.known_browsers import KnownBrowsers
from identity.services.last_uses import LastUses
from identity.services.links import Links
from identity.services.lookup import Lookup
from identity.services.mails import Mails
from identity.services.managers import Managers
from identity.services.organizations import Organizations
from identity.services.outbox import Delivery, Outbox
from identity.services.overview import Overview
from identity.services.passwords import Passwords
from identity.services.project_grants import ProjectGrants
from identity.services.projects import Projects
from identity.services.records import Records
from identity.services.registration import Registration
from identity.services.service_users import ServiceUsers
from identity.services.sessions import Sessions
from identity.services.sign_ins import SignIns
from identity.services.signing_keys import KeyRing, SigningKeys
from identity.services.tokens import Tokens
from identity.services.user_grants import UserGrants
from identity.services.users import Users
from identity.settings import Settings
from identity.storage.backend import LazyStorage, Storage


@dataclass
class ProcessState:
    """What a process keeps for all its requests."""

    settings: Settings
    ring: KeyRing
    sealer: Sealer
    hasher: Hasher
    roles: Mapping[str, Role]
    deny: Deny | None
    choices: Choices
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)
    uses: LastUses = field(default_factory=LastUses)
    instance: Instance | None = None


_OF_PROCESS = {one.name for one in fields(ProcessState)} - {"instance"}
Kind = TypeVar("Kind")


class _Made(Generic[Kind]):
    """A service that is made when it is first asked for, and kept."""

    def __init__(self, kind: Callable[["Services"], Kind]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, services: "Services", owner: type | None = None) -> Kind:
        made = self._kind(services)
        services.__dict__[self._name] = made
        return made


class Services:
    """One attribute per service; each is made when first asked for, and the storage is opened by its first use.

    ``open_storage`` opens the storage of the transaction, and ``look`` another one to read from before the first write.
    Without ``look`` nothing can be written, and the one storage serves for both.
    """

    def __init__(
        self,
        process: ProcessState,
        open_storage: Callable[[], Storage],
        now: datetime,
        actor: Actor,
        *,
        look: Look | None = None,
    ) -> None:
        self._process = process
        self.storage = LazyStorage(open_storage)
        self._look = look
        self.now = now
        self._actor = actor
        #: Called at the first change that is recorded or message that is queued, by whoever acts after the commit.
        self.on_first_effect: Callable[[], None] | None = None
        self._has_effect = False

    @contextmanager
    def look(self) -> Iterator[Storage]:
        """A storage to look things up in without making writers wait: nothing is locked before the first write.

        What is found may be gone when it is written about; stores then answer Missing.
        """
        if self._look is None or self.storage.opened:
            yield self.storage
        else:
            with self._look() as storage:
                yield storage

    def instance(self) -> Instance | None:
        """The instance, None before bootstrap. It never changes, so a process asks once.

        Only what is committed is kept: this very transaction may be the bootstrap, and may yet fail.
        """
        if self._process.instance is None:
            with nullcontext(self.storage) if self._look is None else self._look() as committed:
                self._process.instance = committed.organizations.find_instance()
        return self._process.instance or self.storage.organizations.find_instance()

    @cached_property
    def audit(self) -> Recorder:
        """What is recorded and refused in this transaction."""
        return Recorder(
            self.storage,
            self.now,
            self._actor,
            on_first_record=self.note_effect,
            on_record=lambda event: self.outbox.announce(event),
        )

    @property
    def recorded(self) -> list[AuditEvent]:
        """The events that were written in this transaction."""
        return self.audit.recorded if "audit" in self.__dict__ else []

    @property
    def queued(self) -> set[str]:
        """The kinds of messages that were queued in this transaction."""
        return self.outbox.queued if "outbox" in self.__dict__ else set()

    @property
    def refused(self) -> list[AuditEvent]:
        """The refused attempts of this transaction, to be written after it ended."""
        return self.audit.refused if "audit" in self.__dict__ else []

    @cached_property
    def lookup(self) -> Lookup:
        """What hooks may read."""
        return Lookup(self.look)

    @cached_property
    def access(self) -> Access:
        """Who may do what."""
        return Access(self.storage, self._process.roles, self._process.deny, self.lookup)

    organizations = _Made(Organizations)
    domains = _Made(Domains)
    projects = _Made(Projects)
    project_grants = _Made(ProjectGrants)
    user_grants = _Made(UserGrants)
    users = _Made(Users)
    passwords = _Made(Passwords)
    attempts = _Made(Attempts)
    known_browsers = _Made(KnownBrowsers)
    registration = _Made(Registration)
    links = _Made(Links)
    mails = _Made(Mails)
    outbox = _Made(Outbox)
    sessions = _Made(Sessions)
    sign_ins = _Made(SignIns)
    service_users = _Made(ServiceUsers)
    applications = _Made(Applications)
    consents = _Made(Consents)
    managers = _Made(Managers)
    tokens = _Made(Tokens)
    signing_keys = _Made(SigningKeys)
    overview = _Made(Overview)
    effects = _Made(EffectsOf)
    cursors = _Made(Cursors)
    idempotency = _Made(Idempotency)

    @cached_property
    def audit_trail(self) -> AuditTrail:
        """What was recorded and refused, to be read."""
        return AuditTrail(self.storage)

    def records(self, name_space: NameSpace) -> Records:
        """What a plugin keeps in its own name space."""
        return Records(self, name_space)

    @property
    def choices(self) -> Choices:
        """What the loaded plugins offer."""
        return self._process.choices

    def part(self, name: str) -> Any:
        """What a service names: another one, or what the process keeps."""
        return getattr(self._process if name in _OF_PROCESS else self, name)

    def note_effect(self) -> None:
        """Remember that something is to be done after the commit."""
        if not self._has_effect and self.on_first_effect is not None:
            self.on_first_effect()
        self._has_effect = True

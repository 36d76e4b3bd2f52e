"""UnitOfWork: the use cases of one transaction, as the process sees them: what they are made of, and what they did."""

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from identity.crypto.sealing import Sealer
from identity.domain.audit import Actor, AuditEvent
from identity.domain.instance import Instance
from identity.domain.managers import Role
from identity.domain.records import NameSpace
from identity.hashing import Hasher
from identity.lazily import lazily
from identity.services.access import Access, Deny
from identity.services.audit import Recorder
from identity.services.bundle import Services
from identity.services.changes import Look
from identity.services.choices import Choices
from identity.services.last_uses import LastUses
from identity.services.outbox import Delivery
from identity.services.policies import PolicyCache
from identity.services.records import Records
from identity.services.signing_keys import KeyRing
from identity.settings import Settings
from identity.storage.backend import DeferredStorage, Storage


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
    known_bad: Container[str] = frozenset()
    policy_cache: PolicyCache = field(default_factory=PolicyCache)
    uses: LastUses = field(default_factory=LastUses)
    instance: Instance | None = None


_OF_PROCESS = {one.name for one in fields(ProcessState)} - {"instance"}


class UnitOfWork(Services):
    """Services over a storage that is opened by its first use.

    ``open_storage`` opens the storage of the transaction, and ``look`` another one to read from before the first write.
    Without ``look`` nothing can be written, and the one storage serves for both.
    """

    storage: DeferredStorage

    def __init__(
        self,
        process: ProcessState,
        open_storage: Callable[[], Storage],
        now: datetime,
        actor: Actor | Callable[[], Actor],
        *,
        look: Look | None = None,
    ) -> None:
        self._process = process
        self.storage = DeferredStorage(open_storage)
        self._look = look
        self.now = now
        self._actor = actor
        #: Called at the first change that is recorded or message that is queued, by whoever acts after the commit.
        self.on_first_effect: Callable[[], None] | None = None
        self._has_effect = False
        #: Tells the language of whoever acts.
        self.tell_language: Callable[[], str] = str

    @lazily
    def language(self) -> str:
        return self.tell_language()

    def look(self) -> AbstractContextManager[Storage]:
        return nullcontext(self.storage) if self._look is None or self.storage.opened else self._look()

    def instance(self) -> Instance | None:
        # Only what is committed is kept: this very transaction may be the bootstrap, and may yet fail.
        if self._process.instance is None:
            with nullcontext(self.storage) if self._look is None else self._look() as committed:
                self._process.instance = committed.organizations.find_instance()
        return self._process.instance or self.storage.organizations.find_instance()

    @lazily
    def audit(self) -> Recorder:
        return Recorder(
            self.storage,
            self.now,
            self._actor if isinstance(self._actor, Actor) else self._actor(),
            on_first_record=self.note_effect,
            on_record=self._told,
        )

    @lazily
    def access(self) -> Access:
        return Access(self.storage, self._process.roles, self._process.deny, self.lookup, self.instance)

    def records(self, name_space: NameSpace) -> Records:
        return Records(self, name_space)

    @property
    def choices(self) -> Choices:
        return self._process.choices

    @property
    def recorded(self) -> list[AuditEvent]:
        return self.audit.recorded if "audit" in self.__dict__ else []

    @property
    def refused(self) -> list[AuditEvent]:
        """The refused attempts of this transaction, to be written after it ended."""
        return self.audit.refused if "audit" in self.__dict__ else []

    @property
    def queued(self) -> set[str]:
        """The kinds of messages that were queued in this transaction."""
        return self.outbox.queued if "outbox" in self.__dict__ else set()

    def part(self, name: str) -> Any:
        """What a service names: another one, or what the process keeps."""
        return getattr(self._process if name in _OF_PROCESS else self, name)

    def forget(self) -> None:
        """Let go of everything, at the end."""
        self.__dict__.clear()

    def _told(self, event: AuditEvent) -> None:
        self.outbox.announce(event)
        self.notices.tell(event)

    def note_effect(self) -> None:
        """Remember that something is to be done after the commit."""
        if not self._has_effect and self.on_first_effect is not None:
            self.on_first_effect()
        self._has_effect = True

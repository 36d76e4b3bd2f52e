"""Services: every use case, built for one transaction from what the process keeps."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from identity.domain.audit import Actor, AuditEvent
from identity.domain.instance import Instance
from identity.domain.managers import Role
from identity.services.access import Access, Deny
from identity.services.applications import Applications
from identity.services.audit import Recorder
from identity.services.changes import Look
from identity.services.lookup import Lookup
from identity.services.managers import Managers
from identity.services.organizations import Organizations
from identity.services.project_grants import ProjectGrants
from identity.services.projects import Projects
from identity.services.service_users import ServiceUsers
from identity.services.signing_keys import KeyRing, SigningKeys
from identity.services.tokens import Tokens
from identity.services.users import Users
from identity.settings import Settings
from identity.storage.backend import LazyStorage, Storage


@dataclass
class ProcessState:
    """What a process keeps for all its requests."""

    settings: Settings
    ring: KeyRing
    roles: Mapping[str, Role]
    deny: Deny | None
    instance: Instance | None = None


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
        #: Called when the first change is recorded, by whoever wants to tell observers after the commit.
        self.on_first_record: Callable[[], None] | None = None

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
                self._process.instance = committed.instance.find()
        return self._process.instance or self.storage.instance.find()

    @cached_property
    def audit(self) -> Recorder:
        """What is recorded and refused in this transaction."""
        return Recorder(self.storage, self.now, self._actor, on_first_record=self.on_first_record)

    @property
    def refused(self) -> list[AuditEvent]:
        """The refused attempts of this transaction, to be written after it ended."""
        return self.audit.refused if "audit" in self.__dict__ else []

    @cached_property
    def lookup(self) -> Lookup:
        """What hooks may read."""
        return Lookup(self.storage)

    @cached_property
    def access(self) -> Access:
        """Who may do what."""
        return Access(self.storage, self._process.roles, self._process.deny)

    @cached_property
    def organizations(self) -> Organizations:
        """Organizations."""
        domain = self._process.settings.default_domain
        return Organizations(self.storage, self.audit, self.now, default_domain=domain, instance=self.instance)

    @cached_property
    def projects(self) -> Projects:
        """Projects and their roles."""
        return Projects(self.storage, self.audit, self.now, look=self.look, instance=self.instance)

    @cached_property
    def project_grants(self) -> ProjectGrants:
        """Project grants."""
        return ProjectGrants(self.storage, self.audit, self.now)

    @cached_property
    def users(self) -> Users:
        """Human users."""
        return Users(self.storage, self.audit, self.now)

    @cached_property
    def service_users(self) -> ServiceUsers:
        """Service users and their keys."""
        key_max_age = self._process.settings.service_user_key_max_age
        return ServiceUsers(
            self.storage, self.audit, self.now, look=self.look, access=self.access, key_max_age=key_max_age
        )

    @cached_property
    def applications(self) -> Applications:
        """Applications and their secrets."""
        return Applications(self.storage, self.audit, self.now)

    @cached_property
    def managers(self) -> Managers:
        """Managers."""
        return Managers(self.storage, self.audit, self.now, access=self.access, roles=self._process.roles)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens."""
        return Tokens(self.storage, self.audit, self.now, instance=self.instance)

    @cached_property
    def signing_keys(self) -> SigningKeys:
        """The service's signing keys."""
        settings = self._process.settings
        return SigningKeys(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            ring=self._process.ring,
            bits=settings.signing_key_bits,
            active_age=settings.signing_key_active_age,
            announcement_age=settings.announcement_age,
        )

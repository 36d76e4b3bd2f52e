"""Services: every use case, built for one transaction from what the process keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from identity.domain.audit import Actor, AuditEvent
from identity.domain.managers import Role
from identity.services.access import Access, Deny
from identity.services.applications import Applications
from identity.services.audit import Recorder
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
from identity.storage.backend import Storage


@dataclass(frozen=True)
class ProcessState:
    """What a process keeps for all its requests."""

    settings: Settings
    ring: KeyRing
    roles: Mapping[str, Role]
    deny: Deny | None


class Services:
    """One attribute per service. Storage and services are made when first asked for: a request pays for what it uses,
    and one that needs no storage opens none."""

    def __init__(self, process: ProcessState, open_storage: Callable[[], Storage], now: datetime, actor: Actor) -> None:
        self._process = process
        self._open_storage = open_storage
        self.now = now
        self._actor = actor
        #: Called when the first change is recorded, by whoever wants to tell observers after the commit.
        self.on_first_record: Callable[[], None] | None = None

    @cached_property
    def storage(self) -> Storage:
        """The storage of the transaction; Unavailable if it cannot be opened."""
        return self._open_storage()

    @cached_property
    def audit(self) -> Recorder:
        """What is recorded and refused in this transaction."""
        return Recorder(lambda: self.storage, self.now, self._actor, on_first_record=self.on_first_record)

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
        return Organizations(self.storage, self.audit, self.now, default_domain=domain)

    @cached_property
    def projects(self) -> Projects:
        """Projects and their roles."""
        return Projects(self.storage, self.audit, self.now)

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
        return ServiceUsers(self.storage, self.audit, self.now, access=self.access, key_max_age=key_max_age)

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
        return Tokens(self.storage, self.audit, self.now)

    @cached_property
    def signing_keys(self) -> SigningKeys:
        """The service's signing keys."""
        settings = self._process.settings
        return SigningKeys(
            lambda: self.storage,
            self.audit,
            self.now,
            ring=self._process.ring,
            bits=settings.signing_key_bits,
            active_age=settings.signing_key_active_age,
            announcement_age=settings.announcement_age,
        )

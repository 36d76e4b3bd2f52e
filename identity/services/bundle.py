"""Services: every use case, for one transaction, as endpoints, pages and plugins see them."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import datetime

from identity.domain.audit import AuditEvent
from identity.domain.effects import Effects, Removed
from identity.domain.instance import Instance
from identity.domain.records import NameSpace
from identity.lazily import lazily
from identity.services.access import Access
from identity.services.applications import Applications
from identity.services.attempts import Attempts
from identity.services.audit import AuditTrail, Recorder
from identity.services.branding import Brandings
from identity.services.choices import Choices
from identity.services.consents import Consents
from identity.services.cursors import Cursors
from identity.services.deletions import Deletions
from identity.services.domains import Domains
from identity.services.factors import Factors
from identity.services.figures import Measuring
from identity.services.idempotency import Idempotency
from identity.services.known_browsers import KnownBrowsers
from identity.services.legal_holds import LegalHolds
from identity.services.links import Links
from identity.services.login_names import LoginNames
from identity.services.lookup import Lookup
from identity.services.mails import Mails
from identity.services.managers import Managers
from identity.services.notices import Notices
from identity.services.organizations import Organizations
from identity.services.outbox import Outbox
from identity.services.overview import Overview
from identity.services.own_account import OwnAccount
from identity.services.passwords import Passwords
from identity.services.policies import Policies
from identity.services.project_grants import ProjectGrants
from identity.services.projects import Projects
from identity.services.records import Records
from identity.services.registration import Registration
from identity.services.remembered_browsers import RememberedBrowsers
from identity.services.service_users import ServiceUsers
from identity.services.sessions import Sessions
from identity.services.sign_ins import SignIns
from identity.services.signing_keys import SigningKeys
from identity.services.tickets import Tickets
from identity.services.tokens import Tokens
from identity.services.upstream_providers import UpstreamProviders
from identity.services.user_grants import UserGrants
from identity.services.users import Users
from identity.storage.backend import Storage


class Services(ABC):
    """One attribute per service; each is made when first asked for.

    ``storage`` is what they work on, to read from: the services know the rules of changes. ``now`` is the moment at
    which all of it happens, ``language`` the one that whoever acts would read; empty where nobody said so.
    """

    storage: Storage
    now: datetime
    language: str

    @abstractmethod
    def look(self) -> AbstractContextManager[Storage]:
        """A storage to look things up in without making writers wait: nothing is locked before the first write.

        What is found may be gone when it is written about; stores then answer Missing.
        """

    @abstractmethod
    def instance(self) -> Instance | None:
        """The instance, None before bootstrap. It never changes, so a process asks once."""

    @abstractmethod
    def records(self, name_space: NameSpace) -> Records:
        """What a plugin keeps in its own name space."""

    @property
    @abstractmethod
    def access(self) -> Access:
        """Who may do what."""

    @property
    @abstractmethod
    def audit(self) -> Recorder:
        """What is recorded and refused in this transaction."""

    @property
    @abstractmethod
    def recorded(self) -> list[AuditEvent]:
        """The events that were written in this transaction."""

    @property
    @abstractmethod
    def choices(self) -> Choices:
        """What the loaded plugins offer."""

    @lazily
    def lookup(self) -> Lookup:
        """What hooks may read."""
        return Lookup(self.look)

    @lazily
    def audit_trail(self) -> AuditTrail:
        """What was recorded and refused, to be read."""
        return AuditTrail(self.storage)

    def effects(self, removed: Removed, id: str) -> Effects:  # noqa: A002
        """What falls with a thing that is removed, in numbers; sessions and tokens count while they are live."""
        return self.storage.effects.of(removed, id, self.now)

    organizations = lazily(Organizations)
    domains = lazily(Domains)
    projects = lazily(Projects)
    project_grants = lazily(ProjectGrants)
    user_grants = lazily(UserGrants)
    users = lazily(Users)
    passwords = lazily(Passwords)
    own_account = lazily(OwnAccount)
    deletions = lazily(Deletions)
    legal_holds = lazily(LegalHolds)
    attempts = lazily(Attempts)
    login_names = lazily(LoginNames)
    known_browsers = lazily(KnownBrowsers)
    policies = lazily(Policies)
    factors = lazily(Factors)
    remembered_browsers = lazily(RememberedBrowsers)
    registration = lazily(Registration)
    links = lazily(Links)
    mails = lazily(Mails)
    notices = lazily(Notices)
    outbox = lazily(Outbox)
    sessions = lazily(Sessions)
    sign_ins = lazily(SignIns)
    service_users = lazily(ServiceUsers)
    applications = lazily(Applications)
    upstream_providers = lazily(UpstreamProviders)
    branding = lazily(Brandings)
    consents = lazily(Consents)
    managers = lazily(Managers)
    tokens = lazily(Tokens)
    signing_keys = lazily(SigningKeys)
    overview = lazily(Overview)
    measuring = lazily(Measuring)
    cursors = lazily(Cursors)
    tickets = lazily(Tickets)
    idempotency = lazily(Idempotency)

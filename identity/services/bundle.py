"""Services: every use case, for one transaction, as endpoints, pages and plugins see them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime

from identity.domain.audit import AuditEvent
from identity.domain.effects import Effects, Removed
from identity.domain.instance import Instance
from identity.domain.permissions import Resource
from identity.domain.records import CORE, NameSpace
from identity.domain.users import Subject
from identity.lazily import lazily
from identity.services.access import Access
from identity.services.applications import Applications
from identity.services.attempts import Attempts
from identity.services.audit import AuditTrail, Recorder
from identity.services.branding import Brandings
from identity.services.changes import TransactionState
from identity.services.choices import Choices
from identity.services.consents import Consents
from identity.services.cursors import Cursors
from identity.services.deletions import Deletions
from identity.services.domains import Domains
from identity.services.factors import Factors
from identity.services.figures import Measuring
from identity.services.holders import Holders
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
from identity.services.process_state import ProcessState
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
    """One attribute per service, constructed on first use with the others that it works with.

    ``storage`` is what they work on, to read from: the services know the rules of changes. ``now`` is the moment at
    which all of it happens, ``audit`` what is recorded and refused. ``language`` is the one that whoever acts would
    read; empty where nobody said so.
    """

    storage: Storage
    now: datetime
    audit: Recorder
    language: str

    def __init__(self, process: ProcessState, state: TransactionState) -> None:
        self._process, self._state = process, state
        self._settings, self._sealer = process.settings, process.sealer
        self.storage, self.now, self.audit = state.storage, state.now, state.audit

    @abstractmethod
    def look(self) -> AbstractContextManager[Storage]:
        """A storage to look things up in without making writers wait: nothing is locked before the first write.

        What is found may be gone when it is written about; stores then answer Missing.
        """

    @abstractmethod
    def instance(self) -> Instance | None:
        """The instance, None before bootstrap. It never changes, so a process asks once."""

    @abstractmethod
    def _note_queued(self, kind: str) -> None:
        """Remember that a message of this kind is to be sent after the commit."""

    @property
    def recorded(self) -> list[AuditEvent]:
        """The events that were written in this transaction."""
        return self.audit.recorded

    @property
    def choices(self) -> Choices:
        """What the loaded plugins offer."""
        return self._process.choices

    def effects(self, removed: Removed, id: str) -> Effects:  # noqa: A002
        """What falls with a thing that is removed, in numbers; sessions and tokens count while they are live."""
        return self.storage.effects.of(removed, id, self.now)

    def records(self, name_space: NameSpace) -> Records:
        """What a plugin keeps in its own name space."""
        return Records(self._state, self._sealer, name_space)

    @lazily
    def _core_records(self) -> Records:
        return self.records(NameSpace(CORE))

    def _has_way(self, subject: Subject, allows: Callable[[str], bool]) -> bool:
        """True if a plugin knows of an allowed way in which the person can sign in."""
        return any(allows(factor) and has(subject, self) for factor, has in self.choices.has)

    @lazily
    def access(self) -> Access:
        """Who may do what."""
        return Access(self.storage, self._process.roles, self._process.deny, self.look, self.instance)

    @lazily
    def lookup(self) -> Lookup:
        """What hooks may read."""
        return Lookup(self.look)

    @lazily
    def audit_trail(self) -> AuditTrail:
        """What was recorded and refused, to be read."""
        return AuditTrail(self.storage)

    @lazily
    def organizations(self) -> Organizations:
        return Organizations(
            self._state,
            self.instance,
            self.access,
            self.domains,
            self.legal_holds,
            self.policies,
            self.upstream_providers,
        )

    @lazily
    def domains(self) -> Domains:
        return Domains(self._state, self.access, self.instance, self._settings)

    @lazily
    def projects(self) -> Projects:
        # Every token needs projects, which need managers, and so half of the services, only to create one.
        def add_creator(user_id: str, resource: Resource) -> None:
            self.managers.add_creator(user_id, resource)

        return Projects(self._state, self.instance, self.access, add_creator)

    @lazily
    def project_grants(self) -> ProjectGrants:
        return ProjectGrants(self._state, self.access)

    @lazily
    def user_grants(self) -> UserGrants:
        return UserGrants(self._state, self.access, self.project_grants)

    @lazily
    def users(self) -> Users:
        return Users(
            self._state,
            self.attempts,
            self.factors,
            self.legal_holds,
            self.passwords,
            self.links,
            self.policies,
            self.sessions,
            self.consents,
            self.access,
        )

    @lazily
    def passwords(self) -> Passwords:
        return Passwords(
            self._state,
            self.attempts,
            self.holders,
            self.login_names,
            self.known_browsers,
            self.sessions,
            self.links,
            self._process.hasher,
            self.policies,
            self._process.known_bad,
            self._settings,
        )

    @lazily
    def own_account(self) -> OwnAccount:
        return OwnAccount(self._state, self.passwords, self.sessions)

    @lazily
    def deletions(self) -> Deletions:
        return Deletions(self._state, self.access, self.legal_holds, self.policies, self.sessions, self.users)

    @lazily
    def legal_holds(self) -> LegalHolds:
        return LegalHolds(self._state)

    @lazily
    def attempts(self) -> Attempts:
        return Attempts(self._state, self.policies, self.domains, self._settings)

    @lazily
    def login_names(self) -> LoginNames:
        return LoginNames(self._state, self.policies, self.holders, self.instance)

    @lazily
    def known_browsers(self) -> KnownBrowsers:
        return KnownBrowsers(self._state, self._sealer)

    @lazily
    def holders(self) -> Holders:
        return Holders(self._state)

    @lazily
    def policies(self) -> Policies:
        return Policies(
            self._state,
            self._settings,
            self._process.choices,
            self.holders,
            self._process.policy_cache,
            self._core_records,
        )

    @lazily
    def factors(self) -> Factors:
        return Factors(self._state, self.remembered_browsers, self._core_records)

    @lazily
    def remembered_browsers(self) -> RememberedBrowsers:
        return RememberedBrowsers(self._state, self._core_records)

    @lazily
    def registration(self) -> Registration:
        return Registration(self._state, self.links, self.mails, self.policies)

    @lazily
    def links(self) -> Links:
        return Links(self._state, self._sealer, self._settings)

    @lazily
    def mails(self) -> Mails:
        return Mails(self._state, self.outbox, self._process.deliveries)

    @lazily
    def notices(self) -> Notices:
        return Notices(self._state, self.mails, lambda: self.language)

    @lazily
    def outbox(self) -> Outbox:
        return Outbox(self._state, self._sealer, self._process.deliveries, self._note_queued)

    @lazily
    def sessions(self) -> Sessions:
        return Sessions(self._state, self.holders, self.policies, self._settings)

    @lazily
    def sign_ins(self) -> SignIns:
        return SignIns(self._state, self._settings)

    @lazily
    def service_users(self) -> ServiceUsers:
        return ServiceUsers(
            self._state, self.access, self.instance, self.legal_holds, self._process.uses, self._settings
        )

    @lazily
    def applications(self) -> Applications:
        return Applications(self._state, self.access, self.projects, self._process.choices, self._process.uses)

    @lazily
    def upstream_providers(self) -> UpstreamProviders:
        return UpstreamProviders(self._state, self._sealer, self.access, self.holders)

    @lazily
    def branding(self) -> Brandings:
        return Brandings(self._state, self.applications)

    @lazily
    def consents(self) -> Consents:
        return Consents(self._state)

    @lazily
    def managers(self) -> Managers:
        return Managers(
            self._state,
            self.access,
            self._process.choices,
            self.factors,
            self.holders,
            self.policies,
            self.sessions,
            self._process.roles,
            self._has_way,
        )

    @lazily
    def tokens(self) -> Tokens:
        return Tokens(self._state, self.projects, self._process.ring, self._process.uses, self._settings)

    @lazily
    def signing_keys(self) -> SigningKeys:
        return SigningKeys(self._state, self._process.ring, self._settings)

    @lazily
    def overview(self) -> Overview:
        return Overview(self._state, self.access, self.signing_keys)

    @lazily
    def measuring(self) -> Measuring:
        return Measuring(self._state, self._process.ring, self._settings, self.legal_holds, self._process.deliveries)

    @lazily
    def cursors(self) -> Cursors:
        return Cursors(self._state, self._sealer)

    @lazily
    def tickets(self) -> Tickets:
        return Tickets(self._state, self._sealer)

    @lazily
    def idempotency(self) -> Idempotency:
        return Idempotency(self._state, self._sealer)

"""Services: all services of one transaction, as endpoints, pages and plugins see them."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from identity.cached_property import cached_property
from identity.document_cache import DocumentUnavailable
from identity.domain.audit import Actor, AuditEvent
from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.domain.groups import Group
from identity.domain.instance import Instance
from identity.domain.permissions import Resource
from identity.domain.records import CORE_NAMESPACE, RecordNamespace
from identity.domain.users import Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.access_revocations import AccessRevocationService
from identity.services.account_deletions import AccountDeletionService
from identity.services.account_recovery import AccountRecoveryService
from identity.services.agent_rules import AgentRules
from identity.services.agents import AgentService
from identity.services.applications import ApplicationService
from identity.services.assertions import AssertionService
from identity.services.attempts import AttemptService
from identity.services.attribute_mappings import AttributeMappingService
from identity.services.attributes import AttributeService
from identity.services.audit import AuditRecorder, AuditTrail
from identity.services.base import ReadSessionFactory, TransactionState
from identity.services.branding import BrandingService
from identity.services.capabilities import Capabilities
from identity.services.consents import ConsentService
from identity.services.cursors import CursorService
from identity.services.deferred_storage import DeferredStorage
from identity.services.directories import DirectoryService
from identity.services.domains import OrganizationDomainService
from identity.services.effective_access import EffectiveAccessService
from identity.services.ends_of_roles import EndOfRolesService
from identity.services.factors import FactorService
from identity.services.federated_credentials import FederatedCredentialService
from identity.services.figures import FigureService
from identity.services.form_tokens import FormTokenService
from identity.services.group_mappings import GroupMappingService
from identity.services.groups import GroupGrantService, GroupManagerService, GroupMemberService, GroupService
from identity.services.idempotency import IdempotencyService
from identity.services.impersonation_rules import ImpersonationRules
from identity.services.impersonations import ImpersonationService
from identity.services.instance_managers import InstanceManagerService
from identity.services.known_browsers import KnownBrowserService
from identity.services.legal_holds import LegalHoldService
from identity.services.login_names import LoginNameService
from identity.services.lookup import Lookup
from identity.services.mail_server import MailServerService
from identity.services.mail_texts import MailTextService
from identity.services.mails import MailService
from identity.services.managers import ManagerService
from identity.services.notifications import NotificationService
from identity.services.one_time_links import OneTimeLinkService
from identity.services.organizations import OrganizationService
from identity.services.outbox import OutboxService
from identity.services.overview import OverviewService
from identity.services.passwords import PasswordService
from identity.services.policies import PolicyService
from identity.services.process_state import ProcessState
from identity.services.project_grants import ProjectGrantService
from identity.services.projects import ProjectService
from identity.services.queued_mails import QueuedMailService
from identity.services.records import RecordService
from identity.services.registration import RegistrationService
from identity.services.remembered_browsers import RememberedBrowserService
from identity.services.search import SearchService
from identity.services.sent_mails import SentMailService
from identity.services.service_users import ServiceUserService
from identity.services.sessions import SessionService
from identity.services.sign_ins import SignInService
from identity.services.signing_keys import SigningKeyService
from identity.services.statistics import StatisticsService
from identity.services.subject_identifiers import SubjectIdentifierService
from identity.services.tokens import TokenService
from identity.services.upstream_providers import UpstreamProviderService
from identity.services.user_grants import UserGrantService
from identity.services.user_imports import UserImportService
from identity.services.users import UserService
from identity.services.webhooks import WebhookService
from identity.storage.backend import Storage

log = logging.getLogger(__name__)


class Services:
    """One attribute per service, constructed on first use with its collaborators. ``storage`` is for reading only: the
    services know the rules of changes. ``now`` is the time of the whole transaction, ``audit`` collects events and
    refusals.

    ``open_storage`` opens the storage of the transaction on first use, ``read_session_factory`` one to read from before
    the first write. Without it the transaction's storage serves for both."""

    def __init__(
        self,
        process: ProcessState,
        open_storage: Callable[[], Storage],
        now: datetime,
        actor: Actor | Callable[[], Actor],
        *,
        read_session_factory: ReadSessionFactory | None = None,
    ) -> None:
        self._process, self._look = process, read_session_factory
        self.storage, self.now = DeferredStorage(open_storage), now
        self.audit = AuditRecorder(self.storage, now, actor, self.schedule_after_commit, self._on_event)
        self._state = TransactionState(
            self.storage, self.audit, now, self.read_session, self.find_instance, process.settings, process.sealer
        )
        #: Called at the first change or queued message, to schedule the work after the commit.
        self.on_after_commit_needed: Callable[[], None] | None = None
        self._has_effect = False
        #: Returns the language of the acting user.
        self.language_getter: Callable[[], str] = str
        #: Returns the connection of the reads so far; the next read opens another.
        self.connection_releaser: Callable[[], None] = lambda: None
        self._current_documents: dict[str, bytes | None] = {}
        #: The digests of single-use values that this request has used and committed, also in its earlier attempts.
        self.committed_keys: set[Any] = set()
        #: Kinds of the messages queued in this transaction.
        self.queued_kinds: set[str] = set()

    @cached_property
    def language(self) -> str:
        """The language of the actor; empty if unknown."""
        return self.language_getter()

    def read_session(self) -> AbstractContextManager[Storage]:
        """A storage for reads that do not block writers: it locks nothing before the first write. Rows that you find
        may be deleted before you write; stores then return Missing."""
        return nullcontext(self.storage) if self._look is None or self.storage.opened else self._look()

    def find_instance(self) -> Instance | None:
        """The instance, None before bootstrap. It never changes, so a process reads it once."""
        # Cache committed data only: this transaction may be the bootstrap itself, and may fail.
        if self._process.instance is None:
            with nullcontext(self.storage) if self._look is None else self._look() as committed:
                self._process.instance = committed.organizations.find_instance()
        return self._process.instance or self.storage.organizations.find_instance()

    def close(self) -> None:
        """Break the circles between the services, so that reference counting frees them."""
        self.__dict__.clear()

    def schedule_after_commit(self) -> None:
        if not self._has_effect and self.on_after_commit_needed is not None:
            self.on_after_commit_needed()
        self._has_effect = True

    def _note_queued(self, kind: str) -> None:
        self.schedule_after_commit()
        self.queued_kinds.add(kind)

    def _on_event(self, event: AuditEvent) -> None:
        self.outbox.queue_event(event, self)
        self.webhooks.queue_event(event)
        self.notifications.notify(event)

    @property
    def recorded_events(self) -> list[AuditEvent]:
        return self.audit.recorded_events

    @property
    def capabilities(self) -> Capabilities:
        return self._process.capabilities

    def deletion_impact(self, removed: DeletionTarget, id: str) -> DeletionImpact:
        """The number of dependent entities that a removal deletes; of sessions and tokens only live ones."""
        return self.storage.deletion_impact.count(removed, id, self.now)

    def record_service(self, name_space: RecordNamespace) -> RecordService:
        """The records of a plugin, in its own namespace."""
        return RecordService(self._state, name_space.plugin)

    @cached_property
    def _core_records(self) -> RecordService:
        return self.record_service(RecordNamespace(CORE_NAMESPACE))

    def _has_way(self, subject: Subject, allows: Callable[[str], bool]) -> bool:
        """True if a plugin offers an allowed sign-in method that the user has set up."""
        return any(allows(factor) and has(subject, self) for factor, has in self.capabilities.sign_in_method_checks)

    @cached_property
    def assertions(self) -> AssertionService:
        return AssertionService(self._state, self._process, self.connection_releaser, self.committed_keys)

    @cached_property
    def access_control(self) -> AccessControl:
        return AccessControl(
            self.storage,
            self._process.manager_roles,
            self._process.deny_hook,
            self.lookup,
            self.find_instance,
            self.now,
        )

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.read_session, self.record_service, self.now)

    @cached_property
    def audit_trail(self) -> AuditTrail:
        return AuditTrail(self.storage)

    @cached_property
    def organizations(self) -> OrganizationService:
        return OrganizationService(
            self._state,
            self.access_control,
            self.domains,
            self.legal_holds,
            self.policies,
            self.upstream_providers,
        )

    @cached_property
    def domains(self) -> OrganizationDomainService:
        return OrganizationDomainService(self._state, self.access_control)

    @cached_property
    def projects(self) -> ProjectService:
        # Deferred: creating tokens needs projects, which would construct managers and half of the services.
        def add_creator(user_id: str, resource: Resource) -> None:
            self.managers.add_creator(user_id, resource)

        return ProjectService(self._state, self.access_control, add_creator, self.capabilities)

    @cached_property
    def project_grants(self) -> ProjectGrantService:
        return ProjectGrantService(self._state, self.access_control)

    @cached_property
    def user_grants(self) -> UserGrantService:
        return UserGrantService(self._state, self.access_control, self.project_grants)

    @cached_property
    def ends_of_roles(self) -> EndOfRolesService:
        return EndOfRolesService(
            self._state,
            self.managers,
            self.user_grants,
            self.project_grants,
            self.group_members,
            self.group_grants,
            self.group_managers,
        )

    @cached_property
    def groups(self) -> GroupService:
        return GroupService(self._state, self.access_control, self.managers, self.upstream_providers, self.directories)

    @cached_property
    def group_members(self) -> GroupMemberService:
        return GroupMemberService(self._state, self.groups)

    @cached_property
    def group_grants(self) -> GroupGrantService:
        return GroupGrantService(self._state, self.access_control, self.groups, self.user_grants)

    @cached_property
    def group_managers(self) -> GroupManagerService:
        return GroupManagerService(self._state, self.access_control, self.groups, self.managers)

    @cached_property
    def group_mappings(self) -> GroupMappingService:
        return GroupMappingService(
            self._state,
            self.access_control,
            self.upstream_providers,
            self.directories,
            self._core_records,
            self.groups,
            self.group_members,
        )

    @cached_property
    def attribute_mappings(self) -> AttributeMappingService:
        return AttributeMappingService(
            self._state,
            self.access_control,
            self.upstream_providers,
            self.directories,
            self._core_records,
            self.attributes,
            self.users,
        )

    @cached_property
    def users(self) -> UserService:
        return UserService(
            self._state,
            self.attempts,
            self.attributes,
            self.factors,
            self.legal_holds,
            self.passwords,
            self.one_time_links,
            self.policies,
            self.sessions,
            self.consents,
            self.access_control,
            self.service_users,
        )

    @cached_property
    def user_imports(self) -> UserImportService:
        return UserImportService(
            self._state,
            self.access_control,
            self.users,
            self.user_grants,
            self.groups,
            self.group_members,
            self.attributes,
            self.passwords,
            self.mails,
            self._core_records,
            self._note_queued,
        )

    @cached_property
    def attributes(self) -> AttributeService:
        return AttributeService(self._state)

    @cached_property
    def passwords(self) -> PasswordService:
        return PasswordService(
            self._state,
            self.attempts,
            self.instance_managers,
            self.login_names,
            self.known_browsers,
            self.sessions,
            self.one_time_links,
            self._process.hasher,
            self.policies,
            self._process.password_blocklist,
            self._core_records,
        )

    @cached_property
    def account_recovery(self) -> AccountRecoveryService:
        return AccountRecoveryService(self._state, self.passwords, self.sessions)

    @cached_property
    def account_deletions(self) -> AccountDeletionService:
        return AccountDeletionService(
            self._state, self.access_control, self.legal_holds, self.policies, self.sessions, self.users
        )

    @cached_property
    def legal_holds(self) -> LegalHoldService:
        return LegalHoldService(self._state)

    @cached_property
    def attempts(self) -> AttemptService:
        return AttemptService(self._state, self.policies, self.domains, self._process)

    @cached_property
    def login_names(self) -> LoginNameService:
        return LoginNameService(self._state, self.policies, self.instance_managers)

    @cached_property
    def known_browsers(self) -> KnownBrowserService:
        return KnownBrowserService(self._state)

    @cached_property
    def instance_managers(self) -> InstanceManagerService:
        return InstanceManagerService(self._state)

    @cached_property
    def policies(self) -> PolicyService:
        return PolicyService(
            self._state,
            self._process.capabilities,
            self.instance_managers,
            self._process.policy_cache,
            self._core_records,
            lambda: self.mails.is_enabled,
        )

    @cached_property
    def factors(self) -> FactorService:
        return FactorService(self._state, self.remembered_browsers, self._core_records)

    @cached_property
    def remembered_browsers(self) -> RememberedBrowserService:
        return RememberedBrowserService(self._state, self._core_records)

    @cached_property
    def registration(self) -> RegistrationService:
        return RegistrationService(self._state, self.attributes, self.one_time_links, self.mails, self.policies)

    @cached_property
    def one_time_links(self) -> OneTimeLinkService:
        return OneTimeLinkService(self._state)

    @cached_property
    def mails(self) -> MailService:
        return MailService(self._state, self.outbox, self._process.deliveries, self.mail_server)

    @cached_property
    def queued_mails(self) -> QueuedMailService:
        return QueuedMailService(self._state, self.access_control, self.outbox)

    @cached_property
    def sent_mails(self) -> SentMailService:
        return SentMailService(self._state, self.access_control)

    @cached_property
    def mail_server(self) -> MailServerService:
        return MailServerService(self._state, self.access_control, self._core_records, self._process.mail_server_cache)

    @cached_property
    def mail_texts(self) -> MailTextService:
        return MailTextService(self._state, self.access_control)

    @cached_property
    def notifications(self) -> NotificationService:
        return NotificationService(self._state, self.mails, lambda: self.language)

    @cached_property
    def outbox(self) -> OutboxService:
        return OutboxService(self._state, self._process.deliveries, self._note_queued)

    @cached_property
    def sessions(self) -> SessionService:
        return SessionService(
            self._state, self.instance_managers, self.policies, self._impersonation_rules, self.agent_rules
        )

    @cached_property
    def _impersonation_rules(self) -> ImpersonationRules:
        return ImpersonationRules(self.access_control, self.policies)

    @cached_property
    def impersonations(self) -> ImpersonationService:
        return ImpersonationService(self._state, self.access_control, self._impersonation_rules, self.sessions)

    @cached_property
    def access_revocations(self) -> AccessRevocationService:
        return AccessRevocationService(
            self._state,
            self.access_control,
            self.sessions,
            self.users,
            self.service_users,
            self.applications,
            self.organizations,
        )

    @cached_property
    def sign_ins(self) -> SignInService:
        return SignInService(self._state)

    @cached_property
    def service_users(self) -> ServiceUserService:
        return ServiceUserService(
            self._state,
            self.access_control,
            self.legal_holds,
            self._process.last_used_tracker,
            self.signing_keys,
        )

    @cached_property
    def agent_rules(self) -> AgentRules:
        return AgentRules(self._state)

    @cached_property
    def agents(self) -> AgentService:
        return AgentService(self._state, self.agent_rules, self.service_users, self.users)

    @cached_property
    def applications(self) -> ApplicationService:
        return ApplicationService(
            self._state,
            self.access_control,
            self.projects,
            self._process.capabilities,
            self._process.last_used_tracker,
            self._process.client_metadata,
            # Deferred: few requests store a client.
            lambda: self.signing_keys,
            lambda: self.connection_releaser(),
            lambda: self.attempts.count_request(),
            lambda: self._core_records,
            lambda: self.subject_identifiers,
            self.read_current_document,
            lambda: self.legal_holds,
        )

    @cached_property
    def federated_credentials(self) -> FederatedCredentialService:
        return FederatedCredentialService(
            self._state,
            self.access_control,
            self.service_users,
            self.applications,
            self._process.last_used_tracker,
        )

    def read_document(self, url: str, organization_id: str, *, is_fresh: bool = True) -> bytes | None:
        """What is at the URL that this organization named: now, or by its Cache-Control at most an hour ago. None if it
        cannot be fetched; the reason is logged."""
        client = self._process.documents
        if is_fresh:
            client.cache.forget(url)
        found = client.cache.find_document(url)
        if found is not None:
            return found
        self.connection_releaser()

        def request() -> tuple[bytes, str]:
            answer = client.get(url.partition("#")[0])
            return answer.body, answer.cache_control

        try:
            return client.fetch_document(url, url, request, organization_id)
        except DocumentUnavailable as problem:
            log.info("a document of organization %s was not fetched: %s", organization_id, problem.reason)
            return None

    def read_current_document(self, url: str, organization_id: str) -> bytes | None:
        """What is at the URL now. It is read once per transaction: call this before the transaction begins, so that no
        lock is held while a host responds."""
        if url not in self._current_documents:
            self._current_documents[url] = self.read_document(url, organization_id)
        return self._current_documents[url]

    @cached_property
    def subject_identifiers(self) -> SubjectIdentifierService:
        return SubjectIdentifierService(self._state, self._core_records)

    @cached_property
    def upstream_providers(self) -> UpstreamProviderService:
        # Deferred: every sign-in page lists providers, and groups need half of the services.
        def require_giving(group: Group, principal: Principal) -> None:
            self.groups.require_giving(group, principal, None)

        return UpstreamProviderService(self._state, self.access_control, self.instance_managers, require_giving)

    @cached_property
    def directories(self) -> DirectoryService:
        return DirectoryService(self._state, self.access_control, self.capabilities.directories)

    @cached_property
    def webhooks(self) -> WebhookService:
        return WebhookService(self._state, self.access_control, self._note_queued)

    @cached_property
    def branding(self) -> BrandingService:
        return BrandingService(self._state, self.applications)

    @cached_property
    def consents(self) -> ConsentService:
        # Deferred: most consents are only read.
        return ConsentService(self._state, lambda client: self.applications.store_url_client(client))

    @cached_property
    def managers(self) -> ManagerService:
        return ManagerService(
            self._state,
            self.access_control,
            self._process.capabilities,
            self.factors,
            self.instance_managers,
            self.policies,
            self.sessions,
            self._process.manager_roles,
            self._has_way,
        )

    @cached_property
    def tokens(self) -> TokenService:
        return TokenService(
            self._state,
            self.projects,
            self._process.key_ring,
            self._process.last_used_tracker,
            # Deferred: few tokens are those of an agent.
            lambda: self.agent_rules,
        )

    @cached_property
    def signing_keys(self) -> SigningKeyService:
        return SigningKeyService(self._state, self._process.key_ring)

    @cached_property
    def overview(self) -> OverviewService:
        return OverviewService(self._state, self.access_control, self.signing_keys)

    @cached_property
    def figures(self) -> FigureService:
        return FigureService(self._state, self.access_control)

    @cached_property
    def effective_access(self) -> EffectiveAccessService:
        return EffectiveAccessService(self._state, self.access_control)

    @cached_property
    def search(self) -> SearchService:
        return SearchService(self._state, self.access_control)

    @cached_property
    def statistics(self) -> StatisticsService:
        return StatisticsService(self._state, self.signing_keys, self.legal_holds, self._process.deliveries)

    @cached_property
    def cursors(self) -> CursorService:
        return CursorService(self._state)

    @cached_property
    def form_tokens(self) -> FormTokenService:
        return FormTokenService(self._state)

    @cached_property
    def idempotency(self) -> IdempotencyService:
        return IdempotencyService(self._state)

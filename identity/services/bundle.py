"""Services: every use case, built for one transaction from what the process keeps."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from identity.crypto.sealing import Sealer
from identity.domain.audit import Actor, AuditEvent
from identity.domain.instance import Instance
from identity.domain.managers import Role
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
from identity.services.registration import Registration
from identity.services.service_users import ServiceUsers
from identity.services.sessions import Sessions
from identity.services.sign_ins import SignIns
from identity.services.signing_keys import KeyRing, SigningKeys
from identity.services.tokens import Tokens
from identity.services.transfer import Transfer
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
                self._process.instance = committed.instance.find()
        return self._process.instance or self.storage.instance.find()

    @cached_property
    def audit(self) -> Recorder:
        """What is recorded and refused in this transaction."""
        return Recorder(
            self.storage,
            self.now,
            self._actor,
            on_first_record=self._note_effect,
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

    @cached_property
    def organizations(self) -> Organizations:
        """Organizations."""
        return Organizations(
            self.storage,
            self.audit,
            self.now,
            instance=self.instance,
            access=self.access,
            domains=self.domains,
        )

    @cached_property
    def domains(self) -> Domains:
        """Domains of organizations."""
        return Domains(
            self.storage,
            self.audit,
            self.now,
            access=self.access,
            instance=self.instance,
            name_space=self._process.settings.name_space,
        )

    @cached_property
    def projects(self) -> Projects:
        """Projects and their roles."""
        return Projects(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            instance=self.instance,
            access=self.access,
            managers=self.managers,
        )

    @cached_property
    def project_grants(self) -> ProjectGrants:
        """Project grants."""
        return ProjectGrants(self.storage, self.audit, self.now, access=self.access)

    @cached_property
    def user_grants(self) -> UserGrants:
        """Roles of projects, given to users."""
        return UserGrants(self.storage, self.audit, self.now, access=self.access, project_grants=self.project_grants)

    @cached_property
    def users(self) -> Users:
        """Human users."""
        return Users(
            self.storage,
            self.audit,
            self.now,
            attempts=self.attempts,
            passwords=self.passwords,
            links=self.links,
            sessions=self.sessions,
            consents=self.consents,
            access=self.access,
        )

    @cached_property
    def passwords(self) -> Passwords:
        """People's passwords."""
        return Passwords(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            instance=self.instance,
            attempts=self.attempts,
            known_browsers=self.known_browsers,
            sessions=self.sessions,
            links=self.links,
            hasher=self._process.hasher,
            settings=self._process.settings,
        )

    @cached_property
    def attempts(self) -> Attempts:
        """Attempts at passwords."""
        return Attempts(self.storage, self.audit, self.now, settings=self._process.settings)

    @cached_property
    def known_browsers(self) -> KnownBrowsers:
        """Browsers that signed in before."""
        return KnownBrowsers(self.storage, self.now, sealer=self._process.sealer)

    @cached_property
    def registration(self) -> Registration:
        """Accounts that people make for themselves."""
        return Registration(self.storage, self.audit, self.now, links=self.links)

    @cached_property
    def links(self) -> Links:
        """Links that work once."""
        settings = self._process.settings
        return Links(
            self.storage,
            self.audit,
            self.now,
            sealer=self._process.sealer,
            login_url=settings.login_url,
            lifetime=settings.link_lifetime,
        )

    @cached_property
    def mails(self) -> Mails:
        """Mails to people."""
        enabled = bool(self._process.settings.smtp.host)
        return Mails(self.storage, self.now, self.outbox, enabled=enabled)

    @cached_property
    def outbox(self) -> Outbox:
        """What is to leave the service."""
        return Outbox(
            self.storage,
            self.now,
            sealer=self._process.sealer,
            deliveries=self._process.deliveries,
            on_first_queued=self._note_effect,
        )

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions of people at their browsers."""
        settings = self._process.settings
        return Sessions(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            idle_age=settings.session_idle_age,
            max_age=settings.session_max_age,
        )

    @cached_property
    def sign_ins(self) -> SignIns:
        """Sign-ins under way."""
        lifetime = self._process.settings.sign_in_lifetime
        return SignIns(self.storage, self.audit, self.now, look=self.look, lifetime=lifetime)

    @cached_property
    def service_users(self) -> ServiceUsers:
        """Service users, their keys, secrets and personal access tokens."""
        settings = self._process.settings
        return ServiceUsers(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            access=self.access,
            instance=self.instance,
            uses=self._process.uses,
            key_lifetime=settings.service_user_key_lifetime,
            key_max_age=settings.service_user_key_max_age,
            namespace=settings.urn_namespaces[0],
        )

    @cached_property
    def applications(self) -> Applications:
        """Applications and their secrets."""
        process = self._process
        return Applications(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            access=self.access,
            projects=self.projects,
            choices=process.choices,
            uses=process.uses,
        )

    @cached_property
    def consents(self) -> Consents:
        """What people have agreed to."""
        return Consents(self.storage, self.audit, self.now, look=self.look)

    @cached_property
    def managers(self) -> Managers:
        """Managers."""
        return Managers(self.storage, self.audit, self.now, access=self.access, roles=self._process.roles)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens."""
        settings = self._process.settings
        return Tokens(
            self.storage,
            self.audit,
            self.now,
            look=self.look,
            projects=self.projects,
            issuer=settings.issuer_url,
            uses=self._process.uses,
            grace=settings.refresh_token_grace,
        )

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

    @cached_property
    def audit_trail(self) -> AuditTrail:
        """What was recorded and refused, to be read."""
        return AuditTrail(self.storage)

    @cached_property
    def overview(self) -> Overview:
        """What needs somebody's attention."""
        return Overview(self.storage, self.now, access=self.access, signing_keys=self.signing_keys)

    @cached_property
    def effects(self) -> EffectsOf:
        """What would fall with a thing."""
        return EffectsOf(self.storage, self.now)

    @cached_property
    def cursors(self) -> Cursors:
        """Where the next pages of lists start."""
        return Cursors(self._process.sealer)

    @cached_property
    def idempotency(self) -> Idempotency:
        """Requests that are sent twice."""
        return Idempotency(self.storage, self.audit, self.now, sealer=self._process.sealer)

    @cached_property
    def transfer(self) -> Transfer:
        """Organizations as documents."""
        return Transfer(self)

    @property
    def choices(self) -> Choices:
        """What the loaded plugins offer."""
        return self._process.choices

    def _note_effect(self) -> None:
        if not self._has_effect and self.on_first_effect is not None:
            self.on_first_effect()
        self._has_effect = True

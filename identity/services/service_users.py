"""Service users, their keys, secrets and personal access tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.crypto.secrets import find_matching_digest, new_id, new_token, token_digest
from identity.crypto.signature_keys import PrivateKey, PublicKey, parse_public_key
from identity.domain.applications import MAX_LIVE_SECRETS
from identity.domain.audiences import AudienceScope
from identity.domain.clients import ServiceUserClient
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.tokens import AccessToken
from identity.domain.users import Agent, HumanUser, ServiceUser, Subject, TokenFormat, User
from identity.services.access_control import AccessControl, Principal
from identity.services.agent_rules import refuse_agent
from identity.services.base import translate_storage_errors
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    AddServiceUserKey,
    ChangeServiceUser,
    CreateAgent,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.crud import DeactivatableEntityService
from identity.services.last_used_tracker import LastUsedTracker
from identity.services.legal_holds import LegalHoldService
from identity.services.managers import refuse_last_owner
from identity.services.name_conflicts import refuse_conflicting_login_name
from identity.services.signing_keys import SigningKeyService
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, search_in_memory
from identity.storage.stores.credentials import Credential, CredentialT
from identity.storage.stores.users import USER_SORT_KEYS, UserKind

_LAST_USED_STEP = timedelta(minutes=1)

_OPENID = "openid"
_ALGORITHMS = ("id_token_signed_response_alg",)

#: Days before expiration on which an audit event warns about a key or personal access token.
EXPIRY_WARNING_DAYS = (30, 7, 1)
#: Name of the job that writes these events, and of its lease.
EXPIRING_KEYS_JOB = "expiring keys"
_EXPIRING_AT_ONCE = 1000

#: Kind in audit events, and name in messages.
_CREDENTIAL_NAMES: Mapping[type, tuple[str, str]] = {
    ServiceUserKey: ("service_user_key", "key"),
    ServiceUserSecret: ("service_user_secret", "secret"),
    PersonalAccessToken: ("personal_access_token", "personal access token"),
}
_ONLY_ITS_OWNER = gettext_lazy("Only the person for whom this agent acts creates its keys, in their account.")
_DUPLICATE_MESSAGES = {"user_name": gettext_lazy("The organization already has a user with this name. Choose another.")}


@dataclass(eq=False, repr=False)
class ServiceUserService(DeactivatableEntityService[ServiceUser]):
    """Accounts for programs (service description §2.1), their keys (§2.2), and secrets and personal access tokens for
    programs that cannot sign. No credential of a deactivated service user works. The last IAM_OWNER stays."""

    kind = "service_user"
    store = "users"
    duplicate_messages = _DUPLICATE_MESSAGES

    _access: AccessControl
    _legal_holds: LegalHoldService
    _uses: LastUsedTracker
    _signing_keys: SigningKeyService

    @property
    def default_expiration(self) -> datetime:
        """Default expiration date of a key or personal access token."""
        usual = self._now + self._settings.service_user_key_lifetime
        return usual if self.max_expiration is None else min(usual, self.max_expiration)

    @property
    def max_expiration(self) -> datetime | None:
        """Latest expiration date allowed for a new key or personal access token; None for no limit."""
        if self._settings.service_user_key_max_age is None:
            return None
        return self._now + self._settings.service_user_key_max_age

    def get(self, id: str) -> ServiceUser:
        user = self._store.find(id)
        return self._require_found(user if isinstance(user, ServiceUser) else None, "service user", id)

    def page(
        self,
        organization_id: str,
        request: PageRequest = FIRST_PAGE,
        *,
        kind: UserKind | None = None,
        owner_user_id: str = "",
    ) -> ResultPage[ServiceUser]:
        """The organization's service users, by user name by default: all, those of one kind, or the agents of one
        person."""
        users = self._storage.users
        found: ResultPage[User]
        if owner_user_id:
            agents = () if kind is UserKind.SERVICE else users.list_agents(owner_user_id)
            within = [agent for agent in agents if agent.organization_id == organization_id]
            found = search_in_memory(within, request, USER_SORT_KEYS)
        else:
            found = users.page(organization_id, kind or UserKind.SERVICE, request, with_agents=kind is None)
        return found.with_items(user for user in found if isinstance(user, ServiceUser))

    def create(self, organization_id: str, command: CreateServiceUser, *, id: str | None = None) -> ServiceUser:
        """Create a service user; ``id`` restores a former id. Raises NotFound; Invalid if the user name is taken."""
        user = self._new_entity(ServiceUser, command, id=id, organization_id=organization_id)
        self._refuse_unlimited_keys(user)
        refuse_conflicting_login_name(self._storage, user)
        self._signing_keys.require_active(None, user, _ALGORITHMS)
        self._add("service_user.created", user, organization_id, parent=("organization", organization_id))
        return user

    def create_agent(
        self, owner: HumanUser, command: CreateAgent, *, confirmed: bool, id: str | None = None
    ) -> ServiceUser:
        """Create an agent that acts for this person; ``id`` restores a former id. Unless it is ``confirmed``, it is
        stopped until its owner confirms it. Raises NotFound; Invalid if the user name is taken."""
        if getattr(command, "jwks_uri", ""):
            raise Invalid({"jwks_uri": _ONLY_ITS_OWNER})
        agent = self._new_entity(
            Agent,
            command,
            id=id,
            may_manage=False,
            organization_id=owner.organization_id,
            owner_user_id=owner.id,
            stopped_at=None if confirmed else self._now,
        )
        refuse_conflicting_login_name(self._storage, agent)
        self._signing_keys.require_active(None, agent, _ALGORITHMS)
        parent = ("organization", owner.organization_id)
        self._add("agent.created", agent, owner.organization_id, parent=parent)
        return agent

    def confirm_agent(self, agent: Agent) -> ServiceUser:
        """Let a stopped agent act again."""
        return self._update("agent.confirmed", agent, self._next_version(agent, stopped_at=None))

    def create_agent_key(self, agent: ServiceUser) -> KeyFile:
        """Create a key of an agent for its owner, who may do so whatever roles the agent has."""
        private_key = PrivateKey.generate()
        key = self._add_key(agent, private_key.public_key(), None)
        return KeyFile(key_id=key.id, key=private_key.to_pem(), user_id=agent.id)

    def remove_agent_key(self, agent: Agent, key_id: str) -> None:
        """Delete a key of an agent for its owner. Raises NotFound."""
        self._delete_credential(ServiceUserKey, agent, key_id)

    def remove_agents(self, owner_user_id: str) -> None:
        """Delete the agents of a person who is deleted. Raises Conflict if one must stay."""
        for agent in self._storage.users.list_agents(owner_user_id):
            self.remove_agent(agent)

    def remove_agent(self, agent: Agent) -> None:
        """Delete an agent for its owner. Raises Conflict if it must stay."""
        self._remove(agent)

    def change(
        self, user_id: str, command: ChangeServiceUser, *, principal: Principal, expected_version: int | None = None
    ) -> ServiceUser:
        """Raises NotFound, Denied, Conflict, Invalid."""
        before = self._get_authorized(user_id, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        self._check_may_manage(before, command, principal)
        if after.jwks_uri != before.jwks_uri:
            self._refuse_unlimited_keys(after)
            if isinstance(after, Agent):
                raise Invalid({"jwks_uri": _ONLY_ITS_OWNER})
        if name_key(after.user_name) != name_key(before.user_name):
            refuse_conflicting_login_name(self._storage, after)
        self._signing_keys.require_active(before, after, _ALGORITHMS)
        return self._update("service_user.changed", before, after)

    def _check_may_manage(self, before: ServiceUser, command: ChangeServiceUser, principal: Principal) -> None:
        """Raise Invalid for a service user that is no agent, Denied without instance.write."""
        if command.may_manage is None or command.may_manage == (isinstance(before, Agent) and before.may_manage):
            return
        if not isinstance(before, Agent):
            raise Invalid({"may_manage": gettext_lazy("Only agents have this setting.")})
        self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)

    def _refuse_unlimited_keys(self, user: ServiceUser) -> None:
        """Keys at a URL have no expiration date. Raises Invalid if the operator limits it."""
        if user.jwks_uri and self.max_expiration is not None:
            raise Invalid({"jwks_uri": gettext_lazy("Keys must have an expiration date here. Add a key instead.")})

    def _authorize(self, user: ServiceUser, principal: Principal) -> None:
        """An agent is protected as its owner is."""
        self._access.require_not_more_privileged(principal, user)
        owner = self._storage.users.find(user.owner_user_id) if isinstance(user, Agent) else None
        if owner is not None:
            self._access.require_not_more_privileged(principal, owner)

    def _user_id(self, entity: ServiceUser) -> str | None:
        """The owner of an agent, who sees its events."""
        return entity.owner_user_id if isinstance(entity, Agent) else None

    def get_for_credential(self, user_id: str, principal: Principal) -> ServiceUser:
        """The service user, if the caller may create credentials of it. Raises NotFound, Denied."""
        user = self._get_authorized(user_id, principal)
        if isinstance(user, Agent):
            raise Denied(_ONLY_ITS_OWNER)
        refuse_agent(None if principal.subject is None else principal.subject.user)
        return user

    def _refuse_deactivation(self, user: ServiceUser) -> None:
        refuse_last_owner(self._storage, lambda owner: owner.user_id == user.id)

    def _refuse_removal(self, user: ServiceUser) -> None:
        self._legal_holds.refuse_user_removal(user)

    def page_keys(self, user_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[ServiceUserKey]:
        """Newest first. Raises NotFound."""
        return self._storage.credentials.page(ServiceUserKey, self.get(user_id).id, request)

    def get_key(self, user_id: str, key_id: str) -> ServiceUserKey:
        """Raises NotFound."""
        return self._require_found(
            self._storage.credentials.find(ServiceUserKey, key_id, self.get(user_id).id), "key", key_id
        )

    def add_key(self, user_id: str, command: AddServiceUserKey, *, principal: Principal) -> KeyFile:
        """Create a key and return its key file, the only copy of the private key. Raises NotFound; Invalid for an
        expiration date in the past or too far away; Denied if the service user holds manager roles beyond the
        principal's."""
        private_key = PrivateKey.generate(command.key_size, command.algorithm or SignatureAlgorithm.RS256)
        user = self.get_for_credential(user_id, principal)
        key = self._add_key(user, private_key.public_key(), command.expires_at)
        return KeyFile(key_id=key.id, key=private_key.to_pem(), user_id=user_id)

    def upload_key(
        self, user_id: str, command: UploadServiceUserKey, *, principal: Principal, id: str | None = None
    ) -> ServiceUserKey:
        """Add a key whose private half stays with its owner; ``id`` restores a former id. Raises NotFound, Invalid,
        Denied."""
        public_key = parse_public_key(command.public_key, command.algorithm)
        return self._add_key(self.get_for_credential(user_id, principal), public_key, command.expires_at, id)

    def remove_key(self, user_id: str, key_id: str, *, principal: Principal) -> None:
        """Delete the key; the tokens obtained with it stop working. Raises NotFound, Denied."""
        self._remove_credential(ServiceUserKey, user_id, key_id, principal)

    def find_signing_key(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        """The live key with its active service user and organization; None if any of them is not usable."""
        with self._look() as storage:
            found = storage.credentials.find_key_with_subject(key_id, user_id)
        if found is None:
            return None
        key, subject = found
        if not key.is_live(self._now) or not subject.is_active or not isinstance(subject.user, ServiceUser):
            return None
        return found

    def record_refusal(self, subject: Subject | None, reason: str) -> None:
        """Record a refused sign-in of a service user; ``subject`` is None before its signature is verified."""
        self._audit.record_refusal(
            "authentication.refused",
            kind="service_user",
            id=None if subject is None else subject.user.id,
            organization_id=None if subject is None else subject.organization.id,
            reason=reason,
        )

    def find_key_publisher(self, user_id: str) -> tuple[Subject, str] | None:
        """The active service user that publishes its keys, and their URL."""
        with self._look() as storage:
            subject = storage.users.find_subject(user_id)
        if subject is None or not isinstance(subject.user, ServiceUser) or not subject.is_active:
            return None
        return (subject, subject.user.jwks_uri) if subject.user.jwks_uri else None

    def list_secrets(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        """Live secrets, oldest first. Raises NotFound."""
        return self._storage.credentials.list_secrets(self.get(user_id).id)

    def add_secret(self, user_id: str, *, principal: Principal) -> tuple[ServiceUserSecret, str]:
        """Add a secret and return it with its text, which is shown only once. Two can be live, to rotate without a gap.
        Raises NotFound; Conflict if two are live; Denied if the service user holds manager roles beyond the
        principal's."""
        user = self.get_for_credential(user_id, principal)
        if len(self._storage.credentials.list_secrets(user_id, locked=True)) >= MAX_LIVE_SECRETS:
            raise Conflict(gettext_lazy("The service user has two live secrets. Revoke the older one first."))
        text = new_token()
        secret = ServiceUserSecret(id=new_id(), user_id=user_id, digest=token_digest(text), created_at=self._now)
        self._add_credential(user, secret)
        return secret, text

    def remove_secret(self, user_id: str, secret_id: str, *, principal: Principal) -> None:
        """Delete the secret; the tokens obtained with it stop working. Raises NotFound, Denied."""
        self._remove_credential(ServiceUserSecret, user_id, secret_id, principal)

    def authenticate(self, user_id: str, secret: str) -> ServiceUserClient | None:
        """The active service user with this secret; None otherwise. Both take the same time."""
        with self._look() as storage:
            holder = storage.credentials.find_subject_with_secrets(user_id)
        subject, stored = holder or (None, ())
        matching = find_matching_digest({item.id: item.digest for item in stored}, secret)
        if subject is None or matching is None or not subject.is_active:
            return None
        self._uses.record_service_user_secret(matching, self._now)
        return ServiceUserClient(subject, matching)

    def page_personal_access_tokens(
        self, user_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[PersonalAccessToken]:
        """Newest first. Raises NotFound."""
        return self._storage.credentials.page(PersonalAccessToken, self.get(user_id).id, request)

    def add_personal_access_token(
        self, user_id: str, command: AddPersonalAccessToken, *, principal: Principal
    ) -> tuple[PersonalAccessToken, str]:
        """Create a personal access token and return it with its text, which is shown only once. Raises NotFound;
        Invalid for an expiration date in the past or too far away, and for projects that the organization neither owns
        nor was granted; Denied if the service user holds manager roles beyond the principal's."""
        user = self.get_for_credential(user_id, principal)
        audience = self._audience(user, command.project_ids)
        scopes = self._require_scopes(command.scope, audience)
        text = new_token()
        token = PersonalAccessToken(
            id=new_id(),
            user_id=user_id,
            name=command.name,
            scope=scopes,
            created_at=self._now,
            expires_at=self._expiration(command.expires_at),
        )
        live = AccessToken(
            id=new_id(),
            digest=token_digest(text),
            format=TokenFormat.OPAQUE,
            subject=user_id,
            user_id=user_id,
            client_id=user_id,
            personal_access_token_id=token.id,
            scope=scopes,
            audience=audience,
            issued_at=self._now,
            expires_at=token.expires_at,
        )
        self._add_credential(user, token)
        self._storage.tokens.add_access_token(live)
        return token, text

    def remove_personal_access_token(self, user_id: str, token_id: str, *, principal: Principal) -> None:
        """Revoke a personal access token. Raises NotFound, Denied."""
        self._remove_credential(PersonalAccessToken, user_id, token_id, principal)

    def new_assertion_record(self, issuer: str, jti: str, until: datetime) -> Record:
        """The use of an assertion of this issuer: a user id, or an outside issuer's ``iss``."""
        key = token_digest(f"{issuer}\n{jti}")
        return Record(plugin=CORE_NAMESPACE, kind="assertion", key=key, created_at=self._now, expires_at=until)

    def touch_key(self, key: ServiceUserKey) -> None:
        """Update "last used" at most once a minute, so that most requests write nothing."""
        if key.last_used_at is None or self._now - key.last_used_at >= _LAST_USED_STEP:
            self._storage.credentials.update_last_used(ServiceUserKey, {key.id: self._now})

    def record_expiring(self) -> int:
        """Write an audit event for each key and personal access token with 30, 7 or 1 days left, once per step. Returns
        the number of events."""
        longest = self._now + timedelta(days=EXPIRY_WARNING_DAYS[0])
        keys = self._storage.credentials.list_expiring(ServiceUserKey, self._now, longest, _EXPIRING_AT_ONCE)
        tokens = self._storage.credentials.list_expiring(PersonalAccessToken, self._now, longest, _EXPIRING_AT_ONCE)
        return self._note("service_user_key", keys) + self._note("personal_access_token", tokens)

    def _note(self, kind: str, expiring: Iterable[ServiceUserKey | PersonalAccessToken]) -> int:
        written, expiring = 0, tuple(expiring)
        # In one query, and without unreadable rows, so that one damaged row does not suppress the other warnings.
        owners = self._storage.users.find_subjects({item.user_id for item in expiring})
        for item in expiring:
            days = min(step for step in EXPIRY_WARNING_DAYS if item.expires_at - self._now <= timedelta(days=step))
            owner = owners.get(item.user_id)
            written += self._audit.record_once(
                f"{kind}.expiring|{item.id}|{days}",
                f"{kind}.expiring",
                kind=kind,
                id=item.id,
                organization_id=None if owner is None else owner.organization.id,
                detail={"user_id": item.user_id, "expires_at": item.expires_at.isoformat(), "days_left": days},
            )
        return written

    def _audience(self, user: ServiceUser, project_ids: tuple[str, ...]) -> tuple[str, ...]:
        """The service's own project, which is open to everyone, and the requested projects. Raises Invalid."""
        instance = self._instance()
        own_ids = () if instance is None else (instance.project_id,)
        audience = tuple(dict.fromkeys((*own_ids, *project_ids)))
        requested = frozenset(audience) - frozenset(own_ids)
        allowed = self._storage.projects.list_audience(requested, user.organization_id, self._now)
        if requested - allowed:
            names = ", ".join(sorted(requested - allowed))
            raise Invalid(
                {"project_ids": gettext_lazy("The organization neither owns nor was granted {names}.", names=names)}
            )
        return audience

    def _require_scopes(self, scope: str, audience: tuple[str, ...]) -> tuple[str, ...]:
        """The scope as displayed: the requested scope, and the audience scope of each project. Raises Invalid."""
        requested = tuple(dict.fromkeys(scope.split())) or (_OPENID,)
        if any(AudienceScope.PROJECT_ID_INFIX in name for name in requested):
            raise Invalid({"scope": gettext_lazy("Selects projects by their ids, without a scope.")})
        namespace = self._settings.urn_namespaces[0]
        return (*requested, *(AudienceScope.build(project_id, namespace) for project_id in audience))

    def _add_key(
        self, user: ServiceUser, public_key: PublicKey, expires_at: datetime | None, id: str | None = None
    ) -> ServiceUserKey:
        key = ServiceUserKey(
            id=id or new_id(),
            user_id=user.id,
            public_key=public_key.to_der(),
            algorithm=SignatureAlgorithm(public_key.algorithm),
            created_at=self._now,
            expires_at=self._expiration(expires_at),
        )
        self._add_credential(user, key)
        return key

    def _add_credential(self, user: ServiceUser, credential: Credential) -> None:
        with translate_storage_errors("service user", user.id):
            self._storage.credentials.add(credential)
        kind, _ = _CREDENTIAL_NAMES[type(credential)]
        self._record_snapshot(f"{kind}.added", kind, credential, user.organization_id)

    def _remove_credential(self, cls: type[CredentialT], user_id: str, id: str, principal: Principal) -> None:
        self._delete_credential(cls, self._get_authorized(user_id, principal), id)

    def _delete_credential(self, cls: type[CredentialT], user: ServiceUser, id: str) -> None:
        kind, label = _CREDENTIAL_NAMES[cls]
        credential = self._require_found(self._storage.credentials.find(cls, id, user.id), label, id)
        with translate_storage_errors(label, id):
            self._storage.credentials.delete(cls, user.id, id)
        self._record_snapshot(f"{kind}.removed", kind, credential, user.organization_id)

    def _expiration(self, expires_at: datetime | None) -> datetime:
        latest = self.max_expiration
        if expires_at is None:
            return self.default_expiration
        if expires_at <= self._now:
            raise Invalid({"expires_at": gettext_lazy("Choose an expiration date in the future.")})
        if latest is not None and expires_at > latest:
            date = latest.date()
            raise Invalid({"expires_at": gettext_lazy("Choose an expiration date, {date} at the latest.", date=date)})
        return expires_at

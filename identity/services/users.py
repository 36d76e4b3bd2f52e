"""Human users."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from identity.domain.attributes import AttributeDefinition
from identity.domain.email_addresses import email_key
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.sessions import Session
from identity.domain.tokens import ConnectedApplication, merge_consent
from identity.domain.users import EmailVerifier, HumanUser, Profile, Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.agent_rules import refuse_agent
from identity.services.attempts import AttemptService, policy_limits
from identity.services.attributes import NO_ATTRIBUTE_CHANGE, AttributeChange, AttributeService
from identity.services.audit import dump_fields
from identity.services.base import translate_storage_errors
from identity.services.commands.users import (
    ChangeHumanUser,
    ChangeProfile,
    CreateHumanUser,
    InviteHumanUser,
    ProvisionUser,
)
from identity.services.consents import ConsentService
from identity.services.crud import DeactivatableEntityService
from identity.services.factors import FactorService
from identity.services.legal_holds import LegalHoldService
from identity.services.managers import refuse_last_owner
from identity.services.name_conflicts import (
    is_login_name_of_other_user,
    refuse_conflicting_email,
    refuse_conflicting_login_name,
)
from identity.services.one_time_links import InvalidOneTimeLink, OneTimeLinkKind, OneTimeLinkService
from identity.services.passwords import PasswordService
from identity.services.policies import PolicyService
from identity.services.service_users import ServiceUserService
from identity.services.sessions import SessionService

_DUPLICATE_MESSAGES = {"user_name": gettext_lazy("The organization already has a user with this name. Choose another.")}


class UserState(StrEnum):
    """State of a person's account."""

    ACTIVE = "active"
    MUST_CHANGE_PASSWORD = "must_change_password"  # noqa: S105 - a state
    INVITED = "invited"
    DEACTIVATED = "deactivated"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class InitialCredential:
    """Credential for the first sign-in, shown once: a link, or a one-time password."""

    kind: Literal["link", "one_time_password"]
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ImportedUser:
    """A user of another system: profile, and optionally the id to keep."""

    command: ChangeHumanUser
    active: bool
    id: str | None


@dataclass(eq=False, repr=False)
class UserService(DeactivatableEntityService[HumanUser]):
    """Users' accounts. A deactivated one cannot sign in, and the last active IAM_OWNER stays. Deleting an account
    removes personal data from its audit events."""

    kind = "user"
    store = "users"
    duplicate_messages = _DUPLICATE_MESSAGES

    _attempts: AttemptService
    _attributes: AttributeService
    _factors: FactorService
    _legal_holds: LegalHoldService
    _passwords: PasswordService
    _links: OneTimeLinkService
    _policies: PolicyService
    _sessions: SessionService
    _consents: ConsentService
    _access: AccessControl
    _service_users: ServiceUserService

    def get(self, id: str) -> HumanUser:
        user = self._store.find(id)
        return self._require_found(user if isinstance(user, HumanUser) else None, "user", id)

    def create(
        self,
        organization_id: str,
        command: CreateHumanUser | ProvisionUser,
        *,
        id: str | None = None,
        detail: Mapping[str, object] = MappingProxyType({}),
        is_complete: bool = True,
        verified_by: EmailVerifier | None = None,
    ) -> HumanUser:
        """Create an account without a password; ``id`` restores a former id, ``detail`` is for its event. Unless it
        ``is_complete``, required attributes may be missing. ``verified_by`` vouches for the address. Raises NotFound;
        Invalid if the user name is taken or a required attribute is missing."""
        definitions = self._attributes.list_definitions(organization_id)
        attributes = self._attributes.prepare_creation(definitions, command.attributes, is_complete=is_complete)
        profile, verified_by = self._vouch(organization_id, command.new_profile(), verified_by)
        user = self._new_entity(
            HumanUser,
            id=id,
            organization_id=organization_id,
            user_name=command.user_name or "",
            profile=profile,
            email_verified_by=verified_by,
            named_at=self._now,
        )
        refuse_conflicting_login_name(self._storage, user)
        refuse_conflicting_email(self._storage, user)
        parent = ("organization", organization_id)
        self._add("user.created", user, organization_id, parent=parent, detail={**attributes.detail, **detail})
        self._attributes.store_values(user.id, attributes)
        return user

    def create_many(self, organization_id: str, people: Sequence[ImportedUser]) -> list[HumanUser | Invalid]:
        """Create accounts without passwords, for imports; an account that is refused is returned as its error. Raises
        NotFound."""
        definitions = self._attributes.list_definitions(organization_id)
        attributes: dict[str, AttributeChange] = {}
        results = [self._new(organization_id, imported_user, definitions, attributes) for imported_user in people]
        try:
            with translate_storage_errors("organization", organization_id):
                self._storage.users.add_many([user for user in results if not isinstance(user, Invalid)])
        except Invalid:
            results = [self._add_or_refuse(user) for user in results]
        stored = [user for user in results if not isinstance(user, Invalid)]
        self._attributes.store_many({user.id: attributes[user.id] for user in stored})
        self._audit.record_many("user.created", "user", organization_id, _creation_details(stored, attributes))
        self._audit.record_many("user.deactivated", "user", organization_id, _deactivation_details(stored))
        return results

    def invite(
        self, organization_id: str, command: InviteHumanUser, *, principal: Principal, mailed: bool = False
    ) -> tuple[HumanUser, InitialCredential]:
        """Create an account; returns it with its initial credential. Raises NotFound; Invalid if the user name is
        taken. With ``mailed`` the link only goes into a mail to the user."""
        user = self.create(organization_id, command)
        if command.initial == "link":
            mailed_to = user.profile.email if mailed else ""
            return user, InitialCredential(
                "link", self.issue_password_link(user.id, principal=principal, mailed_to=mailed_to)
            )
        return user, InitialCredential("one_time_password", self.set_one_time_password(user.id, principal=principal))

    def change(
        self,
        user_id: str,
        command: ChangeHumanUser,
        *,
        principal: Principal,
        expected_version: int | None = None,
        verified_by: EmailVerifier | None = None,
    ) -> HumanUser:
        """Change the account; a new address is unverified unless ``verified_by`` vouches for it. Raises NotFound,
        Conflict, Invalid; Denied if the user holds manager roles beyond the principal's, because a password link can be
        sent to a changed address."""
        before = self._get_authorized(user_id, principal)
        attributes = self._attributes.prepare_change(before, command.attributes)
        profile, email_verifier = command.apply_to(before.profile), before.email_verified_by
        if not profile.email_verified:
            profile, email_verifier = self._vouch(before.organization_id, profile, verified_by)
        renamed = command.user_name is not None and name_key(command.user_name) != name_key(before.user_name)
        values: dict[str, object] = {"profile": profile, "email_verified_by": email_verifier}
        values |= {"named_at": self._now} if renamed else {}
        after = self._next_version(before, command, expected_version=expected_version, **values)
        if renamed:
            refuse_conflicting_login_name(self._storage, after)
        return self._change(before, after, attributes)

    def _before_removal(self, entity: HumanUser) -> None:
        # Recorded while it is still known which applications the sessions were used for.
        self._sessions.end_all(self._get_subject(entity.id))
        self._service_users.remove_agents(entity.id)

    def deactivate(self, id: str, *, principal: Principal) -> HumanUser:
        """Also ends all sessions and tokens permanently."""
        after = super().deactivate(id, principal=principal)
        self._sessions.revoke_access(self._get_subject(id))
        return after

    def reactivate(self, id: str, *, principal: Principal) -> HumanUser:
        """Let the person sign in again; former sessions and tokens stay revoked. Raises NotFound, Denied."""
        before = self._get_authorized(id, principal)
        after = super().reactivate(id, principal=principal)
        if not before.active:
            # A sign-in that raced with the deactivation may have left a session.
            self._sessions.revoke_access(self._get_subject(id))
        return after

    def unlock(self, user_id: str, *, principal: Principal) -> HumanUser:
        """Reset the count of wrong passwords, so that the person can sign in at any browser. Raises NotFound,
        Denied."""
        user = self._get_authorized(user_id, principal)
        if self.count_failed_attempts(user_id):
            self._attempts.reset(self._get_subject(user_id))
            self._audit.record("user.unlocked", kind="user", id=user_id, organization_id=user.organization_id)
        return user

    def reset_factors(self, user_id: str, *, principal: Principal) -> int:
        """Remove all second factors and passkeys of a person who lost them; returns their number. Raises NotFound,
        Denied."""
        self._get_authorized(user_id, principal)
        return self._factors.remove_all(user_id)

    def count_failed_attempts(self, user_id: str) -> int:
        """Consecutive wrong passwords at browsers that the account does not know. Raises NotFound."""
        return self._attempts.count_failures([self._get_subject(user_id)])[user_id]

    def list_locked_ids(self, users: Sequence[HumanUser], organization: Organization) -> frozenset[str]:
        """Ids of the users whose passwords are accepted only at browsers that they have signed in at before."""
        failures = self._attempts.count_failures(Subject(user, organization) for user in users)
        most = policy_limits(self._policies.organization_policy(organization.id)).max
        human_users = [user for user in users if failures[user.id] >= most]
        people = (Subject(user, organization) for user in human_users)
        limits = {subject.user.id: policy_limits(self._policies.subject_policy(subject)) for subject in people}
        return frozenset(
            user_id for user_id, attempt_limits in limits.items() if failures[user_id] >= attempt_limits.max
        )

    def issue_password_link(self, user_id: str, *, principal: Principal, mailed_to: str = "") -> str:
        """Issue a single-use link to choose a password; the current one stays valid until the link is used. Earlier
        links stop working. With ``mailed_to`` it only goes into a mail to that address. Raises NotFound, Denied;
        Conflict for a deactivated user."""
        refuse_agent(None if principal.subject is None else principal.subject.user)
        self._refuse_deactivated(self._get_authorized(user_id, principal))
        return self._passwords.issue_reset_link(user_id, mailed_to=mailed_to)

    def set_one_time_password(self, user_id: str, *, principal: Principal) -> str:
        """Set and return a random password, to be shown once. It must be changed at the first sign-in unless the policy
        says otherwise; the current one and all sessions and tokens end. Raises NotFound, Denied; Conflict for a
        deactivated user."""
        refuse_agent(None if principal.subject is None else principal.subject.user)
        self._refuse_deactivated(self._get_authorized(user_id, principal))
        return self._passwords.set_one_time_password(user_id)

    def list_sessions(self, user_id: str) -> tuple[Session, ...]:
        """The person's live sessions, last seen first. Raises NotFound."""
        return self._sessions.list_by_user(self.get(user_id).id)

    def end_session(self, user_id: str, session_id: str, *, principal: Principal) -> None:
        """Raises NotFound, Denied."""
        self._get_authorized(user_id, principal)
        self._sessions.end_by_id(self._get_subject(user_id), session_id)

    def end_sessions(self, user_id: str, *, principal: Principal) -> int:
        """Sign the person out everywhere; returns the number of sessions ended. Raises NotFound, Denied."""
        self._get_authorized(user_id, principal)
        return self._sessions.end_all(self._get_subject(user_id))

    def user_states(self, users: Sequence[HumanUser]) -> Mapping[str, UserState]:
        """State of each account by user id."""
        must_change = self._storage.users.list_must_change_password([user.id for user in users if user.active])
        return {user.id: _state(user, must_change.get(user.id)) for user in users}

    def recover(self, user_id: str, *, reset_factors: bool = False) -> str:
        """Recover a locked-out account: reactivate it, end its sessions and tokens, and optionally remove second
        factors. Returns a new one-time password. Raises NotFound."""
        before = self.get(user_id)
        if not before.active:
            after = self._next_version(before, active=True)
            with translate_storage_errors("user", user_id):
                self._storage.users.update(after)
        self._audit.record("user.recovered", kind="user", id=user_id, organization_id=before.organization_id)
        if reset_factors:
            self._factors.remove_all(user_id)
        return self._passwords.set_one_time_password(user_id)

    def set_verified_email(self, user_id: str, command: ChangeProfile) -> HumanUser:
        """Set the command's email address as verified. The operator vouches for it, which counts like a link that the
        person used. Raises NotFound, Invalid."""
        before = self.get(user_id)
        profile = replace(command.apply_to(before.profile), email_verified=True)
        after = self._next_version(before, profile=profile, email_verified_by=EmailVerifier.OPERATOR)
        return self._change(before, after)

    def change_profile(
        self,
        user_id: str,
        command: ChangeProfile,
        *,
        expected_version: int | None = None,
        verified_email: str = "",
        verified_by: EmailVerifier | None = None,
    ) -> HumanUser:
        """Store the profile that the person entered; a new address is unverified. ``verified_email`` is an address that
        ``verified_by`` vouches for; the record of an earlier verification is kept. Raises NotFound, Conflict."""
        before = self.get(user_id)
        attributes = self._attributes.prepare_change(before, command.attributes, by_person=True)
        profile = command.apply_to(before.profile)
        email_verifier = before.email_verified_by
        if verified_email and profile.email == verified_email and not profile.email_verified:
            profile, email_verifier = replace(profile, email_verified=True), verified_by
        after = self._next_version(
            before, expected_version=expected_version, profile=profile, email_verified_by=email_verifier
        )
        return self._change(before, after, attributes)

    def change_attributes(self, user_id: str, values: Mapping[str, object]) -> HumanUser:
        """Store values that an attribute mapping found; rules about who may change them do not apply. Raises NotFound,
        Conflict, Invalid."""
        before = self.get(user_id)
        attributes = self._attributes.prepare_change(before, values)
        return self._change(before, self._next_version(before), attributes)

    def issue_email_link(self, user_id: str, email: str) -> str:
        """Issue a single-use link that proves that the person reads this address; it becomes theirs when the link is
        used. Raises NotFound."""
        user = self.get(user_id)
        refuse_conflicting_email(self._storage, replace(user, profile=replace(user.profile, email=email)))
        link = self._links.issue(OneTimeLinkKind.EMAIL_CHANGE, user=user, content={"email": email})
        self._audit.record("email.link_issued", kind="user", id=user_id, organization_id=user.organization_id)
        return link

    def find_by_email_link(self, code: str) -> tuple[Subject, str]:
        """Whose address the link verifies, and which, without redeeming it. Raises InvalidOneTimeLink."""
        owner, content = self._links.read(OneTimeLinkKind.EMAIL_CHANGE, code)
        return self._links.get_owner(owner), content["email"]

    def verify_email(self, code: str, user_id: str) -> HumanUser:
        """Set the address that the link verifies. The person is signed in. Raises InvalidOneTimeLink, also for a link
        of another user."""
        owner, content = self._links.redeem(OneTimeLinkKind.EMAIL_CHANGE, code)
        if owner != user_id:
            raise InvalidOneTimeLink
        before = self.get(self._links.get_owner(owner).user.id)
        profile = replace(before.profile, email=content["email"], email_verified=True)
        after = self._next_version(
            before,
            profile=profile,
            email_verified_by=EmailVerifier.OWN_LINK,
            named_at=before.named_at or self._now,
        )
        if is_login_name_of_other_user(self._storage, after, after.profile.email):
            raise InvalidOneTimeLink
        self._drop_links(before.id)
        with self._audit.acting_as(before.id):
            return self._update("email.verified", before, after)

    def list_connected_applications(self, user_id: str) -> tuple[ConnectedApplication, ...]:
        """Applications with tokens or consent of the person, last used first."""
        holders = {
            application.client.id: application
            for application in self._storage.tokens.list_connected_applications(user_id, self._now)
        }
        for consent in self._consents.list_by_user(user_id):
            client = self._storage.applications.find_client(consent.application_id)
            if client is not None:
                holders[client.id] = merge_consent(consent, client, holders.get(client.id))
        return tuple(sorted(holders.values(), key=lambda application: application.last_used_at, reverse=True))

    def disconnect_device(self, subject: Subject, device_id: str) -> None:
        """Revoke the tokens of one of the person's devices; the application stays connected otherwise. Raises
        NotFound."""
        connected_applications = self.list_connected_applications(subject.user.id)
        client_id = next(
            (item.client.id for item in connected_applications for device in item.devices if device.id == device_id),
            None,
        )
        if client_id is None:
            raise NotFound("device", device_id)
        self._storage.tokens.revoke_family(device_id, self._now)
        with self._audit.acting_as(subject.user.id):
            self._audit.record(
                "device.disconnected",
                kind="application",
                id=client_id,
                organization_id=subject.organization.id,
                detail={"user_id": subject.user.id, "device_id": device_id},
            )

    def disconnect_application(self, subject: Subject, client_id: str) -> None:
        """Revoke an application's tokens and consent of the person. Raises NotFound if there is neither."""
        withdrawn = self._consents.withdraw_consent(subject, client_id)
        if not self._storage.tokens.revoke_for_user(subject.user.id, self._now, client_id=client_id):
            if withdrawn:
                return
            raise NotFound("application", client_id)
        self._audit.record(
            "application.disconnected",
            kind="application",
            id=client_id,
            organization_id=subject.organization.id,
            detail={"user_id": subject.user.id},
        )

    def disconnect_application_as_manager(self, user_id: str, client_id: str, *, principal: Principal) -> None:
        """Like ``disconnect_application``, by a manager of the person. Raises NotFound, Denied."""
        self._get_authorized(user_id, principal)
        if client_id not in {application.client.id for application in self.list_connected_applications(user_id)}:
            raise NotFound("application", client_id)
        self.disconnect_application(self._get_subject(user_id), client_id)

    def _vouch(
        self, organization_id: str, profile: Profile, verified_by: EmailVerifier | None
    ) -> tuple[Profile, EmailVerifier | None]:
        """The profile with its address verified by another than the person, and by whom: only for a domain that
        the organization has proven, and an address that no other person there has verified. Otherwise a new account
        could pass for another person in applications that go by verified addresses."""
        key = email_key(profile.email) if verified_by is not None else None
        if key is None or self._storage.users.find_by_verified_email(key, organization_id=organization_id):
            return profile, None
        domain = self._storage.organizations.find_domain(organization_id, key.rpartition("@")[2])
        if domain is None or not domain.is_verified:
            return profile, None
        return replace(profile, email_verified=True), verified_by

    def _new(
        self,
        organization_id: str,
        person: ImportedUser,
        definitions: Sequence[AttributeDefinition],
        attributes: dict[str, AttributeChange],
    ) -> HumanUser | Invalid:
        """The user, whose values are added to ``attributes`` by id. Required ones may be missing, as in accounts that
        are older than the definition."""
        user = self._new_entity(
            HumanUser,
            id=person.id,
            organization_id=organization_id,
            user_name=person.command.user_name or "",
            profile=person.command.apply_to(Profile()),
            named_at=self._now,
            active=person.active,
        )
        try:
            attributes[user.id] = self._attributes.prepare_creation(
                definitions, person.command.attributes, is_complete=False
            )
        except Invalid as refusal:
            return refusal
        return user

    def _add_or_refuse(self, user: HumanUser | Invalid) -> HumanUser | Invalid:
        if isinstance(user, Invalid):
            return user
        try:
            with translate_storage_errors("organization", user.organization_id, _DUPLICATE_MESSAGES):
                self._storage.users.add(user)
        except Invalid as refusal:
            return refusal
        return user

    def _authorize(self, user: HumanUser, principal: Principal) -> None:
        self._access.require_not_more_privileged(principal, user)

    def _refuse_deactivation(self, user: HumanUser) -> None:
        refuse_last_owner(self._storage, lambda owner: owner.user_id == user.id)

    def _refuse_removal(self, user: HumanUser) -> None:
        self._legal_holds.refuse_user_removal(user)

    def _after_removal(self, user: HumanUser) -> None:
        self._storage.audit.erase_personal_details(user.id)

    def _refuse_deactivated(self, user: HumanUser) -> None:
        if not user.active:
            raise Conflict("This user is deactivated and cannot sign in. Reactivate it first.")

    def _change(
        self, before: HumanUser, after: HumanUser, attributes: AttributeChange = NO_ATTRIBUTE_CHANGE
    ) -> HumanUser:
        if after.profile.email != before.profile.email:
            refuse_conflicting_email(self._storage, after)
            self._drop_links(before.id)
        elif after.profile.email_verified and not before.profile.email_verified:
            refuse_conflicting_email(self._storage, after)
        user = self._update("user.changed", before, after, detail=attributes.detail)
        self._attributes.store_values(user.id, attributes)
        return user

    def _drop_links(self, user_id: str) -> None:
        """Revoke links that were mailed to a former address or would set one."""
        for kind in (OneTimeLinkKind.EMAIL_CHANGE, OneTimeLinkKind.PASSWORD_RESET):
            self._links.revoke_all(kind, user_id)


def _state(user: HumanUser, must_change: bool | None) -> UserState:
    if not user.active:
        return UserState.DEACTIVATED
    if user.deletion_at is not None:
        return UserState.LEAVING
    if must_change is None and user.last_sign_in_at is None and not user.registered:
        return UserState.INVITED
    return UserState.MUST_CHANGE_PASSWORD if must_change else UserState.ACTIVE


def _creation_details(
    users: Iterable[HumanUser], attributes: Mapping[str, AttributeChange]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    return ((user.id, dump_fields(user) | {"active": True} | dict(attributes[user.id].detail)) for user in users)


def _deactivation_details(users: Iterable[HumanUser]) -> Iterator[tuple[str, Mapping[str, object]]]:
    return ((user.id, {"active": {"before": True, "after": False}}) for user in users if not user.active)

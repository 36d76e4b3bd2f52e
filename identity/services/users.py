"""Human users."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.sessions import Session
from identity.domain.tokens import Connection, connected
from identity.domain.users import EmailVerifier, HumanUser, Profile, Subject
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.attempts import Attempts, limits_by
from identity.services.audit import facts
from identity.services.changes import TransactionState, told
from identity.services.commands.users import ChangeHumanUser, ChangeProfile, CreateHumanUser, InviteHumanUser
from identity.services.consents import Consents
from identity.services.factors import Factors
from identity.services.legal_holds import LegalHolds
from identity.services.lifecycle import Lifecycle
from identity.services.links import CodeKind, Links, LinkUsed
from identity.services.managers import refuse_last_owner
from identity.services.name_clashes import is_anothers_login_name, refuse_address, refuse_name
from identity.services.passwords import Passwords
from identity.services.policies import Policies
from identity.services.sessions import Sessions

_TAKEN = {"user_name": say("The organization has a user of this name. Choose another.")}


class UserState(StrEnum):
    """How a person's account stands."""

    ACTIVE = "active"
    MUST_CHANGE_PASSWORD = "must_change_password"  # noqa: S105 - a state
    INVITED = "invited"
    DEACTIVATED = "deactivated"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Initial:
    """What a new account is first entered by, shown this once: a link, or a one-time password."""

    kind: Literal["link", "one_time_password"]
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewPerson:
    """Somebody who had an account elsewhere: all that is known, and perhaps the id that it had."""

    command: ChangeHumanUser
    active: bool
    id: str | None


class Users(Lifecycle[HumanUser]):
    """People's accounts. Nobody signs in to one that is deactivated, and the last IAM_OWNER stays. When one is deleted,
    its audit events forget what they tell of the person."""

    kind = "user"
    store = "users"
    taken = _TAKEN

    def __init__(
        self,
        state: TransactionState,
        attempts: Attempts,
        factors: Factors,
        legal_holds: LegalHolds,
        passwords: Passwords,
        links: Links,
        policies: Policies,
        sessions: Sessions,
        consents: Consents,
        access: Access,
    ) -> None:
        super().__init__(state)
        self._attempts, self._factors, self._legal_holds = attempts, factors, legal_holds
        self._passwords, self._links, self._policies, self._sessions = passwords, links, policies, sessions
        self._consents, self._access = consents, access

    def get(self, id: str) -> HumanUser:  # noqa: A002
        """The human user. Raises NotFound."""
        user = self._stored.find(id)
        return self._found(user if isinstance(user, HumanUser) else None, "user", id)

    def create(
        self,
        organization_id: str,
        command: CreateHumanUser,
        *,
        id: str | None = None,  # noqa: A002
    ) -> HumanUser:
        """A new account, without a password yet; ``id`` is one that it had before.

        Raises NotFound; Invalid if the user name is taken.
        """
        profile = Profile(given_name=command.given_name, family_name=command.family_name, email=command.email)
        user = self._made(
            HumanUser,
            id=id,
            organization_id=organization_id,
            user_name=command.user_name,
            profile=profile,
            named_at=self._now,
        )
        refuse_name(self._storage, user)
        refuse_address(self._storage, user)
        self._add("user.created", user, organization_id, of=("organization", organization_id))
        return user

    def create_many(self, organization_id: str, people: Sequence[NewPerson]) -> list[HumanUser | Invalid]:
        """New accounts without passwords, or in place of one that cannot be, why; for imports. Raises NotFound."""
        users = [self._new(organization_id, one) for one in people]
        made: list[HumanUser | Invalid] = [*users]
        try:
            with told("organization", organization_id):
                self._storage.users.add_many(users)
        except Invalid:
            made = [self._added(user) for user in users]
        stored = [user for user in made if not isinstance(user, Invalid)]
        self._audit.record_many("user.created", "user", organization_id, _created(stored))
        self._audit.record_many("user.deactivated", "user", organization_id, _deactivated(stored))
        return made

    def invite(
        self, organization_id: str, command: InviteHumanUser, *, by: Principal, mailed: bool = False
    ) -> tuple[HumanUser, Initial]:
        """A new account, and what its person first enters it by. Raises NotFound; Invalid if the user name is taken.

        With ``mailed`` a link is for a mail to the person, and nobody else is shown it.
        """
        user = self.create(organization_id, command)
        if command.initial == "link":
            mailed_to = user.profile.email if mailed else ""
            return user, Initial("link", self.new_password_link(user.id, by=by, mailed_to=mailed_to))
        return user, Initial("one_time_password", self.one_time_password(user.id, by=by))

    def change(
        self, user_id: str, command: ChangeHumanUser, *, by: Principal, expected_version: int | None = None
    ) -> HumanUser:
        """The changed account; an address that changed is no longer a verified one.

        Raises NotFound, Conflict, Invalid; Denied if the user holds manager roles beyond the caller's: who can change
        the address can have a new password sent there.
        """
        before = self._governed(user_id, by)
        profile = command.apply_to(before.profile)
        renamed = command.user_name is not None and name_key(command.user_name) != name_key(before.user_name)
        given = {"profile": profile} | ({"named_at": self._now} if renamed else {})
        after = self._next(before, command, expected_version=expected_version, **given)
        if renamed:
            refuse_name(self._storage, after)
        return self._change(before, after)

    def deactivate(self, id: str, *, by: Principal) -> HumanUser:  # noqa: A002
        """The same as for everything; all sessions and tokens end now, and stay ended."""
        after = super().deactivate(id, by=by)
        self._sessions.end_access(self._subject(id))
        return after

    def reactivate(self, id: str, *, by: Principal) -> HumanUser:  # noqa: A002
        """The person can sign in again; nothing from before comes back. Raises NotFound, Denied."""
        before = self._governed(id, by)
        after = super().reactivate(id, by=by)
        if not before.active:
            # A sign-in that raced with the deactivation may have left something behind.
            self._sessions.end_access(self._subject(id))
        return after

    def unlock(self, user_id: str, *, by: Principal) -> HumanUser:
        """Forget the wrong passwords that were tried at the account, so that it can be signed in to at any browser.

        Raises NotFound, Denied.
        """
        user = self._governed(user_id, by)
        if self.failures(user_id):
            self._attempts.forget(self._subject(user_id))
            self._audit.record("user.unlocked", kind="user", id=user_id, organization_id=user.organization_id)
        return user

    def reset_factors(self, user_id: str, *, by: Principal) -> int:
        """Remove all by which the person proves who they are beside the password, for whoever has lost it; returns how
        many there were. Raises NotFound, Denied."""
        self._governed(user_id, by)
        return self._factors.reset(user_id)

    def failures(self, user_id: str) -> int:
        """How many wrong passwords in a row were tried at browsers that the account does not know. Raises NotFound."""
        return self._attempts.failures([self._subject(user_id)])[user_id]

    def locked(self, users: Sequence[HumanUser], organization: Organization) -> frozenset[str]:
        """The ids of those of an organization whose passwords count only in browsers that they signed in at before."""
        failures = self._attempts.failures(Subject(user, organization) for user in users)
        most = limits_by(self._policies.of(organization.id)).most
        found = [one for one in users if failures[one.id] >= most]
        people = (Subject(one, organization) for one in found)
        limits = {one.user.id: limits_by(self._policies.of_subject(one)) for one in people}
        return frozenset(user_id for user_id, one in limits.items() if failures[user_id] >= one.most)

    def new_password_link(self, user_id: str, *, by: Principal, mailed_to: str = "") -> str:
        """A link, good once, by which the person chooses a password; the present one stays valid until it is used.

        Earlier links stop working. With ``mailed_to`` it is for a mail to that address, and nobody else is shown it.
        Raises NotFound, Denied; Conflict for a deactivated user.
        """
        self._refuse_deactivated(self._governed(user_id, by))
        return self._passwords.issue_link(user_id, mailed_to=mailed_to)

    def one_time_password(self, user_id: str, *, by: Principal) -> str:
        """A new password, to be told once and changed at the first sign-in unless the policy lets it stay; the present
        one ends, with all that was opened as this person.

        Raises NotFound, Denied; Conflict for a deactivated user.
        """
        self._refuse_deactivated(self._governed(user_id, by))
        return self._passwords.set_one_time(user_id)

    def sessions(self, user_id: str) -> tuple[Session, ...]:
        """The person's live sessions, last seen first. Raises NotFound."""
        return self._sessions.of_user(self.get(user_id).id)

    def end_session(self, user_id: str, session_id: str, *, by: Principal) -> None:
        """Sign the person out of one session. Raises NotFound, Denied."""
        self._governed(user_id, by)
        self._sessions.end_one_of(self._subject(user_id), session_id)

    def end_sessions(self, user_id: str, *, by: Principal) -> int:
        """Sign the person out everywhere; returns how many sessions ended. Raises NotFound, Denied."""
        self._governed(user_id, by)
        return self._sessions.end_all_of(self._subject(user_id))

    def states(self, users: Sequence[HumanUser]) -> Mapping[str, UserState]:
        """How each account stands, by user id."""
        must_change = self._storage.users.must_change_password([user.id for user in users if user.active])
        return {user.id: _state(user, must_change.get(user.id)) for user in users}

    def recover(self, user_id: str, *, reset_factors: bool = False) -> str:
        """Let a locked-out person back in: reactivated, everything ended that was opened as them, and their second
        factors removed if they have lost those too.

        Returns a new one-time password. Raises NotFound.
        """
        before = self.get(user_id)
        if not before.active:
            after = self._next(before, active=True)
            with told("user", user_id):
                self._storage.users.update(after)
        self._audit.record("user.recovered", kind="user", id=user_id, organization_id=before.organization_id)
        if reset_factors:
            self._factors.reset(user_id)
        return self._passwords.set_one_time(user_id)

    def set_proven_email(self, user_id: str, command: ChangeProfile) -> HumanUser:
        """Give the person the email address of the command. Whoever runs the machine says that it is theirs, which
        counts as a link that they used themselves. Raises NotFound, Invalid."""
        before = self.get(user_id)
        profile = replace(command.apply_to(before.profile), email_verified=True)
        after = self._next(before, profile=profile, email_verified_by=EmailVerifier.OPERATOR)
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
        """The person with what they said of themselves; an address that changed is no longer a verified one.

        ``verified_email`` is an address for which ``verified_by`` vouches; who verified it before stays known. Raises
        NotFound, Conflict.
        """
        before = self.get(user_id)
        profile = command.apply_to(before.profile)
        by = before.email_verified_by
        if verified_email and profile.email == verified_email and not profile.email_verified:
            profile, by = replace(profile, email_verified=True), verified_by
        after = self._next(before, expected_version=expected_version, profile=profile, email_verified_by=by)
        return self._change(before, after)

    def issue_email_link(self, user_id: str, email: str) -> str:
        """A link, good once, that proves that the person reads this address; only then it becomes theirs.

        Raises NotFound.
        """
        user = self.get(user_id)
        refuse_address(self._storage, replace(user, profile=replace(user.profile, email=email)))
        link = self._links.issue(CodeKind.EMAIL_CHANGE, user=user, content={"email": email})
        self._audit.record("email.link_issued", kind="user", id=user_id, organization_id=user.organization_id)
        return link

    def find_email_by_link(self, code: str) -> tuple[Subject, str]:
        """Whose address the link proves, and which; looking uses nothing up. Raises LinkUsed."""
        owner, content = self._links.look(CodeKind.EMAIL_CHANGE, code)
        return self._owner(owner), content["email"]

    def verify_email(self, code: str, user_id: str) -> HumanUser:
        """The person, who is signed in, with the address that the link proves. Raises LinkUsed, also for a link of
        somebody else."""
        owner, content = self._links.use(CodeKind.EMAIL_CHANGE, code)
        if owner != user_id:
            raise LinkUsed
        before = self.get(self._owner(owner).user.id)
        profile = replace(before.profile, email=content["email"], email_verified=True)
        after = self._next(
            before,
            profile=profile,
            email_verified_by=EmailVerifier.OWN_LINK,
            named_at=before.named_at or self._now,
        )
        if is_anothers_login_name(self._storage, after, after.profile.email):
            raise LinkUsed
        self._drop_links(before.id)
        with self._audit.acting(before.id):
            return self._keep("email.verified", before, after)

    def connections(self, user_id: str) -> tuple[Connection, ...]:
        """What applications hold of the person or may get without asking again, last used first."""
        held = {one.client.id: one for one in self._storage.tokens.connections_of_user(user_id, self._now)}
        for consent in self._consents.of_user(user_id):
            client = self._storage.applications.find_client(consent.application_id)
            if client is not None:
                held[client.id] = connected(consent, client, held.get(client.id))
        return tuple(sorted(held.values(), key=lambda one: one.last_used_at, reverse=True))

    def disconnect(self, subject: Subject, client_id: str) -> None:
        """Take from an application all that it holds of the person, and what they agreed to.

        Raises NotFound if there is neither.
        """
        withdrawn = self._consents.withdraw(subject, client_id)
        if not self._storage.tokens.revoke_of_user(subject.user.id, self._now, client_id=client_id):
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

    def end_connection(self, user_id: str, client_id: str, *, by: Principal) -> None:
        """The same for the person, done by whoever manages them. Raises NotFound, Denied."""
        self._governed(user_id, by)
        if client_id not in {one.client.id for one in self.connections(user_id)}:
            raise NotFound("application", client_id)
        self.disconnect(self._subject(user_id), client_id)

    def _new(self, organization_id: str, person: NewPerson) -> HumanUser:
        return self._made(
            HumanUser,
            id=person.id,
            organization_id=organization_id,
            user_name=person.command.user_name or "",
            profile=person.command.apply_to(Profile()),
            named_at=self._now,
            active=person.active,
        )

    def _added(self, user: HumanUser) -> HumanUser | Invalid:
        try:
            with told("organization", user.organization_id, _TAKEN):
                self._storage.users.add(user)
        except Invalid as refusal:
            return refusal
        return user

    def _check(self, thing: HumanUser, by: Principal) -> None:
        self._access.require_not_above(by, thing)

    def _refuse_end(self, thing: HumanUser) -> None:
        refuse_last_owner(self._storage, lambda owner: owner.user_id == thing.id)

    def _refuse_removal(self, thing: HumanUser) -> None:
        self._legal_holds.refuse_removal(thing)

    def _after_removal(self, thing: HumanUser) -> None:
        self._storage.audit.erase(thing.id)

    def _refuse_deactivated(self, user: HumanUser) -> None:
        if not user.active:
            raise Conflict("This user is deactivated and cannot sign in. Reactivate it first.")

    def _subject(self, user_id: str) -> Subject:
        return self._found(self._storage.users.find_subject(user_id), "user", user_id)

    def _change(self, before: HumanUser, after: HumanUser) -> HumanUser:
        if after.profile.email != before.profile.email:
            refuse_address(self._storage, after)
            self._drop_links(before.id)
        elif after.profile.email_verified and not before.profile.email_verified:
            refuse_address(self._storage, after)
        return self._keep("user.changed", before, after)

    def _drop_links(self, user_id: str) -> None:
        """What was mailed to an address that is no longer the person's, or leads to one, stops working."""
        for kind in (CodeKind.EMAIL_CHANGE, CodeKind.PASSWORD_RESET):
            self._links.drop(kind, user_id)

    def _owner(self, user_id: str | None) -> Subject:
        subject = None if user_id is None else self._storage.users.find_subject(user_id)
        if subject is None or not subject.active or not isinstance(subject.user, HumanUser):
            raise LinkUsed
        return subject


def _state(user: HumanUser, must_change: bool | None) -> UserState:
    if not user.active:
        return UserState.DEACTIVATED
    if user.deletion_at is not None:
        return UserState.LEAVING
    if must_change is None and user.last_sign_in_at is None and not user.registered:
        return UserState.INVITED
    return UserState.MUST_CHANGE_PASSWORD if must_change else UserState.ACTIVE


def _created(users: Iterable[HumanUser]) -> Iterator[tuple[str, Mapping[str, object]]]:
    return ((user.id, facts(user) | {"active": True}) for user in users)


def _deactivated(users: Iterable[HumanUser]) -> Iterator[tuple[str, Mapping[str, object]]]:
    return ((user.id, {"active": {"before": True, "after": False}}) for user in users if not user.active)

"""Human users."""

from dataclasses import replace
from datetime import datetime

from identity.crypto.secrets import new_id
from identity.domain.errors import NotFound
from identity.domain.one_time_codes import CodeKind, OneTimeCode
from identity.domain.tokens import Connection
from identity.domain.users import HumanUser, Profile, Subject
from identity.services.audit import Recorder
from identity.services.changes import UseCases, told
from identity.services.commands.users import ChangeProfile, CreateHumanUser
from identity.services.links import Links, LinkUsed
from identity.services.passwords import Passwords
from identity.storage.backend import Storage

_TAKEN = {"user_name": "The organization has a user of this name. Choose another."}


class Users(UseCases):
    """People's accounts."""

    def __init__(
        self,
        storage: Storage,
        audit: Recorder,
        now: datetime,
        *,
        passwords: Passwords,
        links: Links,
    ) -> None:
        super().__init__(storage, audit, now)
        self._passwords = passwords
        self._links = links

    def get(self, user_id: str) -> HumanUser:
        """The human user. Raises NotFound."""
        user = self._storage.users.find(user_id)
        if not isinstance(user, HumanUser):
            raise NotFound("user", user_id)
        return user

    def create(self, organization_id: str, command: CreateHumanUser) -> HumanUser:
        """A new account, without a password yet. Raises NotFound; Invalid if the user name is taken."""
        user = HumanUser(
            id=new_id(),
            organization_id=organization_id,
            user_name=command.user_name,
            profile=Profile(given_name=command.given_name, family_name=command.family_name, email=command.email),
            created_at=self._now,
            changed_at=self._now,
        )
        with told("organization", organization_id, _TAKEN):
            self._storage.users.add(user)
        self._record_created("user.created", "user", user, organization_id)
        return user

    def recover(self, user_id: str) -> str:
        """Let a locked-out person back in: reactivated, all sessions and tokens ended; returns a new one-time password.

        Raises NotFound.
        """
        before = self.get(user_id)
        if not before.active:
            after: HumanUser = self._next(before, "user", None, active=True)
            with told("user", user_id):
                self._storage.users.update(after)
        self._storage.tokens.revoke_of_user(user_id, self._now)
        self._storage.sessions.end_of_user(user_id, self._now)
        self._audit.record("user.recovered", kind="user", id=user_id, organization_id=before.organization_id)
        return self._passwords.set_one_time(user_id)

    def change_profile(self, user_id: str, command: ChangeProfile, *, expected_version: int | None = None) -> HumanUser:
        """The person with what they said of themselves; an address that changed is no longer a verified one.

        Raises NotFound, Conflict.
        """
        before = self.get(user_id)
        profile = command.apply_to(before.profile)
        if profile == before.profile:
            return before
        after: HumanUser = self._next(before, "user", expected_version, profile=profile)
        with told("user", user_id):
            self._storage.users.update(after)
        if profile.email != before.profile.email:
            self._drop_links(user_id)
        self._record_changed("user.changed", "user", before, after, before.organization_id)
        return after

    def issue_email_link(self, user_id: str, email: str) -> str:
        """A link, good once, that proves that the person reads this address; only then it becomes theirs.

        Raises NotFound.
        """
        user = self.get(user_id)
        link = self._links.issue(CodeKind.EMAIL_CHANGE, user_id=user_id, content={"email": email})
        self._audit.record("email.link_issued", kind="user", id=user_id, organization_id=user.organization_id)
        return link

    def find_email_by_link(self, code: str) -> tuple[Subject, str]:
        """Whose address the link proves, and which; looking uses nothing up. Raises LinkUsed."""
        found, content = self._links.look(CodeKind.EMAIL_CHANGE, code)
        return self._owner(found), content["email"]

    def verify_email(self, code: str) -> HumanUser:
        """The person with the address that the link proves. Raises LinkUsed."""
        used, content = self._links.use(CodeKind.EMAIL_CHANGE, code)
        before = self.get(self._owner(used).user.id)
        profile = replace(before.profile, email=content["email"], email_verified=True)
        after: HumanUser = self._next(before, "user", None, profile=profile)
        with told("user", before.id):
            self._storage.users.update(after)
        self._drop_links(before.id)
        self._record_changed("email.verified", "user", before, after, before.organization_id)
        return after

    def connections(self, user_id: str) -> tuple[Connection, ...]:
        """What applications hold of the person, last used first."""
        return self._storage.tokens.connections_of_user(user_id, self._now)

    def disconnect(self, subject: Subject, client_id: str) -> None:
        """Take from an application all that it holds of the person. Raises NotFound if it holds nothing."""
        if not self._storage.tokens.revoke_of_client(subject.user.id, client_id, self._now):
            raise NotFound("application", client_id)
        self._audit.record(
            "application.disconnected",
            kind="application",
            id=client_id,
            organization_id=subject.organization.id,
            detail={"user_id": subject.user.id},
        )

    def _drop_links(self, user_id: str) -> None:
        """What was mailed to an address that is no longer the person's, or leads to one, stops working."""
        for kind in (CodeKind.EMAIL_CHANGE, CodeKind.PASSWORD_RESET):
            self._links.drop(kind, user_id)

    def _owner(self, code: OneTimeCode) -> Subject:
        subject = None if code.user_id is None else self._storage.users.find_subject(code.user_id)
        if subject is None or not subject.active or not isinstance(subject.user, HumanUser):
            raise LinkUsed
        return subject

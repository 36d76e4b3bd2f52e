"""Human users."""

from identity.crypto.passwords import hash_password
from identity.crypto.secrets import new_id, new_password
from identity.domain.errors import NotFound
from identity.domain.users import HumanUser, PasswordHash, Profile
from identity.services.changes import UseCases, told
from identity.services.commands.users import CreateHumanUser

_TAKEN = {"user_name": "The organization has a user of this name. Choose another."}


class Users(UseCases):
    """People's accounts."""

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

    def set_one_time_password(self, user_id: str) -> str:
        """A new password, to be told once and changed at the first login; older ones stop working.

        Raises NotFound.
        """
        user = self.get(user_id)
        password = new_password()
        with told("user", user_id):
            self._storage.passwords.set(
                PasswordHash(user_id=user_id, hash=hash_password(password), changed_at=self._now, must_change=True)
            )
        self._audit.record("password.set", kind="user", id=user_id, organization_id=user.organization_id)
        return password

    def recover(self, user_id: str) -> str:
        """Let a locked-out person back in: reactivated, all tokens ended; returns a new one-time password.

        Raises NotFound.
        """
        before = self.get(user_id)
        if not before.active:
            after: HumanUser = self._next(before, "user", None, active=True)
            with told("user", user_id):
                self._storage.users.update(after)
        self._storage.tokens.revoke_of_user(user_id, self._now)
        self._audit.record("user.recovered", kind="user", id=user_id, organization_id=before.organization_id)
        return self.set_one_time_password(user_id)

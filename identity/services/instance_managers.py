"""Users with a manager role at the instance, whom organizations do not control."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from identity.domain.permissions import INSTANCE_KEY
from identity.domain.users import EmailVerifier, HumanUser
from identity.services.base import Service
from identity.storage.paging import iterate_rows


@dataclass(eq=False, repr=False)
class InstanceManagerService(Service):
    """Users with any role at the instance. Ask only if the answer matters: ``PolicyService.subject_policy`` does so if
    the organization's rules differ from the instance's. Answers are cached for the transaction."""

    _known: dict[str, bool] = field(default_factory=dict, init=False)

    def is_instance_manager(self, user_id: str) -> bool:
        if user_id not in self._known:
            with self._look() as storage:
                managers = storage.managers.list_effective(user_id, self._now)
            self._known[user_id] = any(manager.resource == INSTANCE_KEY for manager in managers)
        return self._known[user_id]

    def list_ids(self) -> frozenset[str]:
        with self._look() as storage:
            return frozenset(
                manager.user_id
                for manager in iterate_rows(lambda request: storage.managers.page(INSTANCE_KEY, request))
                if not manager.has_ended(self._now)
            )

    def prefetch(self, user_ids: Iterable[str]) -> None:
        """Read the roles of all these users at once, for the calls that follow."""
        every = self.list_ids()
        self._known |= {user_id: user_id in every for user_id in user_ids}

    def is_address_trusted(self, user: HumanUser) -> bool:
        """False if the user has a role at the instance and managers of their organization could have set the address.
        Mails that open an account go only to a mailbox that the user has proved, or that was verified before proofs
        were stored."""
        email_verifier = user.email_verified_by
        proven = email_verifier is not None and (
            email_verifier.is_globally_trusted or email_verifier is EmailVerifier.EARLIER
        )
        return proven or not self.is_instance_manager(user.id)

    def invalidate(self, user_id: str) -> None:
        """Forget the cached answer: the user's roles have changed."""
        self._known.pop(user_id, None)

"""Holders: people and programs with a manager role at the instance, over whom no organization decides."""

from collections.abc import Iterable

from identity.domain.permissions import INSTANCE_KEY
from identity.domain.users import EmailVerifier, HumanUser
from identity.services.base import Service, TransactionState
from identity.storage.paging import iterate_rows


class InstanceManagerService(Service):
    """Users with any role at the instance.

    Ask only where the answer matters: ``PolicyService.subject_policy`` does so if the organization's rules differ from
    the instance's. An answer is kept for the transaction.
    """

    def __init__(self, state: TransactionState) -> None:
        super().__init__(state)
        self._known: dict[str, bool] = {}

    def is_instance_manager(self, user_id: str) -> bool:
        """True if the user has a role at the instance."""
        if user_id not in self._known:
            with self._look() as storage:
                managers = storage.managers.list_for_user(user_id)
            self._known[user_id] = any(manager.resource == INSTANCE_KEY for manager in managers)
        return self._known[user_id]

    def list_ids(self) -> frozenset[str]:
        """The ids of all of them."""
        with self._look() as storage:
            return frozenset(
                manager.user_id
                for manager in iterate_rows(lambda request: storage.managers.page(INSTANCE_KEY, request))
            )

    def prefetch(self, user_ids: Iterable[str]) -> None:
        """Look once for all of these users, about each of whom is asked next."""
        every = self.list_ids()
        self._known |= {user_id: user_id in every for user_id in user_ids}

    def is_address_trusted(self, user: HumanUser) -> bool:
        """True unless the user has a role at the instance and managers of their organization could have brought about
        the address: what opens an account is mailed to whoever proved the mailbox, or had it verified before that was
        stored."""
        email_verifier = user.email_verified_by
        proven = email_verifier is not None and (
            email_verifier.is_globally_trusted or email_verifier is EmailVerifier.EARLIER
        )
        return proven or not self.is_instance_manager(user.id)

    def invalidate(self, user_id: str) -> None:
        """Look again: the user's roles have changed."""
        self._known.pop(user_id, None)

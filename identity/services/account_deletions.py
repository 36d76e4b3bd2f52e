"""Account deletion on the user's own request, with two weeks to cancel it."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.domain.errors import Conflict, Denied
from identity.domain.messages import gettext_lazy
from identity.domain.users import HumanUser, Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.base import translate_storage_errors
from identity.services.crud import EntityService
from identity.services.legal_holds import LegalHoldService
from identity.services.managers import refuse_last_owner
from identity.services.policies import PolicyService
from identity.services.sessions import SessionService
from identity.services.users import UserService

log = logging.getLogger(__name__)

#: How long a user can cancel the deletion.
DELETION_DELAY = timedelta(days=14)

#: How long to wait before checking an account under a legal hold again.
_HELD_FOR = timedelta(days=1)

_AT_ONCE = 100


@dataclass(eq=False, repr=False)
class AccountDeletionService(EntityService[HumanUser]):
    """Until the deletion is due the account is unchanged, but the user is signed out. At the next sign-in they are
    first asked whether to keep the account."""

    kind = "user"
    store = "users"

    _access: AccessControl
    _legal_holds: LegalHoldService
    _policies: PolicyService
    _sessions: SessionService
    _users: UserService

    def is_allowed(self, subject: Subject) -> bool:
        """True if the policy lets users of the organization delete their accounts."""
        return bool(self._policies.subject_policy(subject).account_deletion)

    def schedule(self, subject: Subject) -> datetime:
        """Schedule the deletion, end all sessions and revoke access; returns when the account is deleted. Raises Denied
        if the policy does not allow it, Conflict for the last owner and under a legal hold, NotFound."""
        if not self.is_allowed(subject):
            raise Denied(gettext_lazy("People of this organization cannot delete their accounts."))
        before = self._users.get(subject.user.id)
        self._refuse_last_owner(before)
        self._legal_holds.refuse_user_removal(before)
        at = before.deletion_at or self._now + DELETION_DELAY
        self._update("user.deletion_asked", before, self._next_version(before, deletion_at=at))
        self._sessions.revoke_access(subject)
        return at

    def cancel_own(self, subject: Subject) -> None:
        """Keep the account, on request of its authenticated user. Raises NotFound, Conflict."""
        before = self._users.get(subject.user.id)
        with self._audit.acting_as(before.id):
            self._update("user.deletion_withdrawn", before, self._next_version(before, deletion_at=None))

    def cancel(self, user_id: str, *, principal: Principal) -> HumanUser:
        """Keep the account, on request of a manager. Raises NotFound, Conflict; Denied if the user has more rights."""
        before = self._users.get(user_id)
        self._access.require_not_more_privileged(principal, before)
        return self._update("user.deletion_withdrawn", before, self._next_version(before, deletion_at=None))

    def list_due(self) -> tuple[str, ...]:
        """The ids of the next batch of users whose deletion is due."""
        return self._storage.users.list_due_deletions(self._now, _AT_ONCE)

    def delete_account(self, user_id: str) -> bool:
        """Delete the account. False if it must stay because its user has become the last owner; the deletion is
        cancelled. Under a legal hold it is postponed by a day. Raises NotFound; Conflict if the user cancels at the
        same moment."""
        before = self._users.get(user_id)
        if before.deletion_at is None or before.deletion_at > self._now:
            return False
        if self._legal_holds.list_holds_on_user(before):
            with translate_storage_errors("user", user_id):
                self._store.update(self._next_version(before, deletion_at=self._now + _HELD_FOR))
            return False
        try:
            self._refuse_last_owner(before)
        except Conflict:
            log.warning("the account of the last owner is kept, which was to be deleted")
            self._update("user.deletion_withdrawn", before, self._next_version(before, deletion_at=None))
            return False
        # Written first, so that deletion and cancellation cannot both succeed.
        with translate_storage_errors("user", user_id):
            self._store.update(self._next_version(before))
        self._users.remove(user_id, principal=Principal.OPERATOR)
        return True

    def _refuse_last_owner(self, user: HumanUser) -> None:
        refuse_last_owner(self._storage, lambda owner: owner.user_id == user.id)

"""The interaction of a sign-in to an account that is scheduled for deletion."""

from identity.api.endpoints import Context
from identity.api.entities import HumanUser
from identity.api.sign_in import Interaction, SignIn


class CancelAccountDeletion(Interaction):
    """The user has requested the deletion of the account: signing in requires to cancel it."""

    name = "keep_account"
    error_description = "The user has to act on a page: their account is to be deleted."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the deletion is cancelled; authentication comes first."""
        subject = sign_in.subject
        leaving = subject is not None and isinstance(subject.user, HumanUser) and subject.user.deletion_at is not None
        return leaving and sign_in.step_up_requirement is None

    def path(self, sign_in: SignIn) -> str:
        return "keep"

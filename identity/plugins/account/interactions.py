"""What is asked in a sign-in to an account that is to be deleted."""

from identity.domain.users import HumanUser
from identity.provider.context import Context
from identity.provider.interaction import Interaction, SignIn


class CancelAccountDeletion(Interaction):
    """The person has asked for their account to be deleted: nobody is signed in to it until it is to stay."""

    name = "keep_account"
    error_description = "The user has to act on a page: their account is to be deleted."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they keep it; whatever else proves who they are comes first."""
        subject = sign_in.subject
        leaving = subject is not None and isinstance(subject.user, HumanUser) and subject.user.deletion_at is not None
        return leaving and sign_in.step_up_requirement is None

    def path(self, sign_in: SignIn) -> str:
        """The question."""
        return "keep"

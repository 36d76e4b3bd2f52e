"""An interaction: after the password, a page asks for the code of the door."""

from identity.api.endpoints import Context
from identity.api.sign_in import Interaction, SignIn

#: The interaction's name, and where its page lies below ``/login/{request}``.
NAME = "door"


class DoorPinInteraction(Interaction):
    """A second factor after the password."""

    name = NAME
    error_description = "The user has to act on a page: to enter the code of the door."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the person has entered the code in this sign-in."""
        return sign_in.authenticated_subject is not None and not sign_in.has_completed(NAME)

    def path(self, sign_in: SignIn) -> str:
        """Where the page lies below ``/login/{request}``."""
        return NAME

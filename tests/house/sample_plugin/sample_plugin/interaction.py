"""An interaction: a page after the password asks for the code of the door."""

from identity.api.endpoints import Context
from identity.api.sign_in import Interaction, SignIn

#: The name of the interaction, and the path of its page below ``/login/{request}``.
NAME = "door"


class DoorPinInteraction(Interaction):
    """A second factor after the password."""

    name = NAME
    error_description = "The user has to act on a page: to enter the code of the door."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the user has entered the code in this sign-in."""
        return sign_in.authenticated_subject is not None and not sign_in.has_completed(NAME)

    def path(self, sign_in: SignIn) -> str:
        """The path of the page below ``/login/{request}``."""
        return NAME

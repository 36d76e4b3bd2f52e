"""Changes to human users."""

from identity.services.commands import Command
from identity.services.commands.fields import Name, UserName


class CreateHumanUser(Command):
    """Create a person's account; it gets a one-time password."""

    user_name: UserName
    given_name: Name
    family_name: Name
    email: str = ""

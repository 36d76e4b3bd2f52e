"""Connections of a user: the end of what one application holds of the person."""

from collections.abc import Sequence

from identity.domain.tokens import Connection
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import found_or_missing, matched
from identity.plugins.console.pages.users import ONE, OfUser
from identity.plugins.console.places import Place


class EndConnection(OfUser, ConfirmPage):
    """Asks before the application loses its access, and what the person agreed to is forgotten."""

    fields = ()
    danger = False

    @property
    def connection(self) -> Connection:
        """Which one. Raises NotFound."""
        wanted = matched(self, "application")
        held = self.services.users.connections(self.user.id)
        found: Connection = found_or_missing(
            next((one for one in held if one.client.id == wanted), None), "application", wanted
        )
        return found

    def question(self) -> str:
        """With both names."""
        application = self.connection.client.application.name
        return say("Disconnect {application} from {name}?", application=application, name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """What ends."""
        return [say("It loses access to the account at once, and has to ask the person again.")]

    def label(self) -> str:
        """The button."""
        return say("Disconnect application")

    def back(self) -> str:
        """The section."""
        return f"{self.href}#connections"

    def act(self) -> str:
        """Do it."""
        self.services.users.end_connection(self.user.id, self.connection.client.id, by=self.principal)
        return self.back()


PLACES = (Place(f"{ONE}/connections/{{application}}/delete", EndConnection, "session.delete", targets.user),)

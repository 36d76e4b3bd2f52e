"""OfOrganization: pages about one organization."""

from collections.abc import Sequence

from identity.domain.organizations import Organization
from identity.domain.words import say
from identity.plugins.console.console_page import CONSOLE, ConsolePage

#: The address of the list.
ORGANIZATIONS = f"{CONSOLE}/organizations"


class OfOrganization(ConsolePage):
    """A page about one organization, which its navigation calls just that."""

    section = ""

    @property
    def one(self) -> Organization:
        """Which one."""
        organization: Organization = self.context.value
        return organization

    @property
    def href(self) -> str:
        """The address of its page."""
        return f"{ORGANIZATIONS}/{self.one.id}"

    def trail(self) -> Sequence[tuple[str, str]]:
        """List and, below it, the organization."""
        return [(say("Organizations"), ORGANIZATIONS), (self.one.name, self.href)]

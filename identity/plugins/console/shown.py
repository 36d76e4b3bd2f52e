"""How users are shown to whoever looks: by name where they may be known, else by where they belong."""

from dataclasses import dataclass

from identity.domain.permissions import organization_resource
from identity.domain.users import ServiceUser, Subject
from identity.plugins.console.console_page import CONSOLE, ConsolePage


@dataclass(frozen=True)
class Shown:
    """A user as whoever looks may see it; ``href`` is empty for whoever may not read that user."""

    name: str
    sub: str
    href: str


def shown_user(page: ConsolePage, subject: Subject) -> Shown:
    """Name and login name; of an organization that one does not see, no more than where and the id."""
    if not page.services.access.sees(page.principal, subject.organization.id):
        where = subject.organization.name
        return Shown(page.words.t("A user of {organization}", organization=where), subject.user.id, "")
    return Shown(subject.user.display_name, subject.login_name, readable_href(page, subject))


def user_href(subject: Subject) -> str:
    """The address of a user's page."""
    kind = "service-users" if isinstance(subject.user, ServiceUser) else "users"
    return f"{CONSOLE}/{kind}/{subject.user.id}"


def readable_href(page: ConsolePage, subject: Subject) -> str:
    """The same; empty for whoever may not read that user."""
    permission = "service_user.read" if isinstance(subject.user, ServiceUser) else "user.read"
    reads = page.services.access.may(page.principal, permission, organization_resource(subject.organization.id))
    return user_href(subject) if reads else ""

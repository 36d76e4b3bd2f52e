"""How users are shown to whoever looks: by name where they may be known, else by where they belong."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from identity.domain.permissions import organization_resource
from identity.domain.users import ServiceUser, Subject
from identity.pages.wrapping import breakable
from identity.plugins.console.badges import Named
from identity.plugins.console.console_page import CONSOLE, ConsolePage


class OfAUser(Protocol):
    """Something that a user holds."""

    @property
    def user_id(self) -> str:
        """Who."""


def shown_user(page: ConsolePage, subject: Subject) -> Named:
    """Name and login name; of an organization that one does not see, no more than where and the id."""
    if not page.services.access.sees(page.principal, subject.organization.id):
        where = subject.organization.name
        return Named(page.words.t("A user of {organization}", organization=where), sub=subject.user.id)
    return Named(subject.user.display_name, readable_href(page, subject), breakable(subject.login_name))


def shown_users(page: ConsolePage, held: Iterable[OfAUser]) -> Mapping[str, Named]:
    """The same for the users of all these, by id."""
    subjects = page.services.storage.users.find_subjects({one.user_id for one in held})
    return {user_id: shown_user(page, subject) for user_id, subject in subjects.items()}


def readable_href(page: ConsolePage, subject: Subject) -> str:
    """The address of a user's page; empty for whoever may not read that user."""
    kind = "service_user" if isinstance(subject.user, ServiceUser) else "user"
    reads = page.services.access.may(page.principal, f"{kind}.read", organization_resource(subject.organization.id))
    return f"{CONSOLE}/{kind.replace('_', '-')}s/{subject.user.id}" if reads else ""

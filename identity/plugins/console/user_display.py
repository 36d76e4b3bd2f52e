"""Display of users: by name if the caller may see them, else by organization."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from identity.domain.permissions import Resource
from identity.domain.users import ServiceUser, Subject
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage


class HasUserId(Protocol):
    @property
    def user_id(self) -> str:
        pass


def display_user(page: ConsolePage, subject: Subject) -> EntityLink:
    """Name and login name; only organization and id for users whom the caller may not see."""
    if not page.services.access_control.can_see_organization(page.principal, subject.organization.id):
        where = subject.organization.name
        return EntityLink(
            page.translator.gettext("A user of {organization}", organization=where), secondary_text=subject.user.id
        )
    return EntityLink(subject.user.display_name, user_path(page, subject), with_line_breaks(subject.login_name))


def display_users(page: ConsolePage, has_user_ids: Iterable[HasUserId]) -> Mapping[str, EntityLink]:
    """Links by user id, loaded in bulk."""
    subjects = page.services.storage.users.find_subjects({has_user_id.user_id for has_user_id in has_user_ids})
    return {user_id: display_user(page, subject) for user_id, subject in subjects.items()}


def user_path(page: ConsolePage, subject: Subject) -> str:
    """Empty if the caller may not read the user."""
    kind = "service_user" if isinstance(subject.user, ServiceUser) else "user"
    reads = page.services.access_control.is_permitted(
        page.principal, f"{kind}.read", Resource.of_organization(subject.organization.id)
    )
    return f"{CONSOLE_PATH}/{kind.replace('_', '-')}s/{subject.user.id}" if reads else ""

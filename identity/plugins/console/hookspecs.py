"""Hooks of the console, for plugins with console pages."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from identity.domain.organizations import Organization
    from identity.domain.users import HumanUser
    from identity.pages.layout import NavigationItem
    from identity.plugins.console.user_sections import UserSection
    from identity.services.access_control import Principal

hookspec = pluggy.HookspecMarker("identity")


@hookspec
def console_navigation(principal: "Principal", organization: "Organization | None") -> "Iterable[NavigationItem]":  # type: ignore[empty-body]
    """Add links to the console's navigation.

    Called for each rendered page. ``principal`` is the caller, ``organization`` the one that the page is about, or
    None. Returns ``identity.pages.layout.NavigationItem`` values with labels made with ``gettext_lazy``, and URLs on
    the login host; they follow the console's own links. An exception is logged, and the plugin's links are left out.

    Example::

        @hookimpl
        def console_navigation(self, principal, organization):
            return [NavigationItem(label="Billing", href="/billing", icon="project")]
    """


@hookspec
def console_user_sections(principal: "Principal", user: "HumanUser") -> "Iterable[UserSection]":  # type: ignore[empty-body]
    """Add sections to the page of a user, such as the enrolled second factors.

    Called for each rendered page of a user. ``principal`` is the caller, who may read the user; ``user`` is the
    page's user. Returns ``identity.plugins.console.user_sections.UserSection`` values with translated texts and URLs
    on the login host. An exception is logged, and the plugin's sections are left out.

    Example::

        @hookimpl
        def console_user_sections(self, principal, user):
            return [UserSection(id="codes", title="One-time codes", empty="None set up.", rows=self.rows(user.id))]
    """


@hookspec
def console_header_links(entity: object) -> "Iterable[tuple[str, str]]":  # type: ignore[empty-body]
    """Add buttons beside the heading of an entity's page, for callers who may change the entity.

    Called for each rendered page of an entity. ``entity`` is the organization, project, application or other entity
    of the page. Returns pairs: a label, made with ``gettext_lazy``, and the URL of a page on the login host. An
    exception is logged, and the plugin's buttons are left out.

    Example::

        @hookimpl
        def console_header_links(self, entity):
            return [(gettext_lazy("Print a badge"), f"/badges/{entity.id}")] if isinstance(entity, HumanUser) else ()
    """

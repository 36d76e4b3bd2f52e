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

    Called for each page that is drawn. ``principal`` is who looks, ``organization`` the one that the page is about.
    Returns ``identity.pages.layout.NavigationItem`` values with labels that are translated already and addresses on the
    login host; they stand below those of the console itself. An exception leaves this plugin's links out and is logged.

    Example::

        @hookimpl
        def console_navigation(self, principal, organization):
            return [NavigationItem(label="Billing", href="/billing", icon="project")]
    """


@hookspec
def console_user_sections(principal: "Principal", user: "HumanUser") -> "Iterable[UserSection]":  # type: ignore[empty-body]
    """Add sections to the page of a user, such as the second factors that a person has set up.

    Called for each such page that is drawn. ``principal`` is who looks, and may read the user; ``user`` is the person.
    Returns ``identity.plugins.console.user_sections.UserSection`` values with words that are translated already and
    addresses on the login host. An exception leaves this plugin's sections out and is logged.

    Example::

        @hookimpl
        def console_user_sections(self, principal, user):
            return [UserSection(id="codes", title="One-time codes", empty="None set up.", rows=self.rows(user.id))]
    """


@hookspec
def console_header_links(entity: object) -> "Iterable[tuple[str, str]]":  # type: ignore[empty-body]
    """Add buttons to the page of a thing, beside its heading, for whoever may change it.

    Called for each such page that is drawn. ``entity`` is the organization, project, application or whatever the page
    is about. Returns words, made with ``gettext_lazy``, and the address on the login host of a page. An exception
    leaves this plugin's buttons out and is logged.

    Example::

        @hookimpl
        def console_header_links(self, entity):
            return [(gettext_lazy("Print a badge"), f"/badges/{entity.id}")] if isinstance(entity, HumanUser) else ()
    """

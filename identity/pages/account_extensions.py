"""What plugins add to the account: sections of the security page, markup for scripts, members of the data export."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.request import Request

from identity.domain.users import Subject
from identity.pages.layout import NavigationItem
from identity.pages.signed_in_page import SignedInPage


@dataclass(frozen=True, kw_only=True)
class SecuritySectionRow:
    """A row of a section: a name, its description, and links to its actions."""

    name: str
    notes: tuple[str | Markup, ...] = ()
    actions: tuple[NavigationItem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SecuritySection:
    """Translated texts and rows. ``id`` is the fragment that links use; ``empty`` is shown if there are no rows."""

    id: str
    title: str
    lead: str = ""
    empty: str = ""
    rows: tuple[SecuritySectionRow, ...] = ()
    action: NavigationItem | None = None


#: Returns sections of the security page for the page being rendered.
SecuritySectionProvider = Callable[[SignedInPage], Iterable[SecuritySection]]
#: Returns invisible markup, such as data for a script, for the page being rendered.
AccountFragmentProvider = Callable[[SignedInPage], Iterable[Markup]]
#: Returns the data that a plugin stores about a user, as plain JSON values without secrets.
AccountDataProvider = Callable[[Request, Subject], object]


def add_security_section(config: Configurator, provider: SecuritySectionProvider) -> None:
    """Directive: add sections to the account's security page, below the sign-in methods."""
    config.registry.pages.security_sections.append(provider)


def add_account_fragment(config: Configurator, provider: AccountFragmentProvider) -> None:
    """Directive: add invisible markup to the account's security page and profile."""
    config.registry.pages.account_fragments.append(provider)


def add_account_data(config: Configurator, name: str, provider: AccountDataProvider) -> None:
    """Directive: add a member to the document of the account's data export."""
    config.registry.pages.account_data[name] = provider


def includeme(config: Configurator) -> None:
    config.add_directive("add_security_section", add_security_section)
    config.add_directive("add_account_fragment", add_account_fragment)
    config.add_directive("add_account_data", add_account_data)

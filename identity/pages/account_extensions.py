"""What plugins add to the account: sections of its security page, and their part of the data that people take along."""

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
    """A line of a section: a name, what is known of it, and links to what can be done with it."""

    name: str
    notes: tuple[str | Markup, ...] = ()
    actions: tuple[NavigationItem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SecuritySection:
    """Translated words and rows. ``id`` is what addresses link to; ``empty`` is said where there is no row."""

    id: str
    title: str
    lead: str = ""
    empty: str = ""
    rows: tuple[SecuritySectionRow, ...] = ()
    action: NavigationItem | None = None


#: Makes sections of the security page, for the page that is drawn.
SecuritySectionProvider = Callable[[SignedInPage], Iterable[SecuritySection]]
#: Tells what a plugin keeps of a person, as plain values of JSON without secrets.
AccountDataProvider = Callable[[Request, Subject], object]


def add_security_section(config: Configurator, provider: SecuritySectionProvider) -> None:
    """Directive for plugins: sections of the security page in the account, below those of sign-in methods."""
    config.registry.pages.security_sections.append(provider)


def add_account_data(config: Configurator, name: str, provider: AccountDataProvider) -> None:
    """Directive for plugins: a member of the document in which people get all that is kept of them."""
    config.registry.pages.account_data[name] = provider


def includeme(config: Configurator) -> None:
    """Make the directives known."""
    config.add_directive("add_security_section", add_security_section)
    config.add_directive("add_account_data", add_account_data)

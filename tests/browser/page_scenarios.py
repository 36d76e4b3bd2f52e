"""Scenarios (a browser and its users) and the registry of pages under test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from identity.domain.messages import LANGUAGES
from identity.domain.organizations import Organization
from identity.services.commands.organizations import ChangeOrganization
from identity.testing.relying_party import RelyingParty
from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import CompanyUser, ExampleCompany
from tests.browser.tab import Tab

#: The longest allowed names: of many words, and of one word.
LONG = ("Donaudampfschifffahrtsgesellschaftskapitän Maria-Theresia von und zu der langen Straße " * 4)[:199] + "n"
LONG_WORD = ("Rechtsschutzversicherungsgesellschaften" * 6)[:200]

_NUMBERS = count(1)

NEW = "an entirely new one"


@dataclass
class BrowserScenario:
    """A browser with the users and the application of one scenario; ``long`` uses the longest names."""

    site: ExampleCompany
    profile: ChromiumProfile
    tab: Tab
    long: bool = False
    #: For scenarios that need another profile.
    make_profile: MakeProfile = field(default=lambda **_: None)  # type: ignore[assignment, return-value]

    @cached_property
    def organization(self) -> Organization:
        """The organization of users and application."""
        if not self.long:
            return self.site.organization
        organization = self.site.world.make_organization()
        with self.site.world.transaction_services() as services:
            return services.organizations.change(organization.id, ChangeOrganization(name=LONG))

    @cached_property
    def party(self) -> RelyingParty:
        """The application that requests sign-in."""
        return self.site.make_application(LONG_WORD, self.organization) if self.long else self.site.party

    @cached_property
    def person(self) -> CompanyUser:
        """The user who signs in."""
        return self.make_user()

    def make_user(self, given_name: str = "Anna", family_name: str = "Berg", **options: object) -> CompanyUser:
        """Create a user of the organization."""
        if not self.long:
            return self.site.make_user(given_name, family_name, **options)  # type: ignore[arg-type]
        options = {"organization": self.organization, "user_name": f"{LONG_WORD[:190]}{next(_NUMBERS)}"} | options
        return self.site.make_user(LONG, LONG_WORD, **options)  # type: ignore[arg-type]

    def ask(self, **parameters: object) -> None:
        """Open an authorization request."""
        self.site.ask(self.tab, self.party, **parameters)

    def ask_with_name(self, **parameters: object) -> None:
        """Open an authorization request and submit the login name."""
        self.ask(**parameters)
        self.tab.send(login_name=self.person.login_name)

    def sign_in(self) -> None:
        """Create a session of the user."""
        self.site.start_session(self.profile, self.person)

    def open(self, path: str) -> None:
        """Open a path of the service."""
        self.tab.open(self.site.url + path)


Walk = Callable[[BrowserScenario], None]


@dataclass(frozen=True)
class PageUnderTest:
    """A page and the function that opens it.

    ``path`` is its path, with any text in place of variables; ``status`` is its response status.
    ``mailing``: needs a service with mail. ``names``: shows names, which may be long. ``main``: screenshots are taken
    of every variant. ``chinese``: represents its layout in Chinese. ``languages``: those besides English in which it
    is checked.
    """

    name: str
    walk: Walk
    path: str
    mailing: bool = False
    names: bool = False
    main: bool = False
    status: int = 200
    chinese: bool = False
    script: bool = True
    languages: tuple[str, ...] = LANGUAGES[1:]


PAGES: dict[str, PageUnderTest] = {}


def page(path: str, /, **options: bool | int) -> Callable[[Walk], Walk]:
    """Register the function as the one that opens the page of its name."""

    def keep(walk: Walk) -> Walk:
        name = walk.__name__.replace("_", "-")
        PAGES[name] = PageUnderTest(name, walk, path, **options)  # type: ignore[arg-type]
        return walk

    return keep

"""Scene and Page: a browser and the people of one test, and the ways to pages. Each file of pages says its own."""

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

#: The longest names that the service takes: many words, and one word.
LONG = ("Donaudampfschifffahrtsgesellschaftskapitän Maria-Theresia von und zu der langen Straße " * 4)[:199] + "n"
LONG_WORD = ("Rechtsschutzversicherungsgesellschaften" * 6)[:200]

_NUMBERS = count(1)

NEW = "an entirely new one"


@dataclass
class BrowserScenario:
    """A browser, and the people and the application of this scene, some of them with the longest names there are."""

    site: ExampleCompany
    profile: ChromiumProfile
    tab: Tab
    long: bool = False
    #: Where an interaction with the first tab needs others.
    make_profile: MakeProfile = field(default=lambda **_: None)  # type: ignore[assignment, return-value]

    @cached_property
    def organization(self) -> Organization:
        """The organization of people and application."""
        if not self.long:
            return self.site.organization
        organization = self.site.world.make_organization()
        with self.site.world.transaction_services() as services:
            return services.organizations.change(organization.id, ChangeOrganization(name=LONG))

    @cached_property
    def party(self) -> RelyingParty:
        """The application that asks."""
        return self.site.make_application(LONG_WORD, self.organization) if self.long else self.site.party

    @cached_property
    def person(self) -> CompanyUser:
        """Whose sign-in it is."""
        return self.make_user()

    def make_user(self, given_name: str = "Anna", family_name: str = "Berg", **options: object) -> CompanyUser:
        """Somebody of the organization."""
        if not self.long:
            return self.site.make_user(given_name, family_name, **options)  # type: ignore[arg-type]
        options = {"organization": self.organization, "user_name": f"{LONG_WORD[:190]}{next(_NUMBERS)}"} | options
        return self.site.make_user(LONG, LONG_WORD, **options)  # type: ignore[arg-type]

    def ask(self, **parameters: object) -> None:
        """Open an authorization request."""
        self.site.ask(self.tab, self.party, **parameters)

    def ask_with_name(self, **parameters: object) -> None:
        """Up to the page for the password."""
        self.ask(**parameters)
        self.tab.send(login_name=self.person.login_name)

    def sign_in(self) -> None:
        """Have the person signed in."""
        self.site.start_session(self.profile, self.person)

    def open(self, path: str) -> None:
        """Open one of our addresses."""
        self.tab.open(self.site.url + path)


Walk = Callable[[BrowserScenario], None]


@dataclass(frozen=True)
class PageUnderTest:
    """The way to a page.

    ``path`` is where it leads, with anything in the place of what differs; ``status`` is what comes with it.
    ``mailing``: of a service with mail. ``names``: it shows names, which may be long. ``main``: pictures are taken of
    every variant of it. ``chinese``: of its frame the one that is looked at in Chinese. ``languages``: those besides
    English in which it is checked.
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
    """Keeps the function as the way to the page of its name."""

    def keep(walk: Walk) -> Walk:
        name = walk.__name__.replace("_", "-")
        PAGES[name] = PageUnderTest(name, walk, path, **options)  # type: ignore[arg-type]
        return walk

    return keep

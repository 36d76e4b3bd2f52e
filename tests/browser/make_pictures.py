"""Screenshots for README and documentation: ``make pictures``. Needs Chromium."""

import base64
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from identity.domain.figures import FigureKey, FigureKind, utc_day
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.fixtures import DatabaseFactory
from tests.browser.chromium import Chromium
from tests.browser.console_fixture_data import CALLBACK, ConsoleFixtureData, estate
from tests.browser.console_pages import (
    APPLICATION,
    GROUP,
    ORGANIZATION,
    PROJECT,
    SERVICE_USER,
    USER,
    WEBHOOK,
)
from tests.browser.example_company import ExampleCompany, acme
from tests.browser.tab import Tab

STATIC = Path(__file__).parents[2] / "docs" / "_static"
TOUR = STATIC / "tour"
#: In CSS pixels.
SIZE = (1280, 820)
#: The pictures of docs/how-to/administrators/tour.rst, by the path below /console; ``{e}`` is the fixture data. A
#: fragment is the heading to scroll to.
TOUR_PAGES = {
    "overview": f"{ORGANIZATION}/overview",
    "search": "/search?q=gra",
    "users": f"{ORGANIZATION}/users",
    "user": USER,
    "user-access": f"{USER}/access",
    "user-token": f"{USER}/access?application_id={{e.application_id}}&scope=openid+profile#What a token would say",
    "user-security": f"{USER}/security",
    "user-activity": f"{USER}/activity",
    "user-import": f"{ORGANIZATION}/users/import/{{e.ids[import]}}",
    "impersonate": f"{USER}/impersonate",
    "group": GROUP,
    "service-user-connect": f"{SERVICE_USER}/connect",
    "application-connect": f"{APPLICATION}/connect",
    "application-try-it": (
        f"{APPLICATION}/try-it?user_id={{e.person.id}}&request=response_type%3Dcode%26scope%3Dopenid#Request"
    ),
    "application-log": f"{APPLICATION}/log",
    "project-grants": f"{PROJECT}/grants",
    "provider-new": f"{ORGANIZATION}/upstream-providers/new?kind=entra",
    "policy": f"{ORGANIZATION}/policy",
    "webhook": WEBHOOK,
    "audit-events": f"{ORGANIZATION}/audit-events",
}


def main() -> None:
    """Write a picture of the sign-in page, one of a project in the console, and those of the tour."""
    with TemporaryDirectory() as folder:
        keys = RsaKeyPool()
        settings = DatabaseFactory(Path(folder), keys, None, {}).new_database_settings("memory")  # type: ignore[arg-type]
        chromium = Chromium(Path(folder) / "chromium")
        try:
            with acme(settings, keys) as site:
                company = estate(site, long=False)
                _name_domain(site, company)
                _count_a_month(site, company)
                profile = chromium.profile()
                tab = profile.tab()
                tab.command("Emulation.setScrollbarsHidden", hidden=True)
                tab.size(*SIZE, zoom=2)
                tab.look()
                site.ask(tab)
                _write(STATIC / "sign-in.png", tab)
                site.start_session(profile, company.manager)
                tab.open(f"{site.world.issuer}/console/projects/{company.project.id}")
                _write(STATIC / "console.png", tab)
                _request_authorization(site, company)
                tab.size(*SIZE)
                for name, path in TOUR_PAGES.items():
                    path, _, heading = path.partition("#")
                    tab.open(f"{site.world.issuer}/console{path.format(e=company)}")
                    tab.run(_SCROLL, heading)
                    _write(TOUR / f"{name}.webp", tab)
                profile.close()
        finally:
            chromium.close()


_SCROLL = """
const heading = [...document.querySelectorAll("main h2, main h3")].find((one) => one.innerText === arguments[0]);
if (heading) window.scrollBy(0, heading.getBoundingClientRect().top - 24);
"""


def _name_domain(site: ExampleCompany, company: ConsoleFixtureData) -> None:
    """The primary domain is a part of login names."""
    with site.world.transaction_services() as services:
        command = ChangeOrganization(primary_domain="northwind.example")
        services.organizations.change(company.organization.id, command, principal=Principal.OPERATOR)


def _request_authorization(site: ExampleCompany, company: ConsoleFixtureData) -> None:
    """For the log of the application: requests with and without mistakes."""
    browser = site.world.make_browser_session()
    browser.authorize(company.application_id, redirect_uri="https://invoices.example/")
    browser.authorize(company.application_id, redirect_uri=CALLBACK, code_challenge=None)
    for _ in range(4):
        browser.authorize(company.application_id, redirect_uri=CALLBACK)
    site.world.identity.background_jobs.flush_activity()


def _count_a_month(site: ExampleCompany, company: ConsoleFixtureData) -> None:
    """Figures of a company that grows a little and rests at weekends."""
    organization_id, application_id, robot_id = company.organization.id, company.application_id, company.robot.id
    today = utc_day(site.world.clock())
    with site.world.transaction_services() as services:
        for age in range(30):
            day = today - timedelta(days=age)
            weekend, drift = day.weekday() >= 5, (day.toordinal() * 7919) % 11
            counts = {
                (FigureKind.SIGN_INS, ""): (12 if weekend else 58) + drift - age // 3,
                (FigureKind.REFUSED_SIGN_INS, ""): drift // 3,
                (FigureKind.NEW_PEOPLE, ""): 0 if weekend else drift % 3,
                (FigureKind.TOKENS, application_id): (30 if weekend else 140) + 5 * drift,
                (FigureKind.TOKENS, robot_id): 48,
            }
            levels = {
                (FigureKind.PEOPLE, ""): 240 - age,
                (FigureKind.ACTIVE_PEOPLE, ""): 171 - age // 2,
                (FigureKind.PROTECTED_PEOPLE, ""): 133 - age,
            }
            for store, numbers in ((services.storage.figures.add, counts), (services.storage.figures.put, levels)):
                store(
                    {
                        FigureKey(organization_id=organization_id, kind=kind, day=day, object_id=object_id): number
                        for (kind, object_id), number in numbers.items()
                    }
                )


def _write(path: Path, tab: Tab) -> None:
    """Only the visible part of the page."""
    quality = {} if path.suffix == ".png" else {"quality": 80}
    picture = tab.command("Page.captureScreenshot", format=path.suffix[1:], **quality)["data"]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()

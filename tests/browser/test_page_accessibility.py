"""Checks of every page: accessibility, keyboard and widths; with options also every language.

``--pictures`` takes screenshots for review.
"""

from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.page_scenarios import BrowserScenario, PageUnderTest
from tests.browser.page_table import PAGES, route_of
from tests.browser.tab import Tab

AXE = (files("axe_core_python") / "axe.min.js").read_text()
CHECKS = Path(__file__).with_name("checks.js").read_text()

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag2aaa", "best-practice"]
#: The slow colour rules of axe-core; the second is stricter than the first.
COLOURS = ["color-contrast", "color-contrast-enhanced", "link-in-text-block"]


def rules(left_out: list[str]) -> dict[str, Any]:
    """Options of axe-core that disable these rules."""
    return {"runOnly": {"type": "tag", "values": TAGS}, "rules": {name: {"enabled": False} for name in left_out}}


EVERYTHING, ALL_BUT_COLOURS = rules(COLOURS[:1]), rules(COLOURS)
COLOURS_ALONE = {"runOnly": {"type": "rule", "values": COLOURS[1:]}}

SIZES = ((1280, 860), (390, 844), (320, 640))
PHONE = 640

#: Link targets that were checked already.
CHECKED_LINKS: set[str] = set()

MakeScene = Callable[..., BrowserScenario]


@pytest.fixture
def make_scenario(make_profile: MakeProfile, request: pytest.FixtureRequest) -> Iterator[MakeScene]:
    """Opens a page in a browser."""
    sites: list[ExampleCompany] = []

    def make(
        page: PageUnderTest,
        *,
        languages: str = "en",
        script: bool = True,
        long: bool = False,
        size: tuple[int, int] | None = None,
    ) -> BrowserScenario:
        site = request.getfixturevalue("mailing_site" if page.mailing else "site")
        site.world.clock.reset()
        sites.append(site)
        profile = make_profile(languages=languages, script=script and page.script)
        scene = BrowserScenario(site, profile, profile.tab(), long=long, make_profile=make_profile)
        if size is not None:
            scene.tab.size(*size)
        page.walk(scene)
        return scene

    yield make
    for site in sites:
        site.world.clock.reset()


def in_language(scene: BrowserScenario, page: PageUnderTest, language: str, make_scenario: MakeScene) -> Tab:
    """The page in another language: reloaded, or opened from the start if reloading leads elsewhere."""
    tab = scene.tab
    before = (tab.url, tab.status)
    tab.languages(language)
    tab.reload()
    if (tab.url, tab.status) != before or tab.find("html").get_attribute("lang") != language:
        tab = make_scenario(page, languages=language).tab
    assert tab.find("html").get_attribute("lang") == language
    return tab


def run_check(tab: Tab, check: str, *arguments: Any) -> Any:
    """The result of a function of checks.js."""
    return tab.run(f"return ({CHECKS}).{check}(...arguments);", *arguments)


def violations(tab: Tab, rules: dict[str, Any]) -> list[str]:
    """The violations of these axe-core rules."""
    if tab.run("return typeof axe === 'undefined';"):
        tab.run(AXE)
    # axe-core takes what an open popover covers for visible.
    covered = (
        {"include": [":popover-open"]} if tab.run("return document.querySelector(':popover-open') !== null;") else {}
    )
    found = tab.run_slowly(
        "const [what, options, done] = arguments; axe.run(what, options).then((found) => done(found.violations));",
        # axe-core treats collapsed sections as if they overlapped the following content.
        {"exclude": ["details:not([open]) > :not(summary)"], **covered},
        {**rules, "resultTypes": ["violations"], "preload": False},
    )
    return [
        f"{item['id']}: {item['help']}: {node['html']} {node['failureSummary']}"
        for item in found
        for node in item["nodes"]
        # axe-core does not know the autofill token of passkeys yet.
        if not (item["id"] == "autocomplete-valid" and 'autocomplete="username webauthn"' in node["html"])
    ]


def layout_problems(tab: Tab) -> list[str]:
    """Layout overflows in every width; the window keeps the last one."""
    problems = []
    for width, height in SIZES:
        tab.size(width, height)
        problems += [f"{width}: {problem}" for problem in run_check(tab, "layout", width <= PHONE)]
    return problems


def tab_problems(tab: Tab) -> list[str]:
    """Elements that Tab does not reach, reaches out of order or does not show."""
    focusable = run_check(tab, "places")
    run_check(tab, "watchFocus")
    reached: dict[int, Any] = {}
    for _ in range(5):
        tab.type(*[Keys.TAB] * (len(focusable) + 2))
        reached, around = once_around(run_check(tab, "watched"))
        if around:
            break
    problems = [f"no ring: {item['name']}" for item in reached.values() if not item["ring"]]
    problems += [f"out of sight: {item['name']}" for item in reached.values() if not item["inView"]]
    order = list(reached)
    start = order.index(focusable[0]) if focusable[0] in order else 0
    if order[start:] + order[:start] != focusable:
        problems.append(f"the Tab key goes to {order}, not {focusable}")
    return problems


def once_around(focused: list[Any]) -> tuple[dict[int, Any], bool]:
    """The focused elements by position, and whether the focus returned to one of them.

    After the last element the focus leaves the page and returns to the first. A date has several parts.
    """
    reached: dict[int, Any] = {}
    for before, found in pairwise([{"place": -1}, *focused]):
        if found["place"] in reached and found["place"] != before["place"]:
            return reached, True
        if found["place"] >= 0:
            reached.setdefault(found["place"], found)
    return reached, False


def link_problems(tab: Tab) -> list[str]:
    """Links that lead to errors."""
    found = run_check(tab, "links", sorted(CHECKED_LINKS))
    CHECKED_LINKS.update(found["asked"])
    wrong: list[str] = found["wrong"]
    return wrong


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """True if pages of each kind are checked in every variant."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture
def exhaustive(request: pytest.FixtureRequest) -> bool:
    """True if every page is checked in every variant."""
    return bool(request.config.getoption("--exhaustive"))


#: One page of each kind; the others consist of the same parts.
FIRST = (
    *("login-name", "password-wrong", "choose-an-account", "register-errors", "consent-of-others", "reset-link"),
    *("sign-out", "signed-out", "error-forbidden", "profile-errors", "sessions", "console-overview", "console-menu"),
    *("console-organizations-sorted", "console-organization-delete", "console-domain-verify", "console-manager-user"),
    *("console-manager-roles", "console-service-users-empty", "console-key-added", "console-user-locked"),
    *("branded-login-name", "console-branding-preview"),
    *("console-application-errors", "console-application", "console-audit-events", "console-token-preview"),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FIRST)
def test_page_is_accessible(name: str, make_scenario: MakeScene, thorough: bool) -> None:
    require_accessible(make_scenario, PAGES[name], every_variant=thorough)


@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=30)
@pytest.mark.parametrize("name", [name for name in PAGES if name not in FIRST])
def test_other_page_is_accessible(name: str, make_scenario: MakeScene, exhaustive: bool) -> None:
    require_accessible(make_scenario, PAGES[name], every_variant=exhaustive)


def require_accessible(make_scenario: MakeScene, page: PageUnderTest, *, every_variant: bool) -> None:
    scene = make_scenario(page)
    tab = scene.tab
    assert route_of(scene.site.world, tab.url) == route_of(scene.site.world, scene.site.url + page.path)
    assert tab.status == page.status, tab.text
    tab.let_scripts_run(True)
    problems = run_check(tab, "structure") + violations(tab, EVERYTHING)
    problems += tab_problems(tab) + link_problems(tab) + layout_problems(tab)
    if every_variant:
        problems += [f"{SIZES[-1][0]}: {violation}" for violation in violations(tab, EVERYTHING)]
        tab.size(*SIZES[0])
        tab.look(dark=True)
        problems += [f"dark: {violation}" for violation in violations(tab, COLOURS_ALONE)]
        tab.look()
    for language in page.languages if every_variant else ():
        tab.size(*SIZES[0])
        tab.let_scripts_run(page.script)
        tab = in_language(scene, page, language, make_scenario)
        tab.let_scripts_run(True)
        found = run_check(tab, "structure") + layout_problems(tab) + violations(tab, ALL_BUT_COLOURS)
        problems += [f"{language}: {item}" for item in found]
    assert not problems, "\n".join(problems)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [page_under_test.name for page_under_test in PAGES.values() if page_under_test.names])
def test_longest_names_fit(name: str, make_scenario: MakeScene) -> None:
    tab = make_scenario(PAGES[name], long=True).tab
    tab.let_scripts_run(True)
    problems = layout_problems(tab)
    assert not problems, "\n".join(problems)


SETTING_UP = [
    name
    for name, page in PAGES.items()
    if page.path.startswith("/login/") and page.path.endswith("/new") and page.status == 200
]


@pytest.mark.thorough
@pytest.mark.sampled(7)
@pytest.mark.parametrize("size", SIZES[1:], ids=str)
@pytest.mark.parametrize("name", SETTING_UP)
def test_enrolment_page_starts_at_the_top(make_scenario: MakeScene, name: str, size: tuple[int, int]) -> None:
    """On a phone, focus on a lower field would scroll the QR code or the explanation away."""
    tab = make_scenario(PAGES[name], size=size).tab
    # The focus is set before the first rendering.
    tab.run_slowly("const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(done));")
    assert tab.run("return document.querySelector('h1').getBoundingClientRect().top;") >= 0


# --- screenshots ------------------------------------------------------------------------------------------------------


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Callable[[Tab, str], None]:
    """Takes a screenshot and saves it."""
    folder = request.config.rootpath / request.config.getoption("--pictures-folder")
    folder.mkdir(parents=True, exist_ok=True)

    def keep(tab: Tab, name: str) -> None:
        (folder / f"{name}.png").write_bytes(tab.picture())

    return keep


@pytest.mark.thorough
@pytest.mark.pictures
@pytest.mark.parametrize("name", PAGES)
def test_page_pictures(name: str, make_scenario: MakeScene, keep: Callable[[Tab, str], None]) -> None:
    page = PAGES[name]
    scene = make_scenario(page)
    tab = scene.tab
    keep(tab, f"{name}.1280-light")
    if page.main:
        tab.look(forced_colors=True)
        keep(tab, f"{name}.1280-forced-colors")
        tab.look(dark=True)
        keep(tab, f"{name}.1280-dark")
    tab.size(390, 844)
    tab.look(dark=True)
    keep(tab, f"{name}.390-dark")
    tab.look()
    keep(tab, f"{name}.390-light")
    if page.main:
        tab.size(320, 640)
        keep(tab, f"{name}.320-light")
        tab.size(640, 430, zoom=2)
        keep(tab, f"{name}.zoomed")
    if page.chinese:
        tab.size(*SIZES[0])
        keep(in_language(scene, page, "zh", make_scenario), f"{name}.1280-chinese")
    if page.main:
        keep(make_scenario(page, script=False).tab, f"{name}.1280-without-script")
    if page.names:
        tab = make_scenario(page, long=True).tab
        keep(tab, f"{name}.1280-longest-names")
        tab.size(390, 844)
        keep(tab, f"{name}.390-longest-names")
    tab = make_scenario(page, languages="de").tab
    if page.main:
        keep(tab, f"{name}.1280-german")
    tab.size(390, 844)
    keep(tab, f"{name}.390-german")

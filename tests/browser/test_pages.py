"""What holds of every page: sound for machines, usable by keyboard, in every language, width and colour.

The pictures are for people to look at; they are taken with ``--pictures``.
"""

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.acme import Acme
from tests.browser.chromium import MakeProfile, Tab
from tests.browser.pages import Page, Scene
from tests.browser.table import PAGES, route_of

AXE = (files("axe_core_python") / "axe.min.js").read_text()
CHECKS = Path(__file__).with_name("checks.js").read_text()

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag2aaa", "best-practice"]

SIZES = ((1280, 860), (390, 844), (320, 640))
PHONE = 640

#: The addresses that links led to so far.
ASKED: set[str] = set()

MakeScene = Callable[..., Scene]


@pytest.fixture
def a_scene(a_profile: MakeProfile, request: pytest.FixtureRequest) -> Iterator[MakeScene]:
    """Leads a browser to a page."""
    sites: list[Acme] = []

    def make(page: Page, *, languages: str = "en", script: bool = True, long: bool = False) -> Scene:
        site = request.getfixturevalue("mailing_site" if page.mailing else "site")
        site.world.clock.reset()
        sites.append(site)
        profile = a_profile(languages=languages, script=script and page.script)
        scene = Scene(site, profile, profile.tab(), long=long, a_profile=a_profile)
        page.walk(scene)
        return scene

    yield make
    for site in sites:
        site.world.clock.reset()


def in_language(scene: Scene, page: Page, language: str, a_scene: MakeScene) -> Tab:
    """The same page in another language: asked for again, or where that leads elsewhere, walked to again."""
    tab = scene.tab
    before = (tab.url, tab.status)
    tab.languages(language)
    tab.reload()
    if (tab.url, tab.status) != before or tab.one("html").get_attribute("lang") != language:
        tab = a_scene(page, languages=language).tab
    assert tab.one("html").get_attribute("lang") == language
    return tab


def looked_at(tab: Tab, check: str, *arguments: Any) -> Any:
    """What a function of checks.js returns."""
    return tab.run(f"return ({CHECKS}).{check}(...arguments);", *arguments)


def violations(tab: Tab) -> list[str]:
    """What axe-core finds."""
    tab.run(AXE)
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    found = tab.run_slowly(
        "const [what, options, done] = arguments; axe.run(what, options).then((found) => done(found.violations));",
        # What is in a closed part is drawn nowhere, but axe-core judges it as if it lay on what follows.
        {"exclude": ["details:not([open]) > :not(summary)"]},
        options,
    )
    return [
        f"{one['id']}: {one['help']}: {node['html']} {node['failureSummary']}" for one in found for node in one["nodes"]
    ]


def layout_problems(tab: Tab) -> list[str]:
    """What does not fit, in every width; the last one stays."""
    problems = []
    for width, height in SIZES:
        tab.size(width, height)
        problems += [f"{width}: {problem}" for problem in looked_at(tab, "layout", width <= PHONE)]
    return problems


def tab_problems(tab: Tab) -> list[str]:
    """What the Tab key does not reach, or not in order, or without showing it."""
    wanted = looked_at(tab, "places")
    reached: list[int] = []
    problems = []
    # Once around: after the last element the focus leaves the page, and comes back to the first.
    for _ in range(5 * len(wanted) + 2):
        tab.type(Keys.TAB)
        found = looked_at(tab, "focus")
        # A date has several parts.
        if found["place"] == (reached or [-1])[-1]:
            continue
        if found["place"] in reached:
            break
        if found["place"] >= 0:
            reached.append(found["place"])
            problems += [f"no ring: {found['name']}"] if not found["ring"] else []
            problems += [f"out of sight: {found['name']}"] if not found["inView"] else []
    start = reached.index(min(reached))
    if reached[start:] + reached[:start] != sorted(wanted):
        problems.append(f"the Tab key goes to {reached}, not {sorted(wanted)}")
    return problems


def link_problems(tab: Tab) -> list[str]:
    """What leads to errors."""
    found = looked_at(tab, "links", sorted(ASKED))
    ASKED.update(found["asked"])
    wrong: list[str] = found["wrong"]
    return wrong


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_sound_in_every_language(name: str, a_scene: MakeScene) -> None:
    page = PAGES[name]
    scene = a_scene(page)
    tab = scene.tab
    assert route_of(scene.site.world, tab.url) == route_of(scene.site.world, scene.site.url + page.path)
    assert tab.status == page.status, tab.text
    tab.let_scripts_run(True)
    problems = looked_at(tab, "structure") + violations(tab)
    tab.look(dark=True)
    problems += [f"dark: {one}" for one in violations(tab)]
    tab.look()
    problems += tab_problems(tab) + link_problems(tab) + layout_problems(tab)
    problems += [f"{SIZES[-1][0]}: {one}" for one in violations(tab)]
    for language in page.languages:
        tab.size(*SIZES[0])
        tab.let_scripts_run(page.script)
        tab = in_language(scene, page, language, a_scene)
        tab.let_scripts_run(True)
        found = looked_at(tab, "structure") + layout_problems(tab) + violations(tab)
        problems += [f"{language}: {one}" for one in found]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", [one.name for one in PAGES.values() if one.names])
def test_the_longest_names_fit(name: str, a_scene: MakeScene) -> None:
    tab = a_scene(PAGES[name], long=True).tab
    tab.let_scripts_run(True)
    problems = layout_problems(tab)
    assert not problems, "\n".join(problems)


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Callable[[Tab, str], None]:
    """Takes a picture and keeps it."""
    folder = request.config.rootpath / request.config.getoption("--pictures-folder")
    folder.mkdir(parents=True, exist_ok=True)

    def keep(tab: Tab, name: str) -> None:
        (folder / f"{name}.png").write_bytes(tab.picture())

    return keep


@pytest.mark.pictures
@pytest.mark.parametrize("name", PAGES)
def test_pictures(name: str, a_scene: MakeScene, keep: Callable[[Tab, str], None]) -> None:
    page = PAGES[name]
    scene = a_scene(page)
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
        keep(in_language(scene, page, "zh", a_scene), f"{name}.1280-chinese")
    if page.main:
        keep(a_scene(page, script=False).tab, f"{name}.1280-without-script")
    if page.names:
        tab = a_scene(page, long=True).tab
        keep(tab, f"{name}.1280-longest-names")
        tab.size(390, 844)
        keep(tab, f"{name}.390-longest-names")
    tab = a_scene(page, languages="de").tab
    if page.main:
        keep(tab, f"{name}.1280-german")
    tab.size(390, 844)
    keep(tab, f"{name}.390-german")

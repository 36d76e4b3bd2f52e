"""The help link of each page leads to its page in the documentation."""

from collections.abc import Callable
from pathlib import Path

import pytest

from identity.domain.permissions import Resource
from identity.plugins import documentation
from identity.plugins.console.console_page import (
    INSTANCE_SECTIONS,
    ORGANIZATION_SECTIONS,
    OVERVIEW_SECTION,
    NavigationSection,
)
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def documentation_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a built documentation."""
    (tmp_path / "index.html").write_text("<!doctype html><title>identity</title>")
    monkeypatch.setattr(documentation, "BUILT_FOLDER", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "section", [OVERVIEW_SECTION, *ORGANIZATION_SECTIONS, *INSTANCE_SECTIONS], ids=lambda section: section.name
)
def test_help_page_exists(section: NavigationSection) -> None:
    assert (DOCS / f"{section.help_page}.rst").is_file()


@pytest.fixture
def make_owner(make_world: WorldFactory) -> Callable[[], Browser]:
    """Opens the console of a new service, which looks for the documentation at its start, as an instance owner."""

    def make() -> Browser:
        world = make_world()
        browser = Browser(world)
        manager = world.make_human_user()
        world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
        browser.start_session(manager)
        return browser

    return make


def test_pages_link_to_the_documentation_of_their_section(make_owner: Callable[[], Browser]) -> None:
    browser = make_owner()
    for path, expected in {
        "/console/instance/signing-keys": "/docs/how-to/operators/keys.html",
        "/console/organizations": "/docs/how-to/administrators/console.html",
    }.items():
        page = browser.open(path)
        assert page.html.find("a", attrs={"class": "top__help"})["href"] == expected


def test_missing_documentation_is_not_linked(make_owner: Callable[[], Browser], documentation_folder: Path) -> None:
    (documentation_folder / "index.html").unlink()
    page = make_owner().open("/console/organizations")
    assert not page.html.select('a[href^="/docs"]')

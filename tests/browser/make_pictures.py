"""Screenshots for README and documentation: ``make pictures``. Needs Chromium."""

import base64
from pathlib import Path
from tempfile import TemporaryDirectory

from identity.testing.assembled_service import RsaKeyPool
from identity.testing.fixtures import DatabaseFactory
from tests.browser.chromium import Chromium
from tests.browser.console_fixture_data import estate
from tests.browser.example_company import acme
from tests.browser.tab import Tab

PICTURES = Path(__file__).parents[2] / "docs" / "_static"
#: In CSS pixels of two device pixels each.
SIZE = (1280, 820)


def main() -> None:
    """Write one picture of the sign-in page and one of the console."""
    with TemporaryDirectory() as folder:
        keys = RsaKeyPool()
        settings = DatabaseFactory(Path(folder), keys, None, {}).new_database_settings("memory")  # type: ignore[arg-type]
        chromium = Chromium(Path(folder) / "chromium")
        try:
            with acme(settings, keys) as site:
                company = estate(site, long=False)
                profile = chromium.profile()
                tab = profile.tab()
                tab.command("Emulation.setScrollbarsHidden", hidden=True)
                tab.size(*SIZE, zoom=2)
                tab.look()
                site.ask(tab)
                _write("sign-in", tab)
                site.sign_in(tab, company.manager)
                tab.open(f"{site.world.issuer}/console/projects/{company.project.id}")
                _write("console", tab)
                profile.close()
        finally:
            chromium.close()


def _write(name: str, tab: Tab) -> None:
    """Only the visible part of the page."""
    picture = tab.command("Page.captureScreenshot")["data"]
    (PICTURES / f"{name}.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()

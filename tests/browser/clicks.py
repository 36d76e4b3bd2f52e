"""Counts the clicks of a walk through pages."""

from pathlib import Path

from selenium.webdriver.common.keys import Keys

from tests.browser.tab import Tab


class Clicks:
    """Acts in a tab; ``count`` is the number of clicks so far. Typing is not counted."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.count = 0

    def follow(self, text: str, *, inside: str = "body") -> None:
        self.count += 1
        self.tab.follow(text, inside=inside)

    def press(self, text: str) -> None:
        self.count += 1
        self.tab.press(text)

    def check(self, name: str, value: str) -> None:
        self.count += 1
        self.tab.find(f'input[name="{name}"][value="{value}"]').click()

    def choose(self, name: str, value: str) -> None:
        self.count += 1
        self.tab.fill(**{name: value})

    def choose_file(self, name: str, file: Path) -> None:
        self.count += 1
        self.tab.field(name).send_keys(str(file))

    def send(self, **values: str) -> None:
        """Fill text fields and press the primary button."""
        self.count += 1
        self.tab.send(**values)

    def find(self, typed: str, text: str) -> None:
        """Type into the search that ``/`` opens, and follow the hit with this text."""
        self.tab.type("/", typed)
        self.tab.wait(lambda: text in self.tab.text_of(".palette__results"))
        self.count += 1
        self.tab.type(Keys.ARROW_DOWN)
        with self.tab.leaving():
            self.tab.type(Keys.ENTER)

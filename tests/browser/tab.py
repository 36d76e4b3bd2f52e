"""A browser window and user actions in it."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

#: The timeout of browser actions in seconds; only broken pages reach it.
PATIENCE = 60

#: The visible elements of a selector that contain this text; exact matches take precedence.
_VISIBLE_ELEMENTS = """
const [selector, words] = arguments;
const text = (one) => one.textContent.trim().replace(/\\s+/g, ' ');
const found = Array.from(document.querySelectorAll(selector)).filter(one =>
  one.checkVisibility() && text(one).includes(words));
const exact = found.filter(one => text(one) === words);
return exact.length ? exact : found;
"""

#: True if a document other than the one with this time origin is loaded completely.
_ARRIVED = "return document.readyState === 'complete' && performance.timeOrigin !== arguments[0];"


class Tab:
    """A window. Every action that navigates waits for the new page."""

    def __init__(self, driver: Callable[[], Chrome], *, languages: str, script: bool) -> None:
        self._driver = driver
        self.script = script
        self.command("Network.enable")
        self.languages(languages)
        self.let_scripts_run(script)
        # Without focus, a click first activates the window, which can scroll its target away.
        self.command("Emulation.setFocusEmulationEnabled", enabled=True)
        self.command("Emulation.setScrollbarsHidden", hidden=False)
        self.size(1280, 860)
        self.look()

    # --- the window ---------------------------------------------------------------------------------------------------

    @property
    def driver(self) -> Chrome:
        """The driver, switched to this window."""
        return self._driver()

    def command(self, method: str, **parameters: Any) -> Any:
        """Send a DevTools command to this window."""
        return self.driver.execute_cdp_cmd(method, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script of the tests, which the page's policy does not restrict; returns its result."""
        return self.driver.execute_script(script, *arguments)  # type: ignore[no-untyped-call]

    def run_slowly(self, script: str, *arguments: Any) -> Any:
        """Run an asynchronous script, which passes its result to its last argument."""
        return self.driver.execute_async_script(script, *arguments)  # type: ignore[no-untyped-call]

    def languages(self, languages: str) -> None:
        """Set Accept-Language."""
        self.command("Network.setExtraHTTPHeaders", headers={"Accept-Language": languages})

    def size(self, width: int, height: int, *, zoom: float = 1) -> None:
        """Resize the window, in CSS pixels; ``zoom`` is the number of device pixels for each."""
        self._size = (width, height, zoom)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=zoom, mobile=False
        )

    def let_scripts_run(self, whether: bool) -> None:
        """Enable or disable scripts of pages, and asynchronous scripts of tests."""
        self.command("Emulation.setScriptExecutionDisabled", value=not whether)

    def look(self, *, dark: bool = False, forced_colors: bool = False) -> None:
        """Emulate the preferences of the user's system."""
        self.command(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                {"name": "forced-colors", "value": "active" if forced_colors else "none"},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ],
        )

    def picture(self) -> bytes:
        """The whole page as a PNG, at least as high as the window."""
        # A scroll bar would cover part of the page.
        self._hide_scroll_bars(True)
        picture = self.command("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        self._hide_scroll_bars(False)
        return base64.b64decode(picture)

    def _hide_scroll_bars(self, whether: bool) -> None:
        width, height, zoom = self._size
        self.command("Emulation.setScrollbarsHidden", hidden=whether)
        # The layout changes only when the window size does.
        for item in (height + 1, height):
            self.size(width, item, zoom=zoom)

    # --- page content -------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self.driver.current_url

    @property
    def title(self) -> str:
        return self.driver.title

    @property
    def status(self) -> int:
        """The response status of the page."""
        status: int = self.run("return performance.getEntriesByType('navigation')[0].responseStatus")
        return status

    @property
    def heading(self) -> str:
        """The text of the h1."""
        (element,) = self.all("h1")
        return element.text

    @property
    def text(self) -> str:
        """The visible text."""
        return self.find("body").text

    def find(self, selector: str) -> WebElement:
        """The only element of the CSS selector."""
        elements = self.all(selector)
        assert len(elements) == 1, (
            f"{len(elements)} of {selector} at {self.url}\n{self.text if selector != 'body' else ''}"
        )
        return elements[0]

    def all(self, selector: str) -> list[WebElement]:
        """All elements of the CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def field(self, name: str) -> WebElement:
        """The control of a form's field."""
        return self.find(f"#field-{name}")

    def text_of(self, selector: str) -> str:
        """The text of the only element of the selector, including hidden text, with single spaces."""
        text: str = self.find(selector).get_property("textContent")  # type: ignore[assignment]
        return " ".join(text.split())

    def value(self, name: str) -> str:
        """The value of a field."""
        return self.field(name).get_property("value")  # type: ignore[return-value]

    @property
    def focused(self) -> str:
        """The id of the element that has the focus; its tag if it has none."""
        found: str = self.run("return document.activeElement.id || document.activeElement.localName")
        return found

    # --- user actions -------------------------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Navigate to an address."""
        self.driver.get(url)

    def reload(self) -> None:
        self.driver.refresh()

    def back(self) -> None:
        self.driver.back()

    def fill(self, **values: str) -> None:
        """Replace the values of fields by typing."""
        for name, value in values.items():
            field = self.field(name)
            if field.tag_name == "select":
                field.find_element(By.CSS_SELECTOR, f'option[value="{value}"]').click()
            else:
                field.clear()
                field.send_keys(value)

    def send(self, **values: str) -> None:
        """Fill fields and press the primary button of the page."""
        self.fill(**values)
        with self.leaving():
            self.find(".button--primary, .button--danger").click()

    def press(self, text: str) -> None:
        """Press the button with this text."""
        self._act("button, summary", text)

    def follow(self, text: str, *, inside: str = "body") -> None:
        """Follow the link with this text."""
        self._act(f"{inside} a[href]", text)

    def type(self, *keys: str) -> None:
        """Press keys at the focused element."""
        ActionChains(self.driver).send_keys(*keys).perform()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Wait until the block's actions have loaded another page."""
        before = self.run("return performance.timeOrigin")
        yield
        self.wait(lambda: self.run(_ARRIVED, before))

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until the condition is true."""
        # The driver raises errors between two pages.
        waiting = WebDriverWait(self.driver, PATIENCE, poll_frequency=0.02, ignored_exceptions=[WebDriverException])
        waiting.until(lambda _: condition())

    def _act(self, selector: str, text: str) -> None:
        found = self.run(_VISIBLE_ELEMENTS, selector, text)
        assert len(found) == 1, f"{len(found)} of {selector} show {text!r} at {self.url}\n{self.text}"
        # Menus and script buttons do not navigate.
        if found[0].tag_name == "summary" or found[0].get_attribute("type") == "button":
            found[0].click()
            return
        with self.leaving():
            found[0].click()

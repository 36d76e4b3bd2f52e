"""Tab: a window of a browser, and what a person does there."""

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

#: How long a browser may take for anything, in seconds; only a broken page needs it.
PATIENCE = 60

#: The elements of a selector that are drawn and hold these words; if there are any, those that hold nothing else.
_VISIBLE_ELEMENTS = """
const [selector, words] = arguments;
const text = (one) => one.textContent.trim().replace(/\\s+/g, ' ');
const found = Array.from(document.querySelectorAll(selector)).filter(one =>
  one.checkVisibility() && text(one).includes(words));
const exact = found.filter(one => text(one) === words);
return exact.length ? exact : found;
"""

#: Whether another document than the one that began at that moment is there, all of it.
_ARRIVED = "return document.readyState === 'complete' && performance.timeOrigin !== arguments[0];"


class Tab:
    """A window. Everything that leads to another page waits until that is there."""

    def __init__(self, driver: Callable[[], Chrome], *, languages: str, script: bool) -> None:
        self._driver = driver
        self.script = script
        self.command("Network.enable")
        self.languages(languages)
        self.let_scripts_run(script)
        self.command("Emulation.setScrollbarsHidden", hidden=False)
        self.size(1280, 860)
        self.look()

    # --- the window ---------------------------------------------------------------------------------------------------

    @property
    def driver(self) -> Chrome:
        """The driver, speaking to this window."""
        return self._driver()

    def command(self, method: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol to this window."""
        return self.driver.execute_cdp_cmd(method, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns that the tests bring along, which runs where the page's own may not."""
        return self.driver.execute_script(script, *arguments)  # type: ignore[no-untyped-call]

    def run_slowly(self, script: str, *arguments: Any) -> Any:
        """The same for a script that calls its last argument when it is done."""
        return self.driver.execute_async_script(script, *arguments)  # type: ignore[no-untyped-call]

    def languages(self, languages: str) -> None:
        """What the browser says in Accept-Language from now on."""
        self.command("Network.setExtraHTTPHeaders", headers={"Accept-Language": languages})

    def size(self, width: int, height: int, *, zoom: float = 1) -> None:
        """Make the window so large, in CSS pixels; ``zoom`` is how many device pixels each of them has."""
        self._size = (width, height, zoom)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=zoom, mobile=False
        )

    def let_scripts_run(self, whether: bool) -> None:
        """Those of pages; and what the tests bring along that has to wait for something."""
        self.command("Emulation.setScriptExecutionDisabled", value=not whether)

    def look(self, *, dark: bool = False, forced_colors: bool = False) -> None:
        """What the person's system asks of pages."""
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
        # A scroll bar would be cut out of the page.
        self._hide_scroll_bars(True)
        picture = self.command("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        self._hide_scroll_bars(False)
        return base64.b64decode(picture)

    def _hide_scroll_bars(self, whether: bool) -> None:
        width, height, zoom = self._size
        self.command("Emulation.setScrollbarsHidden", hidden=whether)
        # The page is laid out again when the window changes, not before.
        for item in (height + 1, height):
            self.size(width, item, zoom=zoom)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address."""
        return self.driver.current_url

    @property
    def title(self) -> str:
        """The title of the document."""
        return self.driver.title

    @property
    def status(self) -> int:
        """The status with which the page came."""
        status: int = self.run("return performance.getEntriesByType('navigation')[0].responseStatus")
        return status

    @property
    def heading(self) -> str:
        """The words of the h1."""
        (element,) = self.all("h1")
        return element.text

    @property
    def text(self) -> str:
        """What can be read."""
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
        """The words of the only element of the selector, hidden ones too, with single spaces."""
        text: str = self.find(selector).get_property("textContent")  # type: ignore[assignment]
        return " ".join(text.split())

    def value(self, name: str) -> str:
        """What stands in a field."""
        return self.field(name).get_property("value")  # type: ignore[return-value]

    @property
    def focused(self) -> str:
        """The id of the element that has the focus; its tag if it has none."""
        found: str = self.run("return document.activeElement.id || document.activeElement.localName")
        return found

    # --- what a person does -------------------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Type an address."""
        self.driver.get(url)

    def reload(self) -> None:
        """Ask for the page again."""
        self.driver.refresh()

    def back(self) -> None:
        """Go back."""
        self.driver.back()

    def fill(self, **values: str) -> None:
        """Type into fields, over what stands there."""
        for name, value in values.items():
            field = self.field(name)
            if field.tag_name == "select":
                field.find_element(By.CSS_SELECTOR, f'option[value="{value}"]').click()
            else:
                field.clear()
                field.send_keys(value)

    def send(self, **values: str) -> None:
        """Type into fields, and press the main button of the page."""
        self.fill(**values)
        with self.leaving():
            self.find(".button--primary, .button--danger").click()

    def press(self, text: str) -> None:
        """Press the button that shows these words."""
        self._act("button, summary", text)

    def follow(self, text: str, *, inside: str = "body") -> None:
        """Follow the link that shows these words."""
        self._act(f"{inside} a[href]", text)

    def type(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """What is done in the block leads to another page: wait for it."""
        before = self.run("return performance.timeOrigin")
        yield
        self.wait(lambda: self.run(_ARRIVED, before))

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until something is so."""
        # Between two pages the driver has nothing to speak to.
        waiting = WebDriverWait(self.driver, PATIENCE, poll_frequency=0.02, ignored_exceptions=[WebDriverException])
        waiting.until(lambda _: condition())

    def _act(self, selector: str, text: str) -> None:
        found = self.run(_VISIBLE_ELEMENTS, selector, text)
        assert len(found) == 1, f"{len(found)} of {selector} show {text!r} at {self.url}\n{self.text}"
        # Neither a menu nor a button for script leads anywhere.
        if found[0].tag_name == "summary" or found[0].get_attribute("type") == "button":
            found[0].click()
            return
        with self.leaving():
            found[0].click()

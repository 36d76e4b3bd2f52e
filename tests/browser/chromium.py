"""Chromium: a real browser without a window. Profile: one person's browser in it. Tab: one of that person's windows.

    profile = chromium.profile(languages="de")
    tab = profile.tab()
    tab.open(address)
    tab.send(login_name="anna@acme.example")        # types, and presses the main button of the page's form
    assert tab.heading == "Enter your password"

What the console of the browser says is kept in ``profile.console``; a profile that is closed checks that nothing there
speaks of a broken page.
"""

import base64
import itertools
import json
import os
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

#: Why the tests are left out; the summary at the end of a run says it again.
MISSING = "Chromium is not installed (Debian: apt-get install chromium chromium-driver)."

#: How long a browser may take for anything, in seconds; only a broken page needs it.
PATIENCE = 60

#: What browsers ask for beside the page itself goes nowhere.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)

#: The elements of a selector that are drawn and hold these words; if there are any, those that hold nothing else.
_SHOWN = """
const [selector, words] = arguments;
const text = (one) => one.textContent.trim().replace(/\\s+/g, ' ');
const found = Array.from(document.querySelectorAll(selector)).filter(one =>
  one.checkVisibility() && text(one).includes(words));
const exact = found.filter(one => text(one) === words);
return exact.length ? exact : found;
"""

#: Whether another document than the one that began at that moment is there, all of it.
_ARRIVED = "return document.readyState === 'complete' && performance.timeOrigin !== arguments[0];"

#: The browser's own remark on an answer whose status is an error, which many pages have on purpose.
_STATUS_REMARK = "Failed to load resource: the server responded with a status of 4"


def installed() -> tuple[str, str] | None:
    """Where browser and driver are."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


class Chromium:
    """One process of the browser, with its driver."""

    def __init__(self, folder: Path) -> None:
        found = installed()
        assert found is not None, MISSING
        # The driver is here: nothing is to be fetched, and nobody to be told.
        os.environ |= {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
        options = ChromeOptions()
        options.binary_location, driver = found
        for flag in (*_FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = Chrome(options=options, service=Service(driver))
        self.driver.set_script_timeout(PATIENCE)
        self._window = self._first_window = self.driver.current_window_handle
        self._numbers = itertools.count(1)
        #: Empty browsers of people with their first window: a new one takes longer than most tests.
        self._idle: list[tuple[str, str]] = []
        try:
            self._connection = self._connect()
        except BaseException:
            self.driver.quit()
            raise

    def profile(self, *, languages: str = "en", script: bool = True) -> "Profile":
        """A browser of a person, without cookies; ``languages`` as in Accept-Language."""
        context, window = self._idle.pop() if self._idle else self._new_context()
        return Profile(self, context, window, languages, script=script)

    def put_back(self, context: str, window: str) -> None:
        """Empty a person's browser for the next one: no cookies, one window, no history."""
        windows = self.ask("Target.getTargets")["targetInfos"]
        for one in windows:
            if one["type"] == "page" and one.get("browserContextId") == context and one["targetId"] != window:
                self.ask("Target.closeTarget", targetId=one["targetId"])
        self.ask("Storage.clearCookies", browserContextId=context)
        self.ask("Browser.setDownloadBehavior", behavior="default", browserContextId=context)
        self.ask("Browser.resetPermissions", browserContextId=context)
        driver = self.at(window)
        driver.get("about:blank")
        driver.execute_cdp_cmd("Page.resetNavigationHistory", {})
        driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
        self._idle.append((context, window))

    def new_window(self, context: str) -> str:
        """One more window of a person's browser."""
        window: str = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        return window

    def _new_context(self) -> tuple[str, str]:
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        return context, self.new_window(context)

    def at(self, window: str | None = None) -> Chrome:
        """The driver, speaking to this window; without one given, to its own, which always stays."""
        window = window or self._first_window
        if window != self._window:
            self.driver.switch_to.window(window)
            self._window = window
        return self.driver

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the DevTools protocol to the browser as a whole, which the driver does not pass on."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (answer := json.loads(self._connection.recv())).get("id") != number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self.driver.quit()

    def _connect(self) -> Any:
        address = self.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urllib.request.urlopen(f"http://{address}/json/version", timeout=PATIENCE) as answer:
            url = json.load(answer)["webSocketDebuggerUrl"]
        return websocket.create_connection(url, suppress_origin=True, timeout=PATIENCE)


class Profile:
    """A browser with cookies of its own; its tabs share them."""

    def __init__(self, chromium: Chromium, context: str, window: str, languages: str, *, script: bool) -> None:
        self.chromium = chromium
        self.languages = languages
        self.script = script
        self._context, self._first_window = context, window
        self._opened = False
        self._console: list[str] = []
        self._read_console()
        self._console.clear()

    def tab(self) -> "Tab":
        """A new window."""
        window = self.chromium.new_window(self._context) if self._opened else self._first_window
        self._opened = True
        return Tab(self, window)

    def keep(self, cookie: dict[str, Any]) -> None:
        """Have a cookie, as the DevTools protocol describes it."""
        self.chromium.ask("Storage.setCookies", cookies=[cookie], browserContextId=self._context)

    def download_to(self, folder: Path) -> None:
        """Keep in this folder what pages give to download."""
        self._ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def let_copy(self) -> None:
        """Let pages write to the clipboard, and tests read it."""
        self._ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    @property
    def console(self) -> list[str]:
        """What the console said so far, of all tabs; not that a status is an error, which pages have on purpose."""
        self._read_console()
        return self._console

    def close(self) -> None:
        """Close all tabs and forget everything. Raises AssertionError if a page was broken."""
        said = self.console
        self.chromium.put_back(self._context, self._first_window)
        assert not said, "the console of the browser says:\n" + "\n".join(said)

    def _ask(self, method: str, **parameters: Any) -> None:
        self.chromium.ask(method, browserContextId=self._context, **parameters)

    def _read_console(self) -> None:
        entries = self.chromium.driver.get_log("browser")  # type: ignore[no-untyped-call]
        said = (str(entry["message"]) for entry in entries if entry["level"] != "DEBUG")
        self._console += [one for one in said if _STATUS_REMARK not in one]


class Tab:
    """A window. Everything that leads to another page waits until that is there."""

    def __init__(self, profile: Profile, handle: str) -> None:
        self.profile = profile
        self._handle = handle
        self.command("Network.enable")
        self.languages(profile.languages)
        self.let_scripts_run(profile.script)
        self.command("Emulation.setScrollbarsHidden", hidden=False)
        self.size(1280, 860)
        self.look()

    # --- the window ---------------------------------------------------------------------------------------------------

    @property
    def driver(self) -> Chrome:
        """The driver, speaking to this window."""
        return self.profile.chromium.at(self._handle)

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
        for one in (height + 1, height):
            self.size(width, one, zoom=zoom)

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
        (one,) = self.all("h1")
        return one.text

    @property
    def text(self) -> str:
        """What can be read."""
        return self.one("body").text

    def one(self, selector: str) -> WebElement:
        """The only element of the CSS selector."""
        found = self.all(selector)
        assert len(found) == 1, f"{len(found)} of {selector} at {self.url}\n{self.text if selector != 'body' else ''}"
        return found[0]

    def all(self, selector: str) -> list[WebElement]:
        """All elements of the CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def field(self, name: str) -> WebElement:
        """The control of a form's field."""
        return self.one(f"#field-{name}")

    def words(self, selector: str) -> str:
        """The words of the only element of the selector, hidden ones too, with single spaces."""
        text: str = self.one(selector).get_property("textContent")  # type: ignore[assignment]
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
            self.one(".button--primary, .button--danger").click()

    def press(self, words: str) -> None:
        """Press the button that shows these words."""
        self._act("button, summary", words)

    def follow(self, words: str, *, inside: str = "body") -> None:
        """Follow the link that shows these words."""
        self._act(f"{inside} a[href]", words)

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

    def _act(self, selector: str, words: str) -> None:
        found = self.run(_SHOWN, selector, words)
        assert len(found) == 1, f"{len(found)} of {selector} show {words!r} at {self.url}\n{self.text}"
        # Neither a menu nor a button for script leads anywhere.
        if found[0].tag_name == "summary" or found[0].get_attribute("type") == "button":
            found[0].click()
            return
        with self.leaving():
            found[0].click()


#: Makes browsers of different people: ``a_profile(languages="de")``.
MakeProfile = Callable[..., Profile]

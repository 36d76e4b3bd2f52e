"""Headless Chromium, browser profiles of users, and their tabs.

    profile = chromium.profile(languages="de")
    tab = profile.tab()
    tab.open(address)
    tab.send(login_name="anna@acme.example")        # types, and presses the primary button of the page's form
    assert tab.heading == "Enter your password"

``profile.console`` collects console messages; closing a profile asserts that there are none.
"""

import itertools
import json
import os
import shutil
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import websocket
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.browser.tab import PATIENCE, Tab

#: The reason for skipping; also printed in the summary of the run.
MISSING = "Chromium is not installed (Debian: apt-get install chromium chromium-driver)."

#: Background requests of the browser are disabled.
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

#: The browser's message about an error status, which many pages have on purpose.
_STATUS_REMARK = "Failed to load resource: the server responded with a status of 4"


def installed() -> tuple[str, str] | None:
    """The paths of browser and driver; None if not installed."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


class Chromium:
    """A browser process with its driver."""

    def __init__(self, folder: Path) -> None:
        found = installed()
        assert found is not None, MISSING
        # The driver is installed: Selenium must not download one or send statistics.
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
        #: Idle browser contexts with their first window, reused because creating one takes longer than most tests.
        self._idle: list[tuple[str, str]] = []
        try:
            self._connection = self._connect()
        except BaseException:
            self.driver.quit()
            raise

    def profile(self, *, languages: str = "en", script: bool = True) -> "ChromiumProfile":
        """A profile without cookies; ``languages`` as in Accept-Language."""
        context, window = self._idle.pop() if self._idle else self._new_context()
        return ChromiumProfile(self, context, window, languages, script=script)

    def put_back(self, context: str, window: str) -> None:
        """Reset a profile for reuse: no cookies, one window, no history."""
        windows = self.ask("Target.getTargets")["targetInfos"]
        for item in windows:
            if item["type"] == "page" and item.get("browserContextId") == context and item["targetId"] != window:
                self.ask("Target.closeTarget", targetId=item["targetId"])
        self.ask("Storage.clearCookies", browserContextId=context)
        self.ask("Browser.setDownloadBehavior", behavior="default", browserContextId=context)
        self.ask("Browser.resetPermissions", browserContextId=context)
        driver = self.at(window)
        driver.get("about:blank")
        driver.execute_cdp_cmd("Page.resetNavigationHistory", {})
        driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
        driver.execute_cdp_cmd("WebAuthn.disable", {})
        self._idle.append((context, window))

    def new_window(self, context: str) -> str:
        """Open another window of a profile."""
        window: str = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        return window

    def _new_context(self) -> tuple[str, str]:
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        return context, self.new_window(context)

    def at(self, window: str | None = None) -> Chrome:
        """The driver, switched to this window or to its permanent one."""
        window = window or self._first_window
        if window != self._window:
            self.driver.switch_to.window(window)
            self._window = window
        return self.driver

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a DevTools command to the browser itself, which the driver does not support."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (answer := json.loads(self._connection.recv())).get("id") != number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        self._connection.close()
        self.driver.quit()

    def _connect(self) -> Any:
        address = self.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urllib.request.urlopen(f"http://{address}/json/version", timeout=PATIENCE) as answer:
            url = json.load(answer)["webSocketDebuggerUrl"]
        return websocket.create_connection(url, suppress_origin=True, timeout=PATIENCE)


class ChromiumProfile:
    """A browser profile; its tabs share its cookies."""

    def __init__(self, chromium: Chromium, context: str, window: str, languages: str, *, script: bool) -> None:
        self.chromium = chromium
        self.languages = languages
        self.script = script
        self._context, self._first_window = context, window
        self._opened = False
        self._console: list[str] = []
        self._read_console()
        self._console.clear()

    def tab(self) -> Tab:
        """Open a new window."""
        window = self.chromium.new_window(self._context) if self._opened else self._first_window
        self._opened = True
        return Tab(partial(self.chromium.at, window), languages=self.languages, script=self.script)

    def keep(self, cookie: dict[str, Any]) -> None:
        """Set a cookie in the format of the DevTools protocol."""
        self.chromium.ask("Storage.setCookies", cookies=[cookie], browserContextId=self._context)

    def download_to(self, folder: Path) -> None:
        """Save downloads in this folder."""
        self._ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def let_copy(self) -> None:
        """Allow pages to write the clipboard and tests to read it."""
        self._ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    @property
    def console(self) -> list[str]:
        """Console messages of all tabs, without those about error statuses, which pages have on purpose."""
        self._read_console()
        return self._console

    def close(self) -> None:
        """Close all tabs and delete all data. Raises AssertionError if there are console messages."""
        messages = self.console
        self.chromium.put_back(self._context, self._first_window)
        assert not messages, "the console of the browser says:\n" + "\n".join(messages)

    def _ask(self, method: str, **parameters: Any) -> None:
        self.chromium.ask(method, browserContextId=self._context, **parameters)

    def _read_console(self) -> None:
        entries = self.chromium.driver.get_log("browser")  # type: ignore[no-untyped-call]
        messages = (str(entry["message"]) for entry in entries if entry["level"] != "DEBUG")
        self._console += [item for item in messages if _STATUS_REMARK not in item]


#: Creates profiles: ``make_profile(languages="de")``.
MakeProfile = Callable[..., ChromiumProfile]

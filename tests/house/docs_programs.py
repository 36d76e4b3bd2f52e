"""Runs programs of the documentation in separate processes, and fills in the service's forms like a browser."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import requests

from tests.http_server import loopback_socket


@contextmanager
def running(script: Path, *arguments: str) -> Iterator[None]:
    """Run the script in a separate process during the block, which starts after its first line of output."""
    command = [sys.executable, script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), f"{script.name} stopped at once"
            yield
        finally:
            process.terminate()


def find_free_port() -> int:
    with loopback_socket() as bound:
        return int(bound.getsockname()[1])


def submitted(browser: requests.Session, response: requests.Response, **fields: str) -> requests.Response:
    """Fill in the page's form and send it; returns the response."""
    (form,) = re.findall(r'<form class="form" .*?</form>', response.text, re.DOTALL)
    (action,) = re.findall(r'action="([^"]+)"', form)
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
    return browser.post(urljoin(response.url, unescape(action)), hidden | fields, timeout=30)

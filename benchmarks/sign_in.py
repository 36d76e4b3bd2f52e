"""A person who signs in on the pages, as their browser does it without scripts."""

import re
from urllib.parse import urljoin

import requests

from benchmarks.cases import AUTHORIZE, REDIRECT_URI, VISITORS_PASSWORD, Known
from benchmarks.load import LoadFailed

TOKEN = re.compile(rb'name="csrf_token" value="([^"]+)"')
_PATIENCE = 30.0


def sign_in(known: Known) -> None:
    """The visitor signs in at a new browser: from the application's request to its code. Raises LoadFailed."""
    with requests.Session() as browser:
        browser.trust_env = False
        address = f"http://{known.host}{AUTHORIZE}"
        answer = browser.get(address, params=known.visitor.authorization, timeout=_PATIENCE)
        for name, value in (("login_name", known.visitor.login_name), ("password", VISITORS_PASSWORD)):
            token = TOKEN.search(answer.content)
            if token is None:
                raise LoadFailed(f"{answer.url} has no form")
            form = {"csrf_token": token[1].decode(), name: value}
            answer = browser.post(answer.url, form, timeout=_PATIENCE, allow_redirects=False)
            while answer.is_redirect and not answer.headers["Location"].startswith(REDIRECT_URI):
                address = urljoin(answer.url, answer.headers["Location"])
                answer = browser.get(address, timeout=_PATIENCE, allow_redirects=False)
        if "code=" not in answer.headers.get("Location", ""):
            raise LoadFailed(f"signing in ends at {answer.url} with {answer.status_code}")

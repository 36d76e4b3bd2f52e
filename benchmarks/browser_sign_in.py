"""A sign-in on the pages, as a browser without scripts does it."""

import re
from urllib.parse import urljoin

import requests

from benchmarks.load_generator import UnexpectedResponse
from benchmarks.request_cases import AUTHORIZE, REDIRECT_URI, VISITORS_PASSWORD, RequestFixtures

CSRF_TOKEN_FIELD = re.compile(rb'name="csrf_token" value="([^"]+)"')
_TIMEOUT_SECONDS = 30.0


def sign_in_visitor(known: RequestFixtures) -> None:
    """Sign the visitor in at a new browser: from the application's request to its code. Raises UnexpectedResponse."""
    with requests.Session() as browser:
        browser.trust_env = False
        address = f"http://{known.host}{AUTHORIZE}"
        answer = browser.get(address, params=known.visitor.authorization, timeout=_TIMEOUT_SECONDS)
        for name, value in (("login_name", known.visitor.login_name), ("password", VISITORS_PASSWORD)):
            token = CSRF_TOKEN_FIELD.search(answer.content)
            if token is None:
                raise UnexpectedResponse(f"{answer.url} has no form")
            form = {"csrf_token": token[1].decode(), name: value}
            answer = browser.post(answer.url, form, timeout=_TIMEOUT_SECONDS, allow_redirects=False)
            while answer.is_redirect and not answer.headers["Location"].startswith(REDIRECT_URI):
                address = urljoin(answer.url, answer.headers["Location"])
                answer = browser.get(address, timeout=_TIMEOUT_SECONDS, allow_redirects=False)
        if "code=" not in answer.headers.get("Location", ""):
            raise UnexpectedResponse(f"signing in ends at {answer.url} with {answer.status_code}")

"""A person who signs in on the pages, as their browser does it without scripts."""

import re
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, OpenerDirector, ProxyHandler, build_opener

from benchmarks.cases import AUTHORIZE
from benchmarks.load import LoadFailed
from benchmarks.stock import REDIRECT_URI, VISITORS_PASSWORD, Stock

TOKEN = re.compile(rb'name="csrf_token" value="([^"]+)"')
_PATIENCE = 30.0


class _NotToTheApplication(HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if newurl.startswith(REDIRECT_URI):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def sign_in(stock: Stock) -> None:
    """Let the visitor sign in at a new browser: from the application's request to its code. Raises LoadFailed."""
    browser = build_opener(ProxyHandler({}), HTTPCookieProcessor(), _NotToTheApplication())
    path = f"{AUTHORIZE}?{urlencode(stock.visitor.authorization)}"
    address, token = _page(browser, f"http://{stock.host}{path}")
    for field, value in (("login_name", stock.visitor.login_name), ("password", VISITORS_PASSWORD)):
        form = urlencode({"csrf_token": token, field: value}).encode()
        try:
            address, token = _page(browser, address, form)
        except HTTPError as answer:
            answer.close()
            if field == "password" and f"{REDIRECT_URI}?code=" in answer.headers.get("Location", ""):
                return
            raise LoadFailed(f"{address} answered {answer.code}") from None
    raise LoadFailed(f"signing in ends at {address}")


def _page(browser: OpenerDirector, address: str, form: bytes | None = None) -> tuple[str, str]:
    """Where one comes to, and the token of the form there."""
    with browser.open(address, form, timeout=_PATIENCE) as answer:
        found = TOKEN.search(answer.read())
        if found is None:
            raise LoadFailed(f"{answer.url} has no form")
        return answer.url, found[1].decode()

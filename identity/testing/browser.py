"""Browser: a person's browser over WebTest, which keeps cookies, follows redirects and fills in forms.

    browser = Browser(world)
    sent = party.new_request(scope="openid profile")             # identity.testing.relying_party
    browser.open(sent.url, initiator=party.origin)               # the application redirects the browser
    answer = browser.sign_in(set_password(world, person))
    tokens = party.obtain_tokens(answer, sent)                   # the application reads the redirect to its host

It stops at a redirect to another host; that response is for the application. Cookies are stored and sent as browsers
do (RFC 6265, and SameSite), so another site's form cannot sign in to the service in tests either.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from http.cookiejar import CookieJar as _ForeignJar
from http.cookiejar import DefaultCookiePolicy
from ipaddress import IPv6Address
from secrets import randbits
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from webtest import TestApp, Upload

from identity.domain.authentication import Proof
from identity.domain.sessions import Session
from identity.domain.users import PasswordHash, User
from identity.testing.cookies import HOST_PREFIX, CookieJar
from identity.testing.service_test_client import FORM_CONTENT_TYPE, FormData, encode_form
from identity.testing.world import World

PASSWORD = "correct horse battery staple"  # noqa: S105 - of people in tests

#: Maximum number of redirects.
MOST_REDIRECTS = 20
#: The id of a page's main form; other forms are single buttons.
PAGE_FORM_ID = "page-form"
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_STEP = re.compile(r"/login/[0-9a-f-]{36}/?(.*)")
_KEEPS_METHOD = frozenset({307, 308})
_REDIRECTS = frozenset({301, 302, 303}) | _KEEPS_METHOD


def set_password(world: World, person: User, password: str = PASSWORD, *, must_change: bool = False) -> str:
    """Let the person sign in with this password; returns the login name."""
    with world.transaction_services() as services:
        hashed = world.identity.process_state.hasher.hash(password)
        services.storage.users.set_password(
            PasswordHash(user_id=person.id, hash=hashed, changed_at=world.clock(), must_change=must_change)
        )
        subject = services.storage.users.find_subject(person.id)
    assert subject is not None, "there is no such person"
    return subject.login_name


def origin(url: str) -> str:
    """Scheme, host and port of a URL, as browsers compare them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def sec_fetch_site(source: str | None, url: str) -> str:
    """Sec-Fetch-Site of a request caused by the site ``source``; ``none`` for a URL that a person typed."""
    if source is None:
        return "none"
    if source == origin(url):
        return "same-origin"
    return "same-site" if _site(source) == _site(url) else "cross-site"


def _site(url: str) -> tuple[str, str]:
    """Scheme and registrable domain, for the host names in tests."""
    parts = urlsplit(url)
    return parts.scheme, ".".join((parts.hostname or "").split(".")[-2:])


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """A request of the browser, caused by the person or a redirect. ``source`` is the site that caused it."""

    method: str
    url: str
    body: bytes = b""
    source: str | None = None
    referrer: str = ""
    origin: str | None = None
    content_type: str = FORM_CONTENT_TYPE


class Browser:
    """One window of one person's browser; ``tab()`` opens another one that shares its cookies.

    ``page`` is the displayed response, ``answers`` are all responses that led there, including redirects, and
    ``url`` is the current URL. Each browser has its own network address, so that attempts are counted separately.
    """

    def __init__(self, world: World, *, user_agent: str = USER_AGENT, languages: str = "en") -> None:
        self.world = world
        self.user_agent = user_agent
        self.languages = languages
        self.cookies = CookieJar()
        self.address = str(IPv6Address((0x20010DB8 << 96) | randbits(96)))
        self.answers: list[Any] = []
        settings = world.identity.settings
        self.login_url = settings.login_url
        self._ours = frozenset(map(origin, (settings.issuer_url, settings.base_url, settings.login_url)))
        # WebTest's cookie jar is not a browser's: cookies are added and stored here.
        no_cookies = _ForeignJar(policy=DefaultCookiePolicy(allowed_domains=[]))
        self._app = TestApp(world.web_application, cookiejar=no_cookies)

    def tab(self) -> "Browser":
        """Another window of the same browser."""
        browser = Browser(self.world, user_agent=self.user_agent, languages=self.languages)
        browser.cookies, browser.address = self.cookies, self.address
        return browser

    @property
    def page(self) -> Any:
        assert self.answers, "nothing was opened yet"
        return self.answers[-1]

    @property
    def url(self) -> str:
        return str(self.page.request.url)

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def sign_in_step(self) -> str | None:
        """The displayed page of a sign-in: what follows ``/login/{request}``, empty for the first; None for other
        pages.
        """
        found = _STEP.fullmatch(self.path) if self.external_redirect is None else None
        return None if found is None else found[1]

    @property
    def external_redirect(self) -> str | None:
        """The redirect of the displayed response to another host; None if there is none."""
        location = self.page.headers.get("Location") if self.page.status_int in _REDIRECTS else None
        return None if location is None else urljoin(self.url, location)

    def open(self, url: str, *, initiator: str | None = None) -> Any:
        """Open a URL that the person typed, or by link or redirect of another site with origin ``initiator``."""
        return self._go(BrowserRequest("GET", self._absolute(url), source=initiator))

    def post_form(self, url: str, form: FormData, *, initiator: str) -> Any:
        """Post a form from a page of the site ``initiator``: without cookies, unless it is our own."""
        return self._go(
            BrowserRequest("POST", self._absolute(url), encode_form(form), initiator, f"{initiator}/", initiator)
        )

    def reload(self) -> Any:
        return self._go(BrowserRequest("GET", self.url, source=origin(self.url)))

    def click(self, text: str) -> Any:
        """Follow the link of the displayed page that contains this text."""
        found = [item for item in self.page.html.find_all("a", href=True) if text in item.get_text()]
        assert len(found) == 1, f"{len(found)} links hold {text!r} on\n{self.page}"
        return self._go(self._from_page("GET", urljoin(self.url, found[0]["href"])))

    def find_form(self, name: str | None = None) -> Any:
        """A WebTest form of the displayed page by id; by default its main form, or its only one."""
        forms = {id(item): item for item in self.page.forms.values()}
        if name is not None or PAGE_FORM_ID in self.page.forms:
            return self.page.forms[name or PAGE_FORM_ID]
        assert len(forms) == 1, f"{len(forms)} forms on\n{self.page}"
        return next(iter(forms.values()))

    def submit(
        self,
        fields: Mapping[str, str | bool | Upload] | None = None,
        *,
        button: tuple[str, str] | None = None,
        form: str | None = None,
    ) -> Any:
        """Fill in the form and submit it, with ``button`` (name and value) or its main button."""
        filled = self.find_form(form)
        for name, value in (fields or {}).items():
            filled[name] = value
            if "password" in name and isinstance(value, str):
                self.world.client.secrets.add(value)
        pairs = [(name, value) for name, value in filled.submit_fields() if name is not None]
        target = urljoin(self.url, filled.action or self.url)
        if button is not None:
            assert button in _buttons(filled), f"no button {button} on\n{self.page}"
            pairs.append(button)
        if filled.method.upper() == "GET":
            return self._go(self._from_page("GET", f"{target.partition('?')[0]}?{urlencode(pairs)}"))
        if filled.enctype == "multipart/form-data":
            files = [(name, item.filename, item.content) for name, item in pairs if isinstance(item, Upload)]
            texts = [(name, item) for name, item in pairs if not isinstance(item, Upload)]
            kind, body = self._app.encode_multipart(texts, files)
            return self._go(replace(self._from_page("POST", target, body), content_type=kind))
        return self._go(self._from_page("POST", target, urlencode(pairs).encode()))

    def sign_in(self, login_name: str, password: str = PASSWORD) -> Any:
        """Sign in from the displayed page: login name, unless it is known already, and password."""
        if "password" not in self.find_form().fields:
            self.submit({"login_name": login_name})
        assert "password" in self.find_form().fields, f"no page for the password, but\n{self.page}"
        return self.submit({"password": password})

    def select_account(self, text: str) -> Any:
        """Press the button of the account chooser that contains this text: an account, or another one."""
        found = [
            item for item in self.page.html.find_all("button", attrs={"name": "session"}) if text in item.get_text()
        ]
        assert len(found) == 1, f"{len(found)} accounts hold {text!r} on\n{self.page}"
        return self.submit(button=("session", found[0]["value"]), form=found[0].get("form"))

    def start_session(self, person: User, *, at: datetime | None = None) -> Session:
        """Sign a person in without pages, for tests of something else; ``at`` is when they entered the password."""
        with self.world.transaction_services() as services:
            subject = services.storage.users.find_subject(person.id)
            assert subject is not None, "there is no such person"
            proof = Proof("password", (Proof.PASSWORD_METHOD,), at or services.now)
            account, secret = services.sessions.start(subject, (), proofs=(proof,), user_agent=self.user_agent, at=at)
        secure = self.login_url.startswith("https://")
        name = f"{HOST_PREFIX if secure else ''}session-{account.session.id}"
        attributes = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")
        self._keep(self.login_url, f"{name}={secret}{attributes}")
        return account.session

    @property
    def session_cookies(self) -> frozenset[str]:
        return frozenset(name for name in self.cookies.names if name.removeprefix(HOST_PREFIX).startswith("session-"))

    def _absolute(self, url: str) -> str:
        return urljoin(self.login_url, url)

    def _from_page(self, method: str, url: str, body: bytes = b"") -> BrowserRequest:
        """A request caused by the displayed page, subject to its referrer policy."""
        page_origin = origin(self.url)
        same = page_origin == origin(url)
        policy = self.page.headers.get("Referrer-Policy", "strict-origin-when-cross-origin")
        hidden = policy == "no-referrer" or (policy == "same-origin" and not same)
        sent = self.url.partition("#")[0] if same else f"{page_origin}/"
        # Hiding the referrer also hides the origin (Fetch, append a request Origin header).
        named = "null" if hidden else page_origin
        return BrowserRequest(
            method, url, body, page_origin, "" if hidden else sent, named if method == "POST" else None
        )

    def _go(self, request: BrowserRequest) -> Any:
        """Send the request, and follow redirects to our own hosts."""
        site = sec_fetch_site(request.source, request.url)
        answers: list[Any] = []
        while True:
            assert len(answers) < MOST_REDIRECTS, f"redirects without end: {[answer.location for answer in answers]}"
            # The most foreign site of a redirect chain counts.
            site = max(site, sec_fetch_site(request.source, request.url), key=_FOREIGNNESS)
            answer = self._send(request, site)
            answers.append(answer)
            location = answer.headers.get("Location") if answer.status_int in _REDIRECTS else None
            target = None if location is None else urljoin(request.url, location)
            if target is None or origin(target) not in self._ours:
                self.answers = answers
                return answer
            request = _redirected(request, answer.status_int, target)

    def _send(self, request: BrowserRequest, site: str) -> Any:
        assert origin(request.url) in self._ours, f"{request.url} is none of our addresses"
        now = self.world.clock()
        webob_request = self._app.RequestClass.blank(request.url.partition("#")[0], method=request.method)
        headers = {
            "User-Agent": self.user_agent,
            "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "Accept-Language": self.languages,
            "Sec-Fetch-Site": site,
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
            "Cookie": self.cookies.header(request.url, now, method=request.method, site=site),
            "Referer": request.referrer,
            "Origin": request.origin or "",
        }
        if request.method == "POST":
            webob_request.body = request.body
            headers["Content-Type"] = request.content_type
        for name, value in headers.items():
            if value:
                webob_request.headers[name] = value
        webob_request.environ["REMOTE_ADDR"] = self.address
        answer = self._app.do_request(webob_request, status="*", expect_errors=True)
        for header in answer.headers.getall("Set-Cookie"):
            self._keep(request.url, header)
        return answer

    def _keep(self, url: str, header: str) -> None:
        self.cookies.store(url, header, self.world.clock())
        name, _, value = header.partition(";")[0].partition("=")
        # A theme is one of two words.
        if value and not name.endswith("theme"):
            self.world.client.secrets.add(value)


_FOREIGNNESS: Callable[[str], int] = ("none", "same-origin", "same-site", "cross-site").index


def _redirected(request: BrowserRequest, status: int, target: str) -> BrowserRequest:
    """The request after a redirect (Fetch, HTTP-redirect fetch): 301, 302 and 303 turn POST into GET."""
    if status in _KEEPS_METHOD:
        return BrowserRequest(request.method, target, request.body, request.source, request.referrer, request.origin)
    return BrowserRequest("GET", target, source=request.source, referrer=request.referrer)


def _buttons(form: Any) -> Sequence[tuple[str, str]]:
    """Name and value of each button of a WebTest form."""
    return [
        (name, field.value_if_submitted())
        for name, fields in form.fields.items()
        for field in fields
        if name is not None and hasattr(field, "value_if_submitted") and "disabled" not in field.attrs
    ]

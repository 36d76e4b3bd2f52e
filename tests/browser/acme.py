"""Acme: a service on this machine, and what people use it for: the application Invoices of the Acme GmbH."""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from itertools import count
from time import sleep
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, Resource
from identity.domain.users import HumanUser
from identity.services.access import THE_OPERATOR
from identity.services.attempts import TooManyAttempts
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.users import ChangeProfile, CreateHumanUser
from identity.testing.browser import PASSWORD, give_password
from identity.testing.clock import RunningClock
from identity.testing.post import Post, text_of
from identity.testing.relying_party import Asked, RelyingParty, Tokens
from identity.testing.service import KeyPool
from identity.testing.serving import loopback_socket, serving
from identity.testing.world import World
from tests.browser.chromium import Profile
from tests.browser.tab import Tab


@dataclass(frozen=True)
class Person:
    """Somebody who knows a password."""

    user: HumanUser
    login_name: str
    password: str = PASSWORD


@dataclass(frozen=True)
class Received:
    """What the application was sent."""

    method: str
    path: str
    members: dict[str, str]


class Application:
    """The program behind the redirect URI, on another site than the service (127.0.0.1, not localhost)."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        #: The same program under the name of the service: for browsers another origin of the same site, with cookies.
        self.other_origin = f"http://localhost:{port}"
        self.callback = f"{self.origin}/callback"
        self.onward = f"{self.origin}/onward"
        self.goodbye = f"{self.origin}/goodbye"
        self.received: list[Received] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """WSGI."""
        path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        members = dict(parse_qsl(body if environ["REQUEST_METHOD"] == "POST" else query, keep_blank_values=True))
        if path == "/favicon.ico":
            start_response("204 No Content", [])
            return []
        self.received.append(Received(environ["REQUEST_METHOD"], path, members))
        if path == "/onward":
            start_response("303 See Other", [("Location", f"{self.other_origin}/welcome?{query}")])
            return []
        page = self._page(path, members)
        start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store")])
        return [f"<!doctype html><html lang=en><title>Invoices</title>{page}".encode()]

    def link_to(self, url: str) -> str:
        """A page with a link to the address."""
        return f"{self.origin}/link?{urlencode({'to': url})}"

    def form_to(self, url: str, fields: dict[str, str], *, origin: str = "") -> str:
        """A page with a form that posts these fields to the address; by default on the application's own origin."""
        return f"{origin or self.origin}/form?{urlencode({'to': url, **fields})}"

    def frame_of(self, url: str) -> str:
        """A page that shows the address within itself."""
        return f"{self.origin}/frame?{urlencode({'to': url})}"

    def _page(self, path: str, members: dict[str, str]) -> str:
        to = html.escape(members.get("to", ""))
        if path == "/link":
            return f'<h1>Invoices</h1><a href="{to}">Sign in</a>'
        if path == "/frame":
            return f'<h1>Invoices</h1><iframe src="{to}" width="600" height="600"></iframe>'
        if path == "/form":
            fields = "".join(
                f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
                for name, value in members.items()
                if name != "to"
            )
            return f'<h1>Invoices</h1><form method="post" action="{to}">{fields}<button>Win a prize</button></form>'
        shown = html.escape(json.dumps(members, indent=1))
        fragment = "<pre id=fragment></pre><script>fragment.innerText = location.hash</script>"
        return f"<h1>Welcome to Invoices</h1><pre>{shown}</pre>{fragment}"


class Acme:
    """The service, the Acme GmbH, its application and its people."""

    def __init__(self, world: World, application: Application, post: Post | None) -> None:
        self.world = world
        self.application = application
        self.post = post
        self.url = world.identity.settings.login_url
        with world.transaction() as services:
            command = CreateOrganization(name="Acme GmbH", primary_domain="acme.example", registration=True)
            self.organization = services.organizations.create(command, by=THE_OPERATOR)
        self.party = self.an_application("Invoices", self.organization)
        self._numbers = count(1)

    # --- what there is ------------------------------------------------------------------------------------------------

    def an_application(self, name: str, organization: Organization, **members: Any) -> RelyingParty:
        """An application of the organization, which lets people come back to ``application``."""
        program = self.application
        return RelyingParty.of(
            self.world,
            name=name,
            project_id=self.world.a_project(organization).id,
            redirect_uri=program.callback,
            redirect_uris=(program.callback, program.onward),
            post_logout_redirect_uri=program.goodbye,
            development=True,
            **members,
        )

    def an_organization(self, name: str, domain: str) -> Organization:
        """Another organization."""
        return self.world.an_organization(name=name, primary_domain=domain)

    def an_address(self) -> str:
        """An address that nobody was written to yet: one address gets only so many mails."""
        return f"anna{next(self._numbers)}@acme.example"

    def a_person(
        self,
        given_name: str = "Anna",
        family_name: str = "Berg",
        *,
        organization: Organization | None = None,
        must_change: bool = False,
        email: str = "",
        user_name: str = "",
    ) -> Person:
        """Somebody new, by default of the Acme GmbH, who knows PASSWORD."""
        number = next(self._numbers)
        user_name = user_name or (given_name.lower() if number == 1 else f"{given_name.lower()}{number}")
        organization = organization or self.organization
        with self.world.transaction() as services:
            command = CreateHumanUser(user_name=user_name, given_name=given_name, family_name=family_name)
            user = services.users.create(organization.id, command)
            if email:
                services.users.change_profile(user.id, ChangeProfile(email=email))
        return Person(user, give_password(self.world, user, must_change=must_change))

    def a_manager(
        self,
        role: str = "IAM_OWNER",
        *,
        resource: Resource = INSTANCE,
        given_name: str = "Anna",
        family_name: str = "Berg",
        organization: Organization | None = None,
    ) -> Person:
        """Somebody new with a manager role, by default at the instance."""
        person = self.a_person(given_name, family_name, organization=organization)
        self.world.make_manager(person.user, role, resource=resource)
        return person

    # --- short ways ---------------------------------------------------------------------------------------------------

    def ask(self, tab: Tab, party: RelyingParty | None = None, **parameters: Any) -> Asked:
        """Open an authorization request, as an application has the browser do."""
        asked = (party or self.party).ask(**parameters)
        tab.open(asked.url)
        return asked

    def sign_in(self, tab: Tab, person: Person) -> None:
        """From the page for the login name on."""
        tab.send(login_name=person.login_name)
        tab.send(password=person.password)

    def start_session(self, profile: Profile, person: Person) -> str:
        """Sign the person in at the browser without a page; returns the session's id."""
        session = self.world.a_session(person.user)
        name, _, value = session.headers["Cookie"].partition("=")
        profile.keep({"name": name, "value": value, "url": self.url, "httpOnly": True, "sameSite": "Lax"})
        return session.id

    def tokens(self, tab: Tab, asked: Asked) -> Tokens:
        """What the application gets for the code with which the tab has come back to it, all of it checked."""
        assert tab.url.startswith(f"{asked.parameters['redirect_uri']}?"), f"{tab.url}\n{tab.text}"
        return self.redeemed(dict(parse_qsl(urlsplit(tab.url).query)), asked)

    def redeemed(self, members: dict[str, str], asked: Asked) -> Tokens:
        """The same for the members of an answer, however they came."""
        assert set(members) == {"code", "state", "iss"}, members
        assert members["state"] == asked.parameters["state"]
        assert members["iss"] == self.world.issuer
        answer = self.party.redeem(members["code"], asked)
        assert answer.status_int == 200, answer
        return Tokens(answer.json, self.party.check_id_token(answer.json["id_token"], asked))

    def try_passwords(self, person: Person, times: int) -> None:
        """So many wrong passwords of a stranger's; then the time has come for the next one, if there is one."""
        while times:
            try:
                with self.world.transaction() as services:
                    services.passwords.reserve(LoginName.of(person.login_name), {})
                times -= 1
            except TooManyAttempts as held:
                if held.exhausted:
                    return
                self.world.clock.advance(held.seconds)

    def link_in_mail(self) -> str:
        """The link in the one mail that went out by now."""
        (link,) = re.findall(rf"{self.url}/[^\s]+/[A-Za-z0-9]{{43}}", text_of(self.mail()))
        return str(link)

    def mail(self) -> EmailMessage:
        """The one mail that went out by now; it is taken out."""
        assert self.post is not None
        self._delivered(self.post)
        return self.post.only()

    def drop_mail(self) -> None:
        """Have what went out by now not be found by what comes next."""
        assert self.post is not None
        self._delivered(self.post)
        self.post.letters.clear()

    def _delivered(self, post: Post) -> None:
        """Have the mails that wait arrive; the service's own thread may be about to send them."""
        for _ in range(100):
            self.world.identity.senders["mail"].send_due()
            if post.letters:
                return
            sleep(0.05)

    def code_in_mail(self) -> str:
        """The code in the last mail that went out by now; the mails are taken out."""
        assert self.post is not None
        self._delivered(self.post)
        letters = [text_of(one) for one in self.post.letters]
        self.post.letters.clear()
        codes = [one for letter in letters for one in re.findall(r"^\d{6}$", letter, re.MULTILINE)]
        return str(codes[-1])


@contextmanager
def acme(settings: dict[str, str], key_pool: KeyPool, *, post: Post | None = None) -> Iterator[Acme]:
    """Serve it, with development settings, at http://localhost and a port; with ``post`` it can send mail."""
    bound, applications = loopback_socket(), loopback_socket()
    program = Application(applications.getsockname()[1])
    world = World(
        settings
        | (post.settings if post is not None else {})
        | {
            "identity.development": "true",
            "identity.issuer_url": f"http://localhost:{bound.getsockname()[1]}",
            "identity.password_min_length": "8",
        },
        clock=RunningClock(),
        key_pool=key_pool,
    )
    world.bootstrap()
    try:
        with serving(world.app, bound), serving(program, applications):
            yield Acme(world, program, post)
    finally:
        world.close()

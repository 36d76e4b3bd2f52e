"""An example company: a local service, and the application Invoices of the Acme GmbH."""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from itertools import count
from time import sleep
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.attempts import TooManyAttempts
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.users import ChangeProfile, CreateHumanUser
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import PASSWORD, set_password
from identity.testing.clock import TickingClock
from identity.testing.relying_party import ReceivedTokens, RelyingParty, SentAuthorizationRequest
from identity.testing.world import BrowserSession, World
from tests.browser.chromium import ChromiumProfile
from tests.browser.tab import Tab
from tests.http_server import loopback_socket, running_http_server
from tests.mail_server import ReceivingMailServer, message_text


@dataclass(frozen=True)
class CompanyUser:
    """A user with a password."""

    user: HumanUser
    login_name: str
    password: str = PASSWORD


@dataclass(frozen=True)
class ReceivedRequest:
    """A request to the application."""

    method: str
    path: str
    members: dict[str, str]


class InvoicesApplication:
    """The relying party behind the redirect URI, cross-site to the service (127.0.0.1 instead of localhost)."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        #: The same application on the service's host: another origin of the same site, so cookies are sent.
        self.other_origin = f"http://localhost:{port}"
        self.callback = f"{self.origin}/callback"
        self.onward = f"{self.origin}/onward"
        self.goodbye = f"{self.origin}/goodbye"
        self.received: list[ReceivedRequest] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The WSGI entry point."""
        path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        members = dict(parse_qsl(body if environ["REQUEST_METHOD"] == "POST" else query, keep_blank_values=True))
        if path == "/favicon.ico":
            start_response("204 No Content", [])
            return []
        self.received.append(ReceivedRequest(environ["REQUEST_METHOD"], path, members))
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
        """A page that embeds the address in a frame."""
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
        members_json = html.escape(json.dumps(members, indent=1))
        fragment = "<pre id=fragment></pre><script>fragment.innerText = location.hash</script>"
        return f"<h1>Welcome to Invoices</h1><pre>{members_json}</pre>{fragment}"


class ExampleCompany:
    """The service, the Acme GmbH, its application and its people."""

    def __init__(self, world: World, application: InvoicesApplication, post: ReceivingMailServer | None) -> None:
        self.world = world
        self.application = application
        self.post = post
        self.url = world.identity.settings.login_url
        with world.transaction_services() as services:
            command = CreateOrganization(name="Acme GmbH", primary_domain="acme.example", registration=True)
            self.organization = services.organizations.create(command, principal=Principal.OPERATOR)
        self.party = self.make_application("Invoices", self.organization)
        self._numbers = count(1)

    # --- fixture data -------------------------------------------------------------------------------------------------

    def make_application(self, name: str, organization: Organization, **members: Any) -> RelyingParty:
        """An application of the organization, with the redirect URIs of ``application``."""
        program = self.application
        return RelyingParty.register(
            self.world,
            name=name,
            project_id=self.world.make_project(organization).id,
            redirect_uri=program.callback,
            redirect_uris=(program.callback, program.onward),
            post_logout_redirect_uri=program.goodbye,
            development=True,
            **members,
        )

    def make_organization(self, name: str, domain: str) -> Organization:
        return self.world.make_organization(name=name, primary_domain=domain)

    def make_email_address(self) -> str:
        """A new email address, because mails per address are rate limited."""
        return f"anna{next(self._numbers)}@acme.example"

    def make_user(
        self,
        given_name: str = "Anna",
        family_name: str = "Berg",
        *,
        organization: Organization | None = None,
        must_change: bool = False,
        email: str = "",
        user_name: str = "",
    ) -> CompanyUser:
        """A new user with PASSWORD, by default of the Acme GmbH."""
        number = next(self._numbers)
        user_name = user_name or (given_name.lower() if number == 1 else f"{given_name.lower()}{number}")
        organization = organization or self.organization
        with self.world.transaction_services() as services:
            command = CreateHumanUser(user_name=user_name, given_name=given_name, family_name=family_name)
            user = services.users.create(organization.id, command)
            if email:
                services.users.change_profile(user.id, ChangeProfile(email=email))
        return CompanyUser(user, set_password(self.world, user, must_change=must_change))

    def make_manager(
        self,
        role: str = "IAM_OWNER",
        *,
        resource: Resource = Resource.INSTANCE,
        given_name: str = "Anna",
        family_name: str = "Berg",
        organization: Organization | None = None,
    ) -> CompanyUser:
        """A new user with a manager role, by default at the instance."""
        person = self.make_user(given_name, family_name, organization=organization)
        self.world.assign_manager_role(person.user, role, resource=resource)
        return person

    # --- shortcuts ----------------------------------------------------------------------------------------------------

    def ask(self, tab: Tab, party: RelyingParty | None = None, **parameters: Any) -> SentAuthorizationRequest:
        """Open an authorization request."""
        authorization = (party or self.party).new_request(**parameters)
        tab.open(authorization.url)
        return authorization

    def sign_in(self, tab: Tab, person: CompanyUser) -> None:
        """Sign in, starting at the login name page."""
        tab.send(login_name=person.login_name)
        tab.send(password=person.password)

    def start_session(self, profile: ChromiumProfile, person: CompanyUser) -> str:
        """Create a session of the user in the profile without opening a page; returns its id."""
        session = self.world.make_browser_session(person.user)
        self.keep_session(profile, session)
        return session.id

    def keep_session(self, profile: ChromiumProfile, session: BrowserSession) -> None:
        """Store the session's cookie in the profile."""
        name, _, value = session.headers["Cookie"].partition("=")
        profile.keep({"name": name, "value": value, "url": self.url, "httpOnly": True, "sameSite": "Lax"})

    def tokens(self, tab: Tab, authorization: SentAuthorizationRequest) -> ReceivedTokens:
        """Redeem the code with which the tab returned to the application; returns the checked tokens."""
        assert tab.url.startswith(f"{authorization.parameters['redirect_uri']}?"), f"{tab.url}\n{tab.text}"
        return self.redeemed(dict(parse_qsl(urlsplit(tab.url).query)), authorization)

    def redeemed(self, members: dict[str, str], authorization: SentAuthorizationRequest) -> ReceivedTokens:
        """Redeem the code in these response parameters."""
        assert set(members) == {"code", "state", "iss"}, members
        assert members["state"] == authorization.parameters["state"]
        assert members["iss"] == self.world.issuer
        answer = self.party.redeem(members["code"], authorization)
        assert answer.status_int == 200, answer
        return ReceivedTokens(answer.json, self.party.check_id_token(answer.json["id_token"], authorization))

    def try_passwords(self, person: CompanyUser, times: int) -> None:
        """Send wrong passwords, then advance the clock until the next attempt is allowed."""
        while times:
            try:
                with self.world.transaction_services() as services:
                    services.passwords.begin_attempt(LoginName.parse(person.login_name), {})
                times -= 1
            except TooManyAttempts as held:
                if held.exhausted:
                    return
                self.world.clock.advance(held.seconds)

    def link_in_mail(self) -> str:
        """The link in the only sent mail."""
        (link,) = re.findall(rf"{self.url}/[^\s]+/[A-Za-z0-9]{{43}}", message_text(self.mail()))
        return str(link)

    def mail(self) -> EmailMessage:
        """The only sent mail; removes it."""
        assert self.post is not None
        self._delivered(self.post)
        return self.post.pop_only_message()

    def drop_mail(self) -> None:
        """Discard all sent mails."""
        assert self.post is not None
        self._delivered(self.post)
        self.post.received_messages.clear()

    def take_all_mail(self) -> Sequence[EmailMessage]:
        """Send all waiting mails; returns and removes them."""
        assert self.post is not None
        waiting = True
        while waiting:
            self.world.identity.senders["mail"].send_due()
            with self.world.read_only_services() as services:
                # The service's background thread may be sending the last one.
                waiting = bool(services.queued_mails.list_newest(principal=Principal.OPERATOR))
        mails = list(self.post.received_messages)
        self.post.received_messages.clear()
        return mails

    def _delivered(self, post: ReceivingMailServer) -> None:
        """Deliver waiting mails; the service's background thread may be sending them already."""
        for _ in range(100):
            self.world.identity.senders["mail"].send_due()
            if post.received_messages:
                return
            sleep(0.05)

    def code_in_mail(self) -> str:
        """The code in the last sent mail; removes all mails."""
        assert self.post is not None
        self._delivered(self.post)
        letters = [message_text(received_message) for received_message in self.post.received_messages]
        self.post.received_messages.clear()
        codes = [item for letter in letters for item in re.findall(r"^\d{6}$", letter, re.MULTILINE)]
        return str(codes[-1])


@contextmanager
def acme(
    settings: dict[str, str], key_pool: RsaKeyPool, *, post: ReceivingMailServer | None = None
) -> Iterator[ExampleCompany]:
    """Serve the company with development settings at http://localhost:PORT; ``post`` enables mail."""
    bound, applications = loopback_socket(), loopback_socket()
    program = InvoicesApplication(applications.getsockname()[1])
    world = World(
        settings
        | (post.settings if post is not None else {})
        | {
            "identity.development": "true",
            "identity.issuer_url": f"http://localhost:{bound.getsockname()[1]}",
            "identity.password_min_length": "8",
        },
        clock=TickingClock(),
        key_pool=key_pool,
    )
    world.bootstrap()
    try:
        with running_http_server(world.app, bound), running_http_server(program, applications):
            yield ExampleCompany(world, program, post)
    finally:
        world.close()

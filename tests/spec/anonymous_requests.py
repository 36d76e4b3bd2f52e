"""Accounts that an anonymous client may name, and the requests that each public page and endpoint receives about
them.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from sqlalchemy import Engine, event

from identity.crypto.secrets import new_id, new_token
from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser
from identity.key_sets import KeySetCache
from identity.password_hashing import PasswordHasher
from identity.plugins.sql.statements import StatementText
from identity.plugins.upstream.http_client import ProviderHttpClient
from identity.plugins.upstream.provider_metadata import ProviderMetadataCache
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeProfile
from identity.testing.browser import Browser, BrowserRequest, encode_form, origin, set_password
from identity.testing.jwt_assertions import sign_assertion
from identity.testing.relying_party import RelyingParty
from identity.testing.service_test_client import Credentials
from identity.testing.world import World
from tests.plugins.login.conftest import opened
from tests.plugins.passkeys.conftest import PasskeyUser as Holder
from tests.plugins.passkeys.conftest import options_of
from tests.plugins.passkeys.software_authenticator import SoftwareAuthenticator, SoftwareCredential
from tests.plugins.upstream.fake_provider import CLIENT_ID, ISSUER, SECRET, FakeProvider

#: Everything an anonymous client sees of a response, without random values and its own input.
NormalizedResponse = tuple[int, tuple[tuple[str, str], ...], tuple[str, ...], str]
GUESS = "not the password of anybody"


@dataclass(frozen=True)
class AccountCase:
    """An account, existing or not, that an anonymous client names. ``link`` is the code of a void link."""

    kind: str
    user_name: str
    domain: str
    email: str = field(default_factory=lambda: f"{new_id()[-8:]}@people.example")
    id: str = field(default_factory=new_id)
    session: str = field(default_factory=new_id)
    link: str = field(default_factory=new_token)
    passkey: bytes = field(default_factory=lambda: os.urandom(32))

    @property
    def login_name(self) -> str:
        return f"{self.user_name}@{self.domain}"

    def masked(self, text: str) -> str:
        """Replaces names and random values, which differ between any two requests."""
        for item in (self.login_name, self.user_name, self.email, self.link):
            for written in {item, quote(item), quote_plus(item)}:
                text = text.replace(written, "NAME")
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9a-f]{32}\b|(?<=%2F)[0-9a-f]{32}\b", "ID", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?: UTC|Z)", "MOMENT", text)
        text = re.sub(r'(name="(?:csrf_token|ticket|once|version)" value=")[^"]*', r"\1TOKEN", text)
        # Browsers learn which passkey the service does not know. Its id is random and was just presented.
        text = re.sub(r'<div hidden data-passkey-unknown="[^"]*"></div>', "", text)
        text = re.sub(r'<script src="/static/passkey_signals-\w+\.js" defer></script>', "", text)
        return re.sub(r"(challenge&#34;: &#34;|state=|nonce=|code_challenge=)[\w.~-]+", r"\1RANDOM", text)

    def normalize(self, answer: Any) -> NormalizedResponse:
        compared_headers = [
            item for item in answer.headers.items() if item[0] not in ("Content-Length", "Set-Cookie", "X-Request-ID")
        ]
        headers = tuple(sorted((name, self.masked(value)) for name, value in compared_headers))
        cookies = tuple(self.masked(item.partition("=")[0]) for item in answer.headers.getall("Set-Cookie"))
        return (answer.status_int, headers, cookies, self.masked(answer.text))


@dataclass
class AnonymousScenario:
    """A service with an organization, its users and an application."""

    world: World
    organization: Organization
    party: RelyingParty
    provider: UpstreamProvider

    @classmethod
    def create(cls, world: World, *, straight: bool) -> "AnonymousScenario":
        """A scenario with an identity provider; with ``straight``, the domain of the login name redirects users
        there.
        """
        desk, fake_provider = world.app.registry.upstream, FakeProvider(world.clock)
        desk._http_client, desk.known = ProviderHttpClient(fake_provider), ProviderMetadataCache(KeySetCache())
        organization = world.make_organization()
        provider = world.make_upstream_provider(
            organization, issuer=ISSUER, client_id=CLIENT_ID, client_secret=SECRET, by_domain=straight
        )
        party = RelyingParty.register(world, project_id=world.make_project(organization).id)
        return cls(world, organization, party, provider)

    def browser(self) -> Browser:
        return Browser(self.world)

    def begin(self, **parameters: Any) -> Browser:
        """A browser that an application has sent to sign in."""
        browser = self.browser()
        opened(browser, self.party, **parameters)
        return browser

    def nobody(self) -> AccountCase:
        return AccountCase("nobody", f"zoe{new_id()[-8:]}", self.organization.primary_domain)

    def people(self) -> Iterator[AccountCase]:
        """Accounts in each possible state."""
        for kind, make in KINDS.items():
            user = self.world.make_human_user(self.organization)
            account_case = AccountCase(
                kind, user.user_name, self.organization.primary_domain, id=user.id, link=self._void_link(user)
            )
            with self.world.transaction_services() as services:
                services.users.change_profile(user.id, ChangeProfile(email=account_case.email))
            make(self, user)
            if kind in ("person", "has factors", "wants to leave"):
                account_case = replace(account_case, session=self.browser().start_session(user).id)
            yield account_case
        holder = Holder(self.world, self.organization)
        holder.browser.start_session(holder.user)
        holder.add()
        name, passkey = holder.user.user_name, holder.device.credentials[0].id
        yield AccountCase("has a passkey", name, self.organization.primary_domain, id=holder.user.id, passkey=passkey)
        robot = self.world.make_service_user_program(self.organization)
        yield AccountCase("service user", robot.user.user_name, self.organization.primary_domain, id=robot.id)

    def _void_link(self, user: HumanUser) -> str:
        with self.world.transaction_services() as services:
            link = services.passwords.issue_reset_link(user.id)
            subject = services.storage.users.find_subject(user.id)
            assert subject is not None
            services.sessions.revoke_access(subject)
        return link.rpartition("/")[2]


def _with_factors(scene: AnonymousScenario, user: HumanUser) -> None:
    set_password(scene.world, user)
    with scene.world.transaction_services() as services:
        subject = services.storage.users.find_subject(user.id)
        assert subject is not None
        for factor, secret in FACTORS.items():
            services.factors.enrol(subject, factor, secret)


def _deactivated(scene: AnonymousScenario, user: HumanUser) -> None:
    set_password(scene.world, user)
    with scene.world.transaction_services() as services:
        services.users.deactivate(user.id, principal=Principal.OPERATOR)


def _leaving(scene: AnonymousScenario, user: HumanUser) -> None:
    set_password(scene.world, user)
    with scene.world.transaction_services() as services:
        human_user = services.users.get(user.id)
        at = services.now
        services.storage.users.update(replace(human_user, deletion_at=at, version=human_user.version + 1))


#: Factors that a user may have enrolled.
FACTORS: Mapping[str, Mapping[str, Any]] = {
    "totp": {"secret": "A" * 32, "step": 0},
    "email_code": {},
    "recovery_codes": {"codes": {}},
}
KINDS: Mapping[str, Callable[[AnonymousScenario, HumanUser], object]] = {
    "person": lambda scene, user: set_password(scene.world, user),
    "has no password": lambda scene, user: None,
    "has factors": _with_factors,
    "deactivated": _deactivated,
    "wants to leave": _leaving,
    "has to change the password": lambda scene, user: set_password(scene.world, user, must_change=True),
}

Ask = Callable[[AnonymousScenario, AccountCase], list[Any]]

#: Form fields of the sign-in pages.
TYPED = {
    "password": GUESS,
    "code": "000000",
    "factor": "totp",
    "answer": "{}",
    "decision": "allow",
    "new_password": GUESS,
    "new_password_again": GUESS,
}


def named(scene: AnonymousScenario, account_case: AccountCase) -> tuple[Browser, str, str]:
    """A browser that submitted the login name, the path of its sign-in, and the form token."""
    browser = scene.begin(login_hint="")
    begun, token = browser.path, str(browser.find_form()["csrf_token"].value)
    browser.submit({"login_name": account_case.login_name})
    return browser, begun, token


def below(page: str) -> Ask:
    """Opens and submits a sign-in page after the login name was entered and before any proof."""

    def ask(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
        browser, begun, token = named(scene, account_case)
        found = [*browser.answers]
        browser.open(f"{begun}{page}")
        found += browser.answers
        sent = {**TYPED, "login_name": account_case.login_name, "session": account_case.session, "csrf_token": token}
        browser.post_form(f"{begun}{page}", sent, initiator=origin(browser.login_url))
        return [*found, *browser.answers]

    return ask


def registering(**typed: str) -> Ask:
    """Submits the registration form; ``typed`` maps fields to attributes of the account."""

    def ask(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
        browser = scene.begin(prompt="create")
        assert browser.sign_in_step == "register"
        nobody = scene.nobody()
        names = {"user_name": nobody.user_name, "email": nobody.email, "given_name": "A", "family_name": "B"}
        mine = {name: getattr(account_case, member) for name, member in typed.items()}
        browser.submit({**names, **mine, "password": GUESS, "password_again": GUESS})
        return browser.answers

    return ask


def resetting(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    browser = scene.browser()
    browser.open("/password/reset")
    browser.submit({"login_name": account_case.login_name})
    return browser.answers


def behind_link(start: str) -> Ask:
    """Opens a void or an invented link."""

    def ask(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
        browser = scene.browser()
        answers = [browser.open(f"{start}{account_case.link}")]
        sent = {"new_password": GUESS, "new_password_again": GUESS}
        return [*answers, browser.post_form(f"{start}{account_case.link}", sent, initiator=origin(browser.login_url))]

    return ask


def hinted(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    answers = []
    for prompt in (None, "login", "none", "create"):
        parameters = {} if prompt is None else {"prompt": prompt}
        browser = scene.begin(login_hint=account_case.login_name, **parameters)
        answers += browser.answers
    return answers


def as_client(ask: Callable[[World, Credentials], Any]) -> Ask:
    """Calls a client endpoint with the account's id as client_id and a guessed secret."""
    return lambda scene, account_case: [
        ask(scene.world, Credentials(name, new_token())) for name in (account_case.id, account_case.login_name)
    ]


def by_assertion(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    """Signs assertions with a foreign key, as a service user of that id or name and as a client."""
    world = scene.world
    stranger = world.make_service_user_program()
    answers = []
    for name in (account_case.id, account_case.user_name):
        claims = stranger.claims(iss=name, sub=name)
        answers.append(world.client.exchange_assertion(sign_assertion(claims, stranger.key, key_id=stranger.key_id)))
        secret = Credentials(name, new_token())
        answers.append(world.post_token_request(secret, {"grant_type": "client_credentials", "scope": "openid"}))
    return answers


def signing_out(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    parameters = {"logout_hint": account_case.login_name, "client_id": scene.party.client_id}
    return [scene.browser().open(f"/oauth/v2/endsession?{urlencode(parameters)}")]


def resumed(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    browser, begun, _ = named(scene, account_case)
    browser.open(f"/oauth/v2/authorize/{begun.split('/')[2]}")
    return browser.answers


def to_provider(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    browser, begun, _ = named(scene, account_case)
    browser.open(f"/login/upstream/{scene.provider.id}/for/{begun.split('/')[2]}")
    return browser.answers


def by_passkey(scene: AnonymousScenario, account_case: AccountCase) -> list[Any]:
    """Uses the id of the account's passkey with a foreign key; no page reveals that id."""
    browser, begun, _ = named(scene, account_case)
    browser.open(f"{begun}/passkeys/alone")
    options = options_of(browser)
    assert options["allowCredentials"] == []
    forged = SoftwareCredential(account_case.passkey, generate_private_key(SECP256R1()), account_case.id.encode())
    browser.submit({"answer": SoftwareAuthenticator().get(options, credential=forged)})
    assert not browser.session_cookies
    return browser.answers


#: Requests for each public route that accepts input which could name an account.
ANONYMOUS_REQUESTS: Mapping[str, tuple[Ask, ...]] = {
    "protocol.authorize": (hinted,),
    "protocol.authorize.resume": (resumed,),
    "protocol.token": (by_assertion,),
    "protocol.introspect": (as_client(lambda world, client: world.client.introspect(new_token(), client)),),
    "protocol.revoke": (as_client(lambda world, client: world.client.revoke(new_token(), client)),),
    "protocol.end_session": (signing_out,),
    "login.passkeys.alone": (below("/passkeys/alone"), by_passkey),
    "login.register": (below("/register"), registering(user_name="user_name"), registering(email="email")),
    "password.reset": (resetting,),
    "password.reset.link": (behind_link("/password/reset/"),),
    "email.link": (behind_link("/email/"),),
    "register.link": (behind_link("/register/"),),
    "upstream.go": (to_provider,),
}
#: Excluded: a passkey id is 32 random bytes, so only its owner can send it.
UNGUESSABLE = frozenset({by_passkey})
#: Routes that accept nothing that names an account, and why.
TAKES_NOTHING = {
    "protocol.metadata": "takes nothing",
    "protocol.keys": "takes nothing",
    "protocol.management.resource_metadata": "takes nothing",
    "protocol.userinfo": "a token, which is a secret",
    "protocol.pushed_authorization_request": "hints, which only the authorization endpoint looks up",
    "protocol.device_authorization": "nothing about an account",
    "signed_out.applications": "the id of a sign-out, which belongs to a browser",
    "protocol.end_session.resume": "the id of a page, which belongs to a browser",
    "upstream.answered": "a state, which belongs to a browser, and a code of whoever proved elsewhere who they are",
    "upstream.sign_out": "the id of a request to sign out, which belongs to a browser",
    "upstream.signed_out": "takes nothing",
    **dict.fromkeys(("home", "login", "sign_out", "signed_out", "account.leaving"), "the browser's own sessions"),
    **dict.fromkeys(("password.reset.sent", "password.changed", "email.confirmed"), "takes nothing"),
    **dict.fromkeys(("branding.style", "branding.logo", "preview.style"), "looks, which everybody sees"),
    **dict.fromkeys(("healthz", "readyz", "pages.static", "management.openapi", "management.browse"), "takes nothing"),
    **dict.fromkeys((f"documentation.{name}" for name in ("start", "file", "llms")), "the same for everyone"),
}


@dataclass
class RequestCost:
    """How many passwords were hashed, and how many statements were sent to the database."""

    hashes: int = 0
    statements: list[str] = field(default_factory=list)

    def like(self, request_cost: "RequestCost") -> bool:
        """True if response times cannot be distinguished: a hash takes as long as several hundred statements, so two
        more or fewer do not show.
        """
        more = abs(len(self.statements) - len(request_cost.statements))
        return self.hashes == request_cost.hashes and more <= 2 * self.hashes

    def note(self, statement: str) -> None:
        if not statement.startswith(("SAVEPOINT", "RELEASE", "PRAGMA")):
            self.statements.append(" ".join(statement.split()[:6]))


@contextmanager
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[RequestCost]:
    """Counts password hashes and SQL statements."""
    done = RequestCost()
    given_of, run_of = StatementText.bind_parameters, PasswordHasher._run

    def sent(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        done.note(statement)

    def count_bind(text: StatementText, parameters: dict[str, Any]) -> Any:
        done.note(text.sql)
        return given_of(text, parameters)

    def run(hasher: PasswordHasher, act: Any) -> Any:
        done.hashes += 1
        return run_of(hasher, act)

    with monkeypatch.context() as patched:
        # Prepared statements go to the driver directly and bypass SQLAlchemy's events.
        patched.setattr(StatementText, "bind_parameters", count_bind)
        patched.setattr(PasswordHasher, "_run", run)
        event.listen(Engine, "before_cursor_execute", sent)
        try:
            yield done
        finally:
            event.remove(Engine, "before_cursor_execute", sent)


def unsigned(
    scene: AnonymousScenario, route: Any, known: Mapping[str, str]
) -> Iterator[tuple[str, NormalizedResponse]]:
    """Responses of a route to requests without credentials; path parameters are known ids or ids that do not exist."""
    nobody = scene.nobody()
    path = re.sub(r"\{(\w+)\}", lambda part: known.get(part[1], new_id()), route.pattern)
    for method in ("GET", "POST"):
        body = b"" if method == "GET" else encode_form({"confirm": "yes"})
        browser = scene.browser()
        yield (
            method,
            nobody.normalize(browser._send(BrowserRequest(method, f"{browser.login_url}{path}", body), "none")),
        )

"""Security 5.2, 6.2, 10.7 and 19.1 to 19.6: of whatever counts once, one of racing uses counts, on every storage.

Codes of apps and on paper that are shown at several browsers race in ``tests/plugins/factors/test_races.py``, several
processes in ``tests/journeys/test_races.py``.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from transaction.interfaces import TransientError

from identity.domain.errors import DomainError
from identity.domain.records import NameSpace
from identity.plugins.upstream import states, unlinked
from identity.plugins.upstream.clients import Somebody
from identity.services.commands.policies import ChangePolicy
from identity.services.links import CodeKind
from identity.services.policies import INSTANCE as OF_INSTANCE
from identity.testing.browser import Browser
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.login.conftest import Person, opened
from tests.spec.factor_rows import ROWS

# Serializable transactions are refused until nobody tries again: the storage contract has them race.
pytestmark = pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")

TOGETHER, ROUNDS = 4, 3


@dataclass
class Race:
    """What each of those who race does, and whether it counted; or how often it did, where answers do not tell."""

    use: Callable[[], bool]
    counted: Callable[[Sequence[bool]], int] = sum


Prepare = Callable[[World], Race]


def a_link(kind: CodeKind) -> Prepare:
    def prepare(world: World) -> Race:
        person = None if kind is CodeKind.REGISTRATION else world.a_person()
        with world.transaction() as services:
            code = services.links.issue(kind, user=person).rpartition("/")[2]

        def use() -> bool:
            with world.transaction() as services:
                services.links.use(kind, code)
            return True

        return Race(use)

    return prepare


def a_new_password(world: World) -> Race:
    """By the link that was mailed for it."""
    person = world.a_person()
    with world.transaction() as services:
        code = services.passwords.issue_link(person.id).rpartition("/")[2]

    def use() -> bool:
        with world.transaction() as services:
            services.passwords.reset(code, "hash")
        return True

    return Race(use)


def a_ticket(world: World) -> Race:
    """What challenges of passkeys are: to add one, as second factor, and alone."""
    with world.reading() as services:
        ticket = services.tickets.issue("passkey", {}, timedelta(minutes=5))

    def use() -> bool:
        with world.transaction() as services:
            return services.tickets.use("passkey", ticket) is not None

    return Race(use)


def a_state_of_upstream(world: World) -> Race:
    """With the nonce that lies beside it."""
    provider, space = world.an_upstream_provider(), NameSpace("upstream")
    with world.transaction() as services:
        records, login_url = services.records(space), world.identity.settings.login_url
        begun = states.begin(
            records, provider, states.Purpose.SIGN_IN, "sign-in", login_url=login_url, now=services.now, anew=False
        )

    def use() -> bool:
        with world.transaction() as services:
            return states.use_up(services.records(space), begun.state)

    return Race(use)


def an_identity_to_link(world: World) -> Race:
    """What waits with a sign-in for whoever proves in it who they are."""
    provider, space = world.an_upstream_provider(), NameSpace("upstream")
    with world.transaction() as services:
        pending, _ = services.sign_ins.begin({})
        somebody = Somebody(issuer=provider.issuer, subject=pending.id, claims={})
        unlinked.keep(services.records(space), pending, provider, somebody)

    def use() -> bool:
        with world.transaction() as services:
            return unlinked.use_up(services.records(space), pending)

    return Race(use)


def a_waiting_sign_in(world: World) -> Race:
    """Somebody has proved to be it, and several windows are sent on with that."""
    person, party, browser = Person(world), RelyingParty.of(world), Browser(world)
    opened(browser, party, prompt="login")
    browser.submit({"login_name": person.login_name})
    page = parsed(browser)
    before = started(world, person)

    def use() -> bool:
        window = browser.tab()
        window.answers = [page]
        window.sign_in(person.login_name)
        assert window.page.status_int < 500
        return window.left_for is not None and "code=" in window.left_for

    return Race(use, lambda _: started(world, person) - before)


def parsed(browser: Browser) -> Any:
    """The shown page, whose forms are found before several windows look for them."""
    assert browser.page.forms
    return browser.page


def started(world: World, person: Person) -> int:
    return len(world.audit_events(event="session.started", object_id=person.user.id))


def an_authorization_code(world: World) -> Race:
    client = world.a_web_application()
    code = world.a_code(client, world.a_session())
    return Race(lambda: world.redeem(code, client).status_int == 200)


def a_refresh_token(world: World) -> Race:
    client = world.a_web_application()
    token = world.tokens(client)["refresh_token"]
    return Race(lambda: world.refresh(token, client).status_int == 200)


def an_assertion(world: World) -> Race:
    assertion = world.a_robot().assertion(jti="once", exp=world.clock.seconds + 60)
    return Race(lambda: world.client.assertion(assertion).status_int == 200)


def a_remembered_browser(world: World) -> Race:
    """It is forgotten once, and that is told once."""
    person = Person(world)
    with world.transaction() as services:
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        id_, _ = services.remembered_browsers.remember(subject, "a browser", timedelta(days=1))

    def use() -> bool:
        with world.transaction() as services:
            services.remembered_browsers.forget(subject, id_)
        return True

    return Race(use)


def a_deletion_of_an_account(world: World) -> Race:
    person = Person(world)
    world.operator.policies.change(OF_INSTANCE, ChangePolicy.of(account_deletion=True))
    with world.transaction() as services:
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        services.deletions.ask(subject)
    world.clock.advance(days=15)

    def use() -> bool:
        with world.transaction() as services:
            return services.deletions.carry_out(person.user.id)

    return Race(use)


def a_proof_of(factor: str) -> Prepare:
    """The same form, sent from several windows of the browser to which it belongs."""

    def prepare(world: World) -> Race:
        person, party, browser = Person(world), RelyingParty.of(world), Browser(world)
        held = ROWS[factor](world, person)
        if held.spare:
            ROWS["totp"](world, person)
        opened(browser, party)
        browser.sign_in(person.login_name)
        if browser.step != factor:
            browser.click("Use another way")
            browser.submit(press=("factor", factor))
        assert browser.step == factor
        page, right = parsed(browser), held.right(browser)

        def use() -> bool:
            window = browser.tab()
            window.answers = [page]
            window.submit(right)
            assert window.page.status_int < 500
            return True

        return Race(use, lambda _: started(world, person))

    return prepare


ONCE: Mapping[str, Prepare] = {
    **{f"link: {kind.value}": a_link(kind) for kind in CodeKind},
    **{f"proof: {factor}": a_proof_of(factor) for factor in ROWS if factor != "word"},
    "new password": a_new_password,
    "ticket": a_ticket,
    "state of upstream": a_state_of_upstream,
    "identity to link": an_identity_to_link,
    "waiting sign-in": a_waiting_sign_in,
    "authorization code": an_authorization_code,
    "refresh token": a_refresh_token,
    "assertion": an_assertion,
    "remembered browser": a_remembered_browser,
    "deletion of an account": a_deletion_of_an_account,
}


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world(**{"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"})


def patiently(use: Callable[[], bool]) -> bool:
    """Again where the database undoes a transaction that was in another's way (a deadlock), as for a request."""
    for _ in range(TOGETHER):
        with suppress(TransientError):
            return use()
    raise AssertionError("it was in the way of others each time")


@pytest.mark.parametrize("what", ONCE)
def test_of_racing_uses_one_counts(world: World, what: str) -> None:
    for _ in range(ROUNDS):
        race, start = ONCE[what](world), Barrier(TOGETHER)

        def run(_: int, race: Race = race, start: Barrier = start) -> bool:
            start.wait(30)
            with suppress(DomainError):
                return patiently(race.use)
            return False

        with ThreadPoolExecutor(TOGETHER) as threads:
            answers = list(threads.map(run, range(TOGETHER)))
        assert race.counted(answers) == 1, answers

"""Security 5.2, 6.2, 10.7 and 19.1 to 19.6: of concurrent uses of a single-use artifact, one succeeds, on every
storage.

``tests/plugins/factors/test_factor_races.py`` races authenticator and recovery codes across browsers,
``tests/journeys/test_process_races.py`` races several processes.
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
from identity.domain.records import RecordNamespace
from identity.plugins.upstream import authorization_states, unlinked_identities
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.services.commands.policies import ChangePolicy
from identity.services.one_time_links import OneTimeLinkKind
from identity.services.policies import INSTANCE_OWNER_ID as OF_INSTANCE
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser, opened
from tests.spec.factor_cases import ROWS

# Serializable transactions would fail because nothing retries here; the storage contract races them.
pytestmark = pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")

TOGETHER, ROUNDS = 4, 3


@dataclass
class Race:
    """The action of each competitor, and whether it succeeded, or how often if responses do not show it."""

    use: Callable[[], bool]
    counted: Callable[[Sequence[bool]], int] = sum


Prepare = Callable[[World], Race]


def make_link_race_factory(kind: OneTimeLinkKind) -> Prepare:
    def prepare(world: World) -> Race:
        person = None if kind is OneTimeLinkKind.REGISTRATION else world.make_human_user()
        with world.transaction_services() as services:
            code = services.one_time_links.issue(kind, user=person).rpartition("/")[2]

        def use() -> bool:
            with world.transaction_services() as services:
                services.one_time_links.redeem(kind, code)
            return True

        return Race(use)

    return prepare


def make_password_reset_race(world: World) -> Race:
    """A reset by the mailed link."""
    person = world.make_human_user()
    with world.transaction_services() as services:
        code = services.passwords.issue_reset_link(person.id).rpartition("/")[2]

    def use() -> bool:
        with world.transaction_services() as services:
            services.passwords.reset(code, "hash")
        return True

    return Race(use)


def make_form_token_race(world: World) -> Race:
    """Passkey challenges: enrolment, second factor, and passwordless."""
    with world.read_only_services() as services:
        ticket = services.form_tokens.issue("passkey", {}, timedelta(minutes=5))

    def use() -> bool:
        with world.transaction_services() as services:
            return services.form_tokens.redeem("passkey", ticket) is not None

    return Race(use)


def make_upstream_state_race(world: World) -> Race:
    """The state together with its nonce."""
    provider, space = world.make_upstream_provider(), RecordNamespace("upstream")
    with world.transaction_services() as services:
        records, login_url = services.record_service(space), world.identity.settings.login_url
        begun = authorization_states.store_state(
            records,
            provider,
            authorization_states.UpstreamSignInPurpose.SIGN_IN,
            "sign-in",
            login_url=login_url,
            now=services.now,
            anew=False,
        )

    def use() -> bool:
        with world.transaction_services() as services:
            return authorization_states.redeem_state(services.record_service(space), begun.state)

    return Race(use)


def make_unlinked_identity_race(world: World) -> Race:
    """An upstream identity that is linked once the user proves ownership of the account."""
    provider, space = world.make_upstream_provider(), RecordNamespace("upstream")
    with world.transaction_services() as services:
        pending, _ = services.sign_ins.begin({})
        external_user = ExternalUser(issuer=provider.issuer, subject=pending.id, claims={})
        unlinked_identities.store_unlinked_identity(services.record_service(space), pending, provider, external_user)

    def use() -> bool:
        with world.transaction_services() as services:
            return unlinked_identities.redeem_unlinked_identity(services.record_service(space), pending)

    return Race(use)


def make_pending_sign_in_race(world: World) -> Race:
    """The user is authenticated, and several windows continue."""
    person, party, browser = LoginUser(world), RelyingParty.register(world), Browser(world)
    opened(browser, party, prompt="login")
    browser.submit({"login_name": person.login_name})
    page = parsed(browser)
    before = started(world, person)

    def use() -> bool:
        window = browser.tab()
        window.answers = [page]
        window.sign_in(person.login_name)
        assert window.page.status_int < 500
        return window.external_redirect is not None and "code=" in window.external_redirect

    return Race(use, lambda _: started(world, person) - before)


def parsed(browser: Browser) -> Any:
    """The current page, parsed before several windows use its forms."""
    assert browser.page.forms
    return browser.page


def started(world: World, person: LoginUser) -> int:
    return len(world.audit_events(event="session.started", object_id=person.user.id))


def make_authorization_code_race(world: World) -> Race:
    client = world.make_web_application()
    code = world.make_code(client, world.make_browser_session())
    return Race(lambda: world.redeem(code, client).status_int == 200)


def make_refresh_token_race(world: World) -> Race:
    client = world.make_web_application()
    token = world.obtain_tokens(client)["refresh_token"]
    return Race(lambda: world.refresh(token, client).status_int == 200)


def make_assertion_race(world: World) -> Race:
    assertion = world.make_service_user_program().assertion(jti="once", exp=world.clock.seconds + 60)
    return Race(lambda: world.client.exchange_assertion(assertion).status_int == 200)


def make_remembered_browser_race(world: World) -> Race:
    """It is forgotten once, with one event."""
    person = LoginUser(world)
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        id_, _ = services.remembered_browsers.remember(subject, "a browser", timedelta(days=1))

    def use() -> bool:
        with world.transaction_services() as services:
            services.remembered_browsers.forget(subject, id_)
        return True

    return Race(use)


def make_account_deletion_race(world: World) -> Race:
    person = LoginUser(world)
    world.operator_services.policies.change(OF_INSTANCE, ChangePolicy.build(account_deletion=True))
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        services.account_deletions.schedule(subject)
    world.clock.advance(days=15)

    def use() -> bool:
        with world.transaction_services() as services:
            return services.account_deletions.delete_account(person.user.id)

    return Race(use)


def make_factor_race_factory(factor: str) -> Prepare:
    """The same form, sent from several windows of its browser."""

    def prepare(world: World) -> Race:
        person, party, browser = LoginUser(world), RelyingParty.register(world), Browser(world)
        factor_case = ROWS[factor](world, person)
        if factor_case.spare:
            ROWS["totp"](world, person)
        opened(browser, party)
        browser.sign_in(person.login_name)
        if browser.sign_in_step != factor:
            browser.click("Use another method")
            browser.submit(button=("factor", factor))
        assert browser.sign_in_step == factor
        page, right = parsed(browser), factor_case.right(browser)

        def use() -> bool:
            window = browser.tab()
            window.answers = [page]
            window.submit(right)
            assert window.page.status_int < 500
            return True

        return Race(use, lambda _: started(world, person))

    return prepare


ONCE: Mapping[str, Prepare] = {
    **{f"link: {kind.value}": make_link_race_factory(kind) for kind in OneTimeLinkKind},
    **{f"proof: {factor}": make_factor_race_factory(factor) for factor in ROWS if factor != "word"},
    "new password": make_password_reset_race,
    "ticket": make_form_token_race,
    "state of upstream": make_upstream_state_race,
    "identity to link": make_unlinked_identity_race,
    "waiting sign-in": make_pending_sign_in_race,
    "authorization code": make_authorization_code_race,
    "refresh token": make_refresh_token_race,
    "assertion": make_assertion_race,
    "remembered browser": make_remembered_browser_race,
    "deletion of an account": make_account_deletion_race,
}


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world(**{"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"})


def patiently(use: Callable[[], bool]) -> bool:
    """Retry after a deadlock, as a request does."""
    for _ in range(TOGETHER):
        with suppress(TransientError):
            return use()
    raise AssertionError("it was in the way of others each time")


@pytest.mark.sampled(17, thorough=34)
@pytest.mark.parametrize("artifact", ONCE)
def test_concurrent_uses_succeed_once(world: World, artifact: str) -> None:
    for _ in range(ROUNDS):
        race, start = ONCE[artifact](world), Barrier(TOGETHER)

        def run(_: int, race: Race = race, start: Barrier = start) -> bool:
            start.wait(30)
            with suppress(DomainError):
                return patiently(race.use)
            return False

        with ThreadPoolExecutor(TOGETHER) as threads:
            answers = list(threads.map(run, range(TOGETHER)))
        assert race.counted(answers) == 1, answers

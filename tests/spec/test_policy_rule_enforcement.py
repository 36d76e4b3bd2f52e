"""Security 19.9: each policy rule takes effect at the next request that depends on it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.applications import ConsentRule
from identity.domain.errors import Denied, Invalid
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.plugins.sql.stores.organizations import SqlOrganizationStore
from identity.services.attempts import TooManyAttempts
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.users import RegisterUser
from identity.services.policies import INSTANCE_OWNER_ID, PolicyCache, PolicyService
from identity.system_checks import SystemChecks
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

Rules = Callable[..., None]


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def rules(world: World, organization: Organization) -> Rules:
    """Sets rules of the organization."""

    def change(**rules: Any) -> None:
        with world.transaction_services() as services:
            services.policies.change(organization.id, ChangePolicy.build(**rules))

    return change


@pytest.fixture
def person(world: World, organization: Organization) -> HumanUser:
    return world.make_human_user(organization)


def signed_in(browser: Browser) -> bool:
    return "/login" not in str(browser.open("/account").request.path)


def _browser(world: World, person: HumanUser) -> Browser:
    browser = Browser(world)
    browser.start_session(person)
    return browser


def test_session_idle_timeout_follows_organization(world: World, person: HumanUser, rules: Rules) -> None:
    browser = _browser(world, person)
    world.clock.advance(minutes=20)
    assert signed_in(browser)
    world.clock.advance(minutes=20)
    rules(session_idle_age=timedelta(minutes=15))
    assert not signed_in(browser)
    rules(session_idle_age=timedelta(minutes=90))
    assert signed_in(browser)


def test_session_lifetime_follows_organization(world: World, person: HumanUser, rules: Rules) -> None:
    browser = _browser(world, person)
    world.clock.advance(hours=2)
    assert signed_in(browser)
    rules(session_max_age=timedelta(hours=1))
    assert not signed_in(browser)
    with world.read_only_services() as services:
        assert services.sessions.list_by_user(person.id) == ()
    rules(session_max_age=timedelta(hours=3))
    assert signed_in(browser)


def test_single_session_policy_ends_other_sessions(world: World, person: HumanUser, rules: Rules) -> None:
    first, second = _browser(world, person), _browser(world, person)
    assert (signed_in(first), signed_in(second)) == (True, True)
    rules(single_session=True)
    third = _browser(world, person)
    assert [signed_in(browser) for browser in (first, second, third)] == [False, False, True]
    # Signing in again in the same browser does not count as another one.
    fourth = _browser(world, world.make_human_user())
    assert [signed_in(browser) for browser in (third, fourth)] == [True, True]


@pytest.fixture
def owner_application(world: World, organization: Organization) -> Any:
    """An application of the user's organization."""
    return world.make_web_application(world.make_project(organization).id, consent=ConsentRule.WHEN_FOREIGN)


def test_consent_policy_covers_own_applications(
    world: World, person: HumanUser, rules: Rules, owner_application: Any
) -> None:
    session = world.make_browser_session(person)
    offline = "openid offline_access"
    code = world.make_code(owner_application, session, scope=offline)
    tokens = world.redeem(code, owner_application).json
    rules(consent="always")
    answer = session.authorize(owner_application, prompt="none")
    assert "error=consent_required" in answer.headers["Location"]
    assert world.refresh(tokens["refresh_token"], owner_application).json["error"] == "invalid_grant"
    rules(consent=None)
    assert "code=" in session.authorize(owner_application, prompt="none").headers["Location"]


def attempts(world: World, login_name: str, number: int) -> list[int | None]:
    """The wait before each of this many simultaneous attempts."""
    waits: list[int | None] = []
    for _ in range(number):
        try:
            with world.transaction_services() as services:
                refusal = services.passwords.begin_attempt(LoginName.parse(login_name), {}).reservation.error
                waits.append(None if refusal is None else refusal.seconds)
        except TooManyAttempts as refused:
            waits.append(refused.seconds)
    return waits


def test_attempt_limit_applies_to_known_and_unknown_names(
    world: World, person: HumanUser, rules: Rules, organization: Organization
) -> None:
    rules(free_attempts=2)
    for name in (person.user_name, "nobody-at-all"):
        assert attempts(world, f"{name}@{organization.primary_domain}", 4) == [None, None, 1, 1]
    user = world.make_human_user()
    home = world.operator_services.organizations.get(user.organization_id)
    assert attempts(world, f"{user.user_name}@{home.primary_domain}", 4) == [None] * 4


def test_bare_user_name_does_not_reveal_policy(world: World, person: HumanUser, rules: Rules) -> None:
    rules(free_attempts=2)
    assert attempts(world, person.user_name, 4) == attempts(world, "nobody-at-all", 4) == [None] * 4
    with world.transaction_services() as services:
        trial = services.passwords.begin_attempt(LoginName.parse(person.user_name), {})
    assert (trial.reservation.is_rate_limited, trial.stored_hash) == (True, None), "it is not looked at"


def test_account_lockout_follows_policy(
    world: World, person: HumanUser, rules: Rules, organization: Organization
) -> None:
    name = f"{person.user_name}@{organization.primary_domain}"
    for _ in range(6):
        attempts(world, name, 1)
        world.clock.advance(minutes=16)
    with world.read_only_services() as services:
        assert services.users.list_locked_ids([person], organization) == frozenset()
    rules(most_attempts=5)
    with world.read_only_services() as services:
        assert services.users.list_locked_ids([person], organization) == {person.id}
    with world.transaction_services() as services:
        trial = services.passwords.begin_attempt(LoginName.parse(name), {})
    assert (trial.reservation.is_rate_limited, trial.stored_hash) == (True, None), "it is not looked at"
    assert trial.reservation.error is not None
    assert trial.reservation.error.exhausted


REGISTERED = {"user_name": "new", "given_name": "Ada", "family_name": "Byron"}


def registering(world: World, organization: Organization, email: str) -> str:
    """The outcome without a mail server: immediate, closed, or refused because of the address."""
    command = RegisterUser(**REGISTERED, email=email)
    try:
        with world.transaction_services() as services:
            services.registration.register(organization, command, "hash")
    except Denied:
        return "closed"
    return "made"


def test_registration_needs_verified_email_by_policy(world: World, rules: Rules, organization: Organization) -> None:
    rules(registration_verified=True)
    assert registering(world, organization, "ada@acme.example") == "closed"
    client = world.make_web_application(world.make_project(organization).id)
    session = world.make_browser_session()
    assert "error=access_denied" in session.authorize(client, prompt="create").headers["Location"]
    rules(registration_verified=None)
    assert "/login/" in session.authorize(client, prompt="create").headers["Location"]
    assert registering(world, organization, "ada@acme.example") == "made"


def test_registration_needs_allowed_email_domain(
    make_world: WorldFactory,
) -> None:
    world = make_world(**{"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example"})
    organization = world.make_organization()
    with world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy.build(registration_domains=("acme.example",)))
    assert registering(world, organization, "ada@acme.example") == "closed", "without a link nothing is verified"

    def announced(email: str) -> str:
        with world.transaction_services() as services:
            command = RegisterUser(**REGISTERED, email=email)
            return services.registration.begin(organization, command, "hash").link

    for email in (
        "ada@evil.example",
        "ada@acme.example.evil.example",
        "ada@sub.acme.example",
        "acme.example@evil.example",
    ):
        with pytest.raises(Invalid) as refused:
            announced(email)
        assert refused.value.fields == {"email": "Use an email address of acme.example."}
    code = announced("Ada@ACME.example").rpartition("/")[2]
    with world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy.build(registration_domains=("other.example",)))
    with pytest.raises(Invalid), world.transaction_services() as services:
        services.registration.complete(code, RegisterUser(**REGISTERED, email="ada@other.example"))
    with world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy.build(registration_domains=None))
        subject = services.registration.complete(code, RegisterUser(**REGISTERED, email="ada@other.example"))
    assert subject.user.profile.email.lower() == "ada@acme.example"


def test_check_names_rules_that_prevent_sign_in(
    world: World, rules: Rules, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = world.identity
    offered = identity.process_state.capabilities

    def policy_problem(*second: str) -> str:
        monkeypatch.setattr(identity.process_state, "capabilities", replace(offered, second_factors=frozenset(second)))
        identity.process_state.policy_cache.entries.clear()
        checks = SystemChecks(
            identity.settings, identity.backend, identity.read_session, identity.process_state.sealer, ()
        )
        return checks.policies() or ""

    rules(second_factor="required_for_managers", factors=("password", "totp"))
    assert organization.name not in policy_problem("totp", "passkeys")
    assert organization.name in policy_problem("passkeys")
    assert organization.name in policy_problem()
    rules(second_factor=None)
    assert organization.name not in policy_problem()


def test_policy_change_reaches_other_processes_before_response(
    world: World, rules: Rules, organization: Organization
) -> None:
    """Each process has its own cache; this one receives no invalidation."""
    other_cache = PolicyCache()

    def cached() -> str | None:
        process = world.identity.process_state
        policy_cache, process.policy_cache = process.policy_cache, other_cache
        try:
            with world.read_only_services() as services:
                return services.policies.organization_policy(organization.id).consent
        finally:
            process.policy_cache = policy_cache

    assert cached() == "when_foreign"
    rules(consent="always")
    assert cached() == "always"
    rules(consent=None)
    assert cached() == "when_foreign"
    with world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(consent="always"))
    found = cached()
    with world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(consent=None))
    assert found == "always", "the instance's rules hold for all organizations"


@pytest.mark.storages("sqlite", "postgresql")  # memory caches no rules
def test_cached_policy_costs_no_query(world: World, person: HumanUser, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = _browser(world, person)
    statements: list[str] = []
    read = PolicyService.get_stored_policy

    def counting(self: PolicyService, owner: str) -> Any:
        statements.append(owner)
        return read(self, owner)

    monkeypatch.setattr(PolicyService, "get_stored_policy", counting)
    version = SqlOrganizationStore.get_rules_version
    monkeypatch.setattr(
        SqlOrganizationStore, "get_rules_version", lambda self: statements.append("version") or version(self)
    )
    world.clock.advance(seconds=6)
    assert signed_in(browser)
    assert set(statements) == {"version", "instance", person.organization_id}
    statements.clear()
    assert signed_in(browser)
    assert statements == []

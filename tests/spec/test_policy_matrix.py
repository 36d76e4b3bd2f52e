"""Security 18.2 and 19.9: every policy rule, with every grant and at every other place that could apply it.

A user has signed in, and an application has tokens. Then the organization sets a rule, and time passes. The table
lists the outcomes that differ from those without a rule; a rule, grant or response type without a row fails the
test.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any

import pyotp
import pytest

from identity.domain.applications import ConsentRule
from identity.domain.errors import Denied, Invalid
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.policies import Policy
from identity.domain.users import HumanUser
from identity.services.attempts import TooManyAttempts
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.users import RegisterUser
from identity.services.policies import INSTANCE_OWNER_ID as OF_INSTANCE
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import ReceivedTokens, RelyingParty, SentAuthorizationRequest
from identity.testing.service_test_client import JWT_BEARER, TOKEN_EXCHANGE
from identity.testing.world import World
from tests.plugins.device_authorization.device import DEVICE_CODE, Device, decide
from tests.plugins.login.conftest import LoginUser

pytestmark = pytest.mark.storages("memory")  # the rules are in the services

#: Time between the sign-in and the check.
MEANWHILE = timedelta(minutes=6)
SHORTER = timedelta(minutes=5)
#: Sixteen characters, but easy to guess.
WEAK = "monkeymonkey1234"


@dataclass
class PolicyMatrixScenario:
    """Users of one organization, each for effects that would disturb the others, and an application."""

    world: World
    organization: Organization
    party: RelyingParty
    ada: LoginUser
    browser: Browser
    tokens: ReceivedTokens
    code: str
    request: SentAuthorizationRequest
    #: A token for the management API.
    managing: str
    #: A user with an app, whose browser is remembered.
    bert: LoginUser
    remembered: Browser
    #: Approved in the browser of the first user.
    device: Device


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> SentAuthorizationRequest:
    authorization = party.new_request(**parameters)
    browser.open(authorization.url, initiator=party.origin)
    return authorization


def make_scenario(world: World) -> PolicyMatrixScenario:
    organization = world.make_organization()
    ada, bert = LoginUser(world, organization), LoginUser(world, organization)
    party = RelyingParty.register(
        world,
        project_id=world.make_project(organization).id,
        response_types=[
            response_type.value for response_type in world.identity.protocol_registry.response_types.values()
        ],
        grant_types=("authorization_code", "refresh_token", "client_credentials", DEVICE_CODE, TOKEN_EXCHANGE),
        consent=ConsentRule.WHEN_FOREIGN,
    )
    browser, remembered = Browser(world), Browser(world)
    browser.start_session(ada.user)
    tokens = party.sign_in_silently(browser, scope="openid offline_access")
    device = Device(world, party.credentials).start()
    decide(browser, device)
    managing = RelyingParty.register(world, may_manage=True)
    authorization = opened(browser, managing, scope=f"openid {world.audience_scope()}")
    browser.submit(button=("decision", "allow"))
    token = managing.obtain_tokens(browser.page, authorization).access_token
    authorization = opened(browser, party)
    secret = pyotp.random_base32()
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(bert.user.id)
        assert subject is not None
        services.factors.enrol(subject, "totp", {"secret": secret, "step": 0})
    opened(remembered, party)
    remembered.sign_in(bert.login_name)
    remembered.submit({"code": pyotp.TOTP(secret).at(world.clock()), "remember": True})
    return PolicyMatrixScenario(
        world,
        organization,
        party,
        ada,
        browser,
        tokens,
        party.extract_code(browser.page, authorization),
        authorization,
        token,
        bert,
        remembered,
        device,
    )


def answered(answer: Any) -> str:
    return str(answer.json.get("error", "granted"))


def silently(response_type: str) -> Callable[[PolicyMatrixScenario], str]:
    def ask(scene: PolicyMatrixScenario) -> str:
        authorization = opened(scene.browser, scene.party, response_type=response_type, prompt="none")
        return scene.party.check_response(scene.browser.page, authorization).get("error", "granted")

    return ask


def by_client_credentials(scene: PolicyMatrixScenario) -> str:
    form = {"grant_type": "client_credentials", "scope": "openid"}
    return answered(scene.world.post_token_request(scene.party.credentials, form))


def by_token_exchange(scene: PolicyMatrixScenario) -> str:
    """The application exchanges its own token."""
    form = {
        "grant_type": TOKEN_EXCHANGE,
        "subject_token": scene.tokens.access_token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    return answered(scene.world.post_token_request(scene.party.credentials, form))


#: Checks by grant type.
GRANTS: Mapping[str, Callable[[PolicyMatrixScenario], str]] = {
    "authorization_code": lambda scene: answered(scene.party.redeem(scene.code, scene.request)),
    "refresh_token": lambda scene: answered(scene.party.refresh(scene.tokens.refresh_token)),
    "client_credentials": by_client_credentials,
    DEVICE_CODE: lambda scene: answered(scene.device.poll()),
    TOKEN_EXCHANGE: by_token_exchange,
    JWT_BEARER: lambda scene: answered(scene.world.make_service_user_program(scene.organization).request_token()),
}


def at_the_api(scene: PolicyMatrixScenario) -> str:
    status = scene.world.client.call_management_api("/me", scene.managing).status_int
    return "granted" if status == 200 else str(status)


def by_password(scene: PolicyMatrixScenario) -> str:
    """Ada's sign-in in another browser."""
    browser = Browser(scene.world)
    opened(browser, scene.party)
    browser.sign_in(scene.ada.login_name)
    return "signed in" if browser.sign_in_step is None else str(browser.sign_in_step)


def where_she_was(scene: PolicyMatrixScenario) -> str:
    """Her previous session, after she has signed in elsewhere."""
    scene.browser.open("/account/profile")
    return "signed in" if scene.browser.sign_in_step is None else "asked"


def at_a_remembered_browser(scene: PolicyMatrixScenario) -> str:
    opened(scene.remembered, scene.party, prompt="login")
    scene.remembered.sign_in(scene.bert.login_name)
    return "signed in" if scene.remembered.sign_in_step is None else str(scene.remembered.sign_in_step)


def as_password(text: str) -> Callable[[PolicyMatrixScenario], str]:
    def choose(scene: PolicyMatrixScenario) -> str:
        try:
            with scene.world.read_only_services() as services:
                services.passwords.require_acceptable(text, None, owner=scene.organization, names=())
        except Invalid:
            return "refused"
        return "taken"

    return choose


def registering(scene: PolicyMatrixScenario) -> str:
    command = RegisterUser(user_name="new", given_name="Ada", family_name="Byron", email="ada@navy.example")
    try:
        with scene.world.transaction_services() as services:
            services.registration.register(scene.organization, command, "hash")
    except Denied:
        return "closed"
    return "open"


def deleting(scene: PolicyMatrixScenario) -> str:
    """Carl deletes his own account."""
    browser = Browser(scene.world)
    browser.start_session(scene.world.make_human_user(scene.organization))
    status = browser.open("/account/data/delete").status_int
    return "offered" if status == 200 else str(status)


def without_a_wait(scene: PolicyMatrixScenario) -> str:
    """The number of wrong passwords before the first delay."""
    name, free = LoginUser(scene.world, scene.organization).login_name, 0
    try:
        while True:
            with scene.world.transaction_services() as services:
                refusal = services.passwords.begin_attempt(LoginName.parse(name), {}).reservation.error
            if refusal is not None:
                raise refusal
            free += 1
    except TooManyAttempts:
        return str(free)


def in_the_end(scene: PolicyMatrixScenario) -> str:
    """The state of an account after six failures, waiting after each."""
    person = LoginUser(scene.world, scene.organization)
    try:
        for _ in range(6):
            with scene.world.transaction_services() as services:
                refusal = services.passwords.begin_attempt(LoginName.parse(person.login_name), {}).reservation.error
            if refusal is not None:
                raise refusal
            scene.world.clock.advance(minutes=16)
    except TooManyAttempts as refused:
        return "locked" if refused.exhausted else "held back"
    return "free"


def by_password_of_a_manager(scene: PolicyMatrixScenario) -> str:
    person = LoginUser(scene.world, scene.organization)
    browser = Browser(scene.world)
    opened(browser, scene.party)
    browser.sign_in(person.login_name, scene.world.operator_services.users.set_one_time_password(person.user.id))
    return "signed in" if browser.sign_in_step is None else str(browser.sign_in_step)


def by_password_and_address(scene: PolicyMatrixScenario) -> str:
    person = LoginUser(scene.world, scene.organization)
    with scene.world.transaction_services() as services:
        stored = services.storage.users.find(person.user.id)
        assert isinstance(stored, HumanUser)
        profile = replace(stored.profile, email=f"{stored.user_name}@navy.example", email_verified=True)
        services.storage.users.update(replace(stored, profile=profile, version=stored.version + 1))
    browser = Browser(scene.world)
    opened(browser, scene.party)
    browser.sign_in(profile.email)
    return "known" if browser.sign_in_step != "password" else "unknown"


#: Checks of all other effects, in the order in which they run.
POLICY_CHECKS: Mapping[str, Callable[[PolicyMatrixScenario], str]] = {
    "management API": at_the_api,
    "password": by_password,
    "password of a manager": by_password_of_a_manager,
    "address": by_password_and_address,
    "session before": where_she_was,
    "remembered browser": at_a_remembered_browser,
    "short password": as_password("k9#vQ2!xLp7&wZ4u"),
    "weak password": as_password(WEAK + WEAK + WEAK + WEAK),
    "registration": registering,
    "deletion": deleting,
    "free attempts": without_a_wait,
    "six failures": in_the_end,
}
#: Outcomes without a rule, if they are not "granted".
OTHERWISE = {
    "password": "signed in",
    "password of a manager": "signed in",
    "address": "known",
    "session before": "signed in",
    "remembered browser": "signed in",
    "short password": "taken",
    "weak password": "taken",
    "registration": "open",
    "deletion": "offered",
    "free attempts": "5",
    "six failures": "free",
}


@dataclass(frozen=True)
class PolicyMatrixRow:
    """A rule with a strict value, and the outcomes it changes; ``silent`` covers all response types."""

    value: Any
    differs: Mapping[str, str]
    silent: str = "granted"


#: Changed factors do not affect issued tokens: they were issued while the factor was allowed.
TABLE: Mapping[str, PolicyMatrixRow] = {
    "second_factor": PolicyMatrixRow(
        "required",
        {
            "authorization_code": "invalid_grant",
            DEVICE_CODE: "invalid_grant",
            TOKEN_EXCHANGE: "invalid_grant",
            "refresh_token": "invalid_grant",
            "management API": "401",
            "password": "factors/new",
            "password of a manager": "factors/new",
            "session before": "asked",
        },
        silent="interaction_required",
    ),
    "factors": PolicyMatrixRow(
        ("passkeys",),
        {
            "password": "password",
            "password of a manager": "password",
            "address": "unknown",
            "session before": "asked",
            "remembered browser": "password",
        },
        silent="login_required",
    ),
    "sign_in_by_email": PolicyMatrixRow(False, {"address": "unknown"}),
    "remember_browser": PolicyMatrixRow(0, {"remembered browser": "totp"}),
    "password_min_length": PolicyMatrixRow(20, {"short password": "refused"}),
    "password_strength": PolicyMatrixRow(4, {"weak password": "refused"}),
    "password_change_after_reset": PolicyMatrixRow(True, {"password of a manager": "password/change"}),
    "session_idle_age": PolicyMatrixRow(SHORTER, {"session before": "asked"}, silent="login_required"),
    "session_max_age": PolicyMatrixRow(SHORTER, {"session before": "asked"}, silent="login_required"),
    "single_session": PolicyMatrixRow(True, {"session before": "asked"}),
    "free_attempts": PolicyMatrixRow(2, {"free attempts": "2"}),
    "most_attempts": PolicyMatrixRow(5, {"six failures": "locked"}),
    "consent": PolicyMatrixRow(
        "always",
        {
            "authorization_code": "invalid_grant",
            DEVICE_CODE: "invalid_grant",
            TOKEN_EXCHANGE: "invalid_grant",
            "refresh_token": "invalid_grant",
            "password": "consent",
            "password of a manager": "consent",
            "remembered browser": "consent",
        },
        silent="consent_required",
    ),
    "registration": PolicyMatrixRow("off", {"registration": "closed"}),
    "registration_domains": PolicyMatrixRow(("acme.example",), {"registration": "closed"}),
    "registration_verified": PolicyMatrixRow(True, {"registration": "closed"}),
    "account_deletion": PolicyMatrixRow(False, {"deletion": "404"}),
    "passkey_upgrade": PolicyMatrixRow(
        True, {"password": "passkeys/upgrade", "password of a manager": "passkeys/upgrade"}
    ),
}
#: Instance rules that let an organization be stricter.
ALLOWED = {"remember_browser": 30, "account_deletion": True, "password_change_after_reset": False}


def observe(scene: PolicyMatrixScenario) -> dict[str, str]:
    types = [response_type.value for response_type in scene.world.identity.protocol_registry.response_types.values()]
    found = {f"silently {item}": silently(item)(scene) for item in types}
    return found | {name: look(scene) for name, look in {**GRANTS, **POLICY_CHECKS}.items()}


def expected(world: World, row: PolicyMatrixRow | None) -> dict[str, str]:
    types = [response_type.value for response_type in world.identity.protocol_registry.response_types.values()]
    silent = "granted" if row is None else row.silent
    usual = {
        **{f"silently {item}": silent for item in types},
        **dict.fromkeys((*GRANTS, *POLICY_CHECKS), "granted"),
        **OTHERWISE,
    }
    return usual if row is None else {**usual, **row.differs}


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    world = make_world(**{"identity.authorization_code_lifetime": "10m"})
    world.operator_services.policies.change(OF_INSTANCE, ChangePolicy.build(**ALLOWED))
    return world


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", [field.name for field in fields(Policy)])
def test_policy_rule_has_expected_effect(world: World, name: str) -> None:
    """For the rule's organization only; another one is unaffected."""
    row, scene, other_scene = TABLE[name], make_scenario(world), make_scenario(world)
    world.operator_services.policies.change(scene.organization.id, ChangePolicy.build(**{name: row.value}))
    world.clock.advance(seconds=MEANWHILE.total_seconds())
    assert row.differs or row.silent != "granted", "a rule does something"
    assert observe(other_scene) == expected(world, None)
    world.clock.reset()
    world.clock.advance(seconds=MEANWHILE.total_seconds())
    assert observe(scene) == expected(world, row)


def test_policy_matrix_covers_grants(world: World) -> None:
    assert world.identity.protocol_registry.grant_types.keys() == GRANTS.keys()

"""Security 18.2, 19.1 and 19.9: no combination of rule, user, factor and grant bypasses the second factor.

A user has signed in by password alone, and an application has their tokens and a code. Then the rule changes. From
then on each grant requires the second factor or is refused. A factor or grant of a plugin without a row here fails
the test.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.domain.policies import SecondFactorRule
from identity.plugin_host import installed_plugins
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID as OF_INSTANCE
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import DatabaseFactory, WorldCache, WorldFactory
from identity.testing.relying_party import ReceivedTokens, RelyingParty, SentAuthorizationRequest
from identity.testing.service_test_client import JWT_BEARER, TOKEN_EXCHANGE, Credentials
from identity.testing.world import World
from tests.plugins.device_authorization.device import DEVICE_CODE, Device, decide
from tests.plugins.login.conftest import LoginUser
from tests.spec.factor_cases import ROWS, FactorCase, settings_of, word_installed

PERSON, MANAGER, OWNER = "person", "org manager", "iam owner"
#: The users from whom each rule requires a second factor.
ROLES_BY_RULE = {
    SecondFactorRule.OFF: (),
    SecondFactorRule.OFFERED: (),
    SecondFactorRule.REQUIRED_FOR_IAM: (OWNER,),
    SecondFactorRule.REQUIRED_FOR_MANAGERS: (OWNER, MANAGER),
    SecondFactorRule.REQUIRED: (OWNER, MANAGER, PERSON),
}
#: Enrolled factors: none, each one, and recovery factors alone and beside another factor.
SET_UP: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    **{name: (name,) for name in ROWS},
    **{f"totp and {name}": ("totp", name) for name, item in ROWS.items() if item.spare},
}


@dataclass
class FactorMatrixCase:
    """The state when the rule changes."""

    world: World
    party: RelyingParty
    person: LoginUser
    role: str
    enrolled: tuple[FactorCase, ...]
    rule: SecondFactorRule
    browser: Browser
    tokens: ReceivedTokens
    code: str
    authorization_request: SentAuthorizationRequest
    managing: str
    #: Approved by the user.
    device: Device

    @property
    def needed(self) -> bool:
        return self.role in ROLES_BY_RULE[self.rule]

    @property
    def usable(self) -> tuple[FactorCase, ...]:
        """Factors the user can prove; recovery factors alone do not count."""
        return self.enrolled if any(not factor_case.spare for factor_case in self.enrolled) else ()

    @property
    def asked_at(self) -> str:
        """The page that asks for the missing factor."""
        if not self.usable:
            return "factors/new"
        return next(factor_case.name for factor_case in self.usable if not factor_case.spare)

    @property
    def step(self) -> str | None:
        """The page after the password, or None if sign-in is complete."""
        required = self.needed or (self.usable and self.rule is not SecondFactorRule.OFF)
        return self.asked_at if required else None

    @property
    def step_of_session(self) -> str | None:
        return self.asked_at if self.needed else None


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> SentAuthorizationRequest:
    authorization = party.new_request(**parameters)
    browser.open(authorization.url, initiator=party.origin)
    return authorization


@pytest.fixture(params=list(SecondFactorRule))
def rule(request: pytest.FixtureRequest) -> SecondFactorRule:
    return SecondFactorRule(request.param)


@pytest.fixture(params=[PERSON, MANAGER, OWNER])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def every_factor(world_cache: WorldCache, database_factory: DatabaseFactory, storage_name: str) -> Iterator[World]:
    """A service with all factors; the rules of its instance are reset afterwards."""
    with word_installed():
        world = world_cache.shared_world(storage_name, settings_of(database_factory, storage_name))
        assert world.app
    yield world
    world.clock.reset()
    world.operator_services.policies.change(OF_INSTANCE, ChangePolicy.build(second_factor=None))


@pytest.fixture(params=SET_UP)
def case(request: pytest.FixtureRequest, every_factor: World, rule: SecondFactorRule, role: str) -> FactorMatrixCase:
    world = every_factor
    world.operator_services.policies.change(OF_INSTANCE, ChangePolicy.build(second_factor=SecondFactorRule.OFFERED))
    types = [response_type.value for response_type in world.identity.protocol_registry.response_types.values()]
    grants = ("authorization_code", "refresh_token", "client_credentials", DEVICE_CODE, TOKEN_EXCHANGE)
    person = LoginUser(world)
    party = RelyingParty.register(world, may_manage=True, response_types=types, grant_types=grants)
    if role == MANAGER:
        world.assign_manager_role(person.user, "ORG_OWNER")
    if role == OWNER:
        world.assign_manager_role(person.user, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(person.user)
    authorization = opened(browser, party, scope=f"openid offline_access {world.audience_scope()}")
    if browser.sign_in_step == "consent":
        browser.submit(button=("decision", "allow"))
    tokens = party.obtain_tokens(browser.page, authorization)
    authorization = opened(browser, party)
    code = party.extract_code(browser.page, authorization)
    device = Device(world, party.credentials).start()
    decide(browser, device)
    factor_cases = tuple(ROWS[name](world, person) for name in SET_UP[request.param])
    world.operator_services.policies.change(OF_INSTANCE, ChangePolicy.build(second_factor=rule))
    return FactorMatrixCase(
        world,
        party,
        person,
        role,
        factor_cases,
        rule,
        browser,
        tokens,
        code,
        authorization,
        tokens.access_token,
        device,
    )


def by_session(case: FactorMatrixCase) -> None:
    for response_type in case.world.identity.protocol_registry.response_types.values():
        opened(case.browser, case.party, response_type=response_type.value)
        assert case.browser.sign_in_step == case.step_of_session, response_type.value


def silently(case: FactorMatrixCase) -> None:
    for response_type in case.world.identity.protocol_registry.response_types.values():
        authorization = opened(case.browser, case.party, response_type=response_type.value, prompt="none")
        if case.needed:
            case.party.check_error_response(case.browser.page, authorization, "interaction_required")
        else:
            assert "error" not in case.party.check_response(case.browser.page, authorization), response_type.value


def by_password(case: FactorMatrixCase) -> None:
    browser = Browser(case.world)
    opened(browser, case.party)
    browser.sign_in(case.person.login_name)
    assert browser.sign_in_step == case.step
    assert bool(browser.session_cookies) is (case.step is None)


def by_password_again(case: FactorMatrixCase) -> None:
    browser = Browser(case.world)
    browser.start_session(case.person.user)
    opened(browser, case.party, prompt="login")
    browser.sign_in(case.person.login_name)
    assert browser.sign_in_step == case.step


def by_refresh(case: FactorMatrixCase) -> None:
    answer = case.party.refresh(case.tokens.refresh_token)
    if case.needed:
        assert answer.json["error"] == "invalid_grant"
    else:
        assert answer.status_int == 200


def by_code(case: FactorMatrixCase) -> None:
    answer = case.party.redeem(case.code, case.authorization_request)
    if case.needed:
        assert answer.json["error"] == "invalid_grant"
    else:
        assert answer.status_int == 200


def by_device(case: FactorMatrixCase) -> None:
    """It was approved before the rule."""
    answer = case.device.poll()
    if case.needed:
        assert answer.json["error"] == "invalid_grant"
    else:
        assert answer.status_int == 200


def by_exchange(case: FactorMatrixCase) -> None:
    """Both an access token and an ID token, whose session proved no second factor."""
    for kind, token in (("access_token", case.tokens.access_token), ("id_token", case.tokens.id_token)):
        form = {"subject_token": token, "subject_token_type": f"urn:ietf:params:oauth:token-type:{kind}"}
        grant = {"grant_type": TOKEN_EXCHANGE, "scope": "openid", **form}
        answer = case.world.post_token_request(case.party.credentials, grant)
        if case.needed:
            assert answer.json["error"] == ("invalid_grant" if kind == "access_token" else "invalid_request")
        else:
            assert answer.status_int == 200, answer


def by_client_credentials(case: FactorMatrixCase) -> None:
    """The token is the application's; a user's password authenticates no client."""
    grant = {"grant_type": "client_credentials", "scope": "openid"}
    answer = case.world.post_token_request(case.party.credentials, grant)
    assert answer.status_int == 200
    claims = case.world.client.introspect(answer.json["access_token"], case.party.credentials).json
    assert case.person.user.id not in claims.values()
    as_person = case.world.post_token_request(Credentials(case.person.user.id, PASSWORD), grant)
    assert as_person.json["error"] == "invalid_client"


def by_assertion(case: FactorMatrixCase) -> None:
    """Human users have no keys, and a service user's key authenticates no other user."""
    robot = case.world.make_service_user_program(case.person.organization)
    assert robot.request_token(iss=case.person.user.id, sub=case.person.user.id).json["error"] == "invalid_grant"
    assert robot.request_token(sub=case.person.user.id).json["error"] == "invalid_grant"


def at_the_account(case: FactorMatrixCase) -> None:
    for path in ("/account/profile", "/account/security", "/account/password", "/account/data"):
        case.browser.open(path)
        assert case.browser.sign_in_step == (case.asked_at if case.needed else case.browser.sign_in_step), path
        if not case.needed and case.browser.sign_in_step is None:
            assert case.browser.page.status_int == 200


def at_the_console(case: FactorMatrixCase) -> None:
    case.browser.open(f"/console/organizations/{case.person.organization.id}/users")
    assert case.browser.sign_in_step == case.step_of_session
    if case.step_of_session is None:
        assert case.browser.page.status_int == (403 if case.role == PERSON else 200)


def at_the_api(case: FactorMatrixCase) -> None:
    answer = case.world.client.call_management_api("/me", case.managing)
    assert answer.status_int == (401 if case.needed else 200), answer


def by_password_and_factor(case: FactorMatrixCase) -> None:
    """Wrong input proves nothing and correct input proves the factor; only then do tokens name two factors."""
    # Another code can be mailed by then, and the earlier challenge has expired.
    case.world.clock.advance(hours=2)
    for factor_case in case.enrolled:
        browser = Browser(case.world)
        authorization = opened(browser, case.party)
        browser.sign_in(case.person.login_name)
        if case.step is not None and factor_case in case.usable:
            if browser.sign_in_step != factor_case.name:
                browser.click("Use another method")
                browser.submit(button=("factor", factor_case.name))
            browser.submit(factor_case.wrong(browser))
            assert (browser.sign_in_step, browser.session_cookies) == (factor_case.name, frozenset())
            browser.submit(factor_case.right(browser))
        if browser.sign_in_step is None:
            claims = case.party.obtain_tokens(browser.page, authorization).claims
            assert ("mfa" in claims["amr"]) is (case.step is not None), claims
        assert bool(browser.session_cookies) is (case.step is None or factor_case in case.usable)


def by_a_factor_alone(case: FactorMatrixCase) -> None:
    for factor_case in (factor_case for factor_case in case.enrolled if factor_case.alone):
        for enter, proves in ((factor_case.wrong, False), (factor_case.right, case.rule is not SecondFactorRule.OFF)):
            browser = Browser(case.world)
            opened(browser, case.party)
            browser.open(f"{browser.path}/{factor_case.name}/alone")
            browser.submit(enter(browser))
            assert bool(browser.session_cookies) is proves


def by_reset(case: FactorMatrixCase) -> None:
    with case.world.transaction_services() as services:
        link = services.passwords.issue_reset_link(case.person.user.id)
    browser = Browser(case.world)
    browser.open(link)
    browser.submit({"new_password": f"{PASSWORD} 2", "new_password_again": f"{PASSWORD} 2"})
    assert not browser.session_cookies
    opened(browser, case.party)
    browser.sign_in(case.person.login_name, f"{PASSWORD} 2")
    assert browser.sign_in_step == case.step
    assert bool(browser.session_cookies) is (case.step is None)


def by_one_time_password(case: FactorMatrixCase) -> None:
    password = case.world.operator_services.users.set_one_time_password(case.person.user.id)
    browser = Browser(case.world)
    opened(browser, case.party)
    browser.sign_in(case.person.login_name, password)
    assert browser.sign_in_step == (case.step or "password/change")
    browser.open(f"{'/'.join(browser.path.split('/')[:3])}/password/change")
    assert browser.sign_in_step == (case.step or "password/change"), "the password is not changed before the factor"


#: Grant type → check of what it issues.
GRANTS: Mapping[str, Callable[[FactorMatrixCase], None]] = {
    "refresh_token": by_refresh,
    "authorization_code": by_code,
    "client_credentials": by_client_credentials,
    DEVICE_CODE: by_device,
    JWT_BEARER: by_assertion,
    TOKEN_EXCHANGE: by_exchange,
}
GRANT_ATTEMPTS = (
    by_session,
    silently,
    by_password,
    by_password_again,
    *GRANTS.values(),
    at_the_account,
    at_the_console,
    at_the_api,
    by_password_and_factor,
    by_a_factor_alone,
    by_reset,
    by_one_time_password,
)


@pytest.mark.sampled(12, thorough=40)
def test_second_factor_cannot_be_bypassed(case: FactorMatrixCase) -> None:
    problems = []
    for attempt in GRANT_ATTEMPTS:
        try:
            attempt(case)
        except AssertionError as problem:
            problems.append(f"{attempt.__name__}: {str(problem)[:300]}")
    assert problems == []


def test_factor_matrix_covers_factors_and_grants(every_factor: World) -> None:
    identity = every_factor.identity
    assert identity.protocol_registry.factors.keys() == ROWS.keys(), "see factor_cases.py"
    assert identity.protocol_registry.grant_types.keys() == GRANTS.keys()
    spare = {
        name: (factor.is_backup, factor.is_passwordless) for name, factor in identity.protocol_registry.factors.items()
    }
    assert spare == {name: (item.spare, item.alone) for name, item in ROWS.items()}
    offering = {name for name, point in installed_plugins().items() if hasattr(point.load(), "identity_factors")}
    assert offering <= set(identity.plugin_host.plugin_names), "all of them are in the world of this test"


@pytest.mark.parametrize("rule", list(SecondFactorRule))
def test_registration_enrols_required_factor(make_world: WorldFactory, rule: SecondFactorRule) -> None:
    world = make_world(**{"identity.second_factor": rule.value})
    party = RelyingParty.register(world, name="Invoices")
    with world.transaction_services() as services:
        client = services.applications.find_client(party.client_id)
        assert client is not None
        organization = client.organization
        services.storage.organizations.update(
            replace(organization, registration=True, version=organization.version + 1)
        )
    browser = Browser(world)
    opened(browser, party, prompt="create")
    names = {"user_name": "grace", "given_name": "Grace", "family_name": "Hopper", "email": "grace@navy.example"}
    browser.submit({**names, "password": PASSWORD, "password_again": PASSWORD})
    assert browser.sign_in_step == "registered"
    assert not browser.session_cookies
    browser.submit()
    needed = rule is SecondFactorRule.REQUIRED
    assert browser.sign_in_step == ("factors/new" if needed else None), browser.page
    assert bool(browser.session_cookies) is not needed

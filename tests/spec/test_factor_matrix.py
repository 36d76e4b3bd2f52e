"""Security 19.1 and 19.9: whatever the rule, whoever it is, by whichever way: no way around a second factor.

A person has signed in, and an application has tokens and a code of theirs, all by the password alone. Then the rule
changes. From then on each way in asks for what the rule asks, or refuses.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from identity.domain.permissions import INSTANCE
from identity.domain.policies import SecondFactor
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE as OF_INSTANCE
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import Asked, RelyingParty, Tokens
from identity.testing.world import World
from tests.plugins.login.conftest import Person

PERSON, MANAGER, OWNER = "person", "org manager", "iam owner"
#: Of whom each rule asks a second factor.
ASKED = {
    SecondFactor.OFF: (),
    SecondFactor.OFFERED: (),
    SecondFactor.REQUIRED_FOR_IAM: (OWNER,),
    SecondFactor.REQUIRED_FOR_MANAGERS: (OWNER, MANAGER),
    SecondFactor.REQUIRED: (OWNER, MANAGER, PERSON),
}
STEPS = {True: "totp", False: "factors/new"}


@dataclass
class Case:
    """What there is when the rule changes."""

    world: World
    party: RelyingParty
    person: Person
    who: str
    enrolled: bool
    rule: SecondFactor
    browser: Browser
    tokens: Tokens
    code: str
    asked: Asked
    managing: str

    @property
    def needed(self) -> bool:
        return self.who in ASKED[self.rule]

    @property
    def step(self) -> str | None:
        """Where somebody is held who has just given the password; None for nowhere."""
        if self.needed:
            return STEPS[self.enrolled]
        return "totp" if self.enrolled and self.rule is not SecondFactor.OFF else None

    @property
    def step_of_session(self) -> str | None:
        return STEPS[self.enrolled] if self.needed else None


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> Asked:
    asked = party.ask(**parameters)
    browser.open(asked.url, by=party.origin)
    return asked


@pytest.fixture(params=list(SecondFactor))
def rule(request: pytest.FixtureRequest) -> SecondFactor:
    return SecondFactor(request.param)


@pytest.fixture(params=[PERSON, MANAGER, OWNER])
def who(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["without", "enrolled"])
def case(request: pytest.FixtureRequest, make_world: MakeWorld, rule: SecondFactor, who: str) -> Case:
    world = make_world(**{"identity.second_factor": "offered"})
    person, party = Person(world), RelyingParty.of(world, may_manage=True)
    if who == MANAGER:
        world.make_manager(person.user, "ORG_OWNER")
    if who == OWNER:
        world.make_manager(person.user, "IAM_OWNER", resource=INSTANCE)
    browser = Browser(world)
    browser.start_session(person.user)
    asked = opened(browser, party, scope=f"openid offline_access {world.audience_scope()}")
    if browser.step == "consent":
        browser.submit(press=("decision", "allow"))
    tokens = party.tokens(browser.page, asked)
    asked = opened(browser, party)
    code = party.code(browser.page, asked)
    if request.param:
        subject = world.operator.storage.users.find_subject(person.user.id)
        world.operator.factors.add(subject, "totp", {"secret": "A" * 32, "step": 0})
    world.operator.policies.change(OF_INSTANCE, ChangePolicy.of(second_factor=rule))
    return Case(world, party, person, who, request.param, rule, browser, tokens, code, asked, tokens.access_token)


def by_session(case: Case) -> None:
    opened(case.browser, case.party)
    assert case.browser.step == case.step_of_session


def silently(case: Case) -> None:
    asked = opened(case.browser, case.party, prompt="none")
    if case.needed:
        case.party.refused(case.browser.page, asked, "interaction_required")
    else:
        case.party.code(case.browser.page, asked)


def by_password(case: Case) -> None:
    browser = Browser(case.world)
    opened(browser, case.party)
    browser.sign_in(case.person.login_name)
    assert browser.step == case.step
    assert bool(browser.session_cookies) is (case.step is None)


def by_password_again(case: Case) -> None:
    browser = Browser(case.world)
    browser.start_session(case.person.user)
    opened(browser, case.party, prompt="login")
    browser.sign_in(case.person.login_name)
    assert browser.step == case.step


def by_refresh(case: Case) -> None:
    answer = case.party.refresh(case.tokens.refresh_token)
    if case.needed:
        assert answer.json["error"] == "invalid_grant"
    else:
        assert answer.status_int == 200


def by_code(case: Case) -> None:
    answer = case.party.redeem(case.code, case.asked)
    if case.needed:
        assert answer.json["error"] == "invalid_grant"
    else:
        assert answer.status_int == 200


def at_the_account(case: Case) -> None:
    for path in ("/account/profile", "/account/security", "/account/password", "/account/data"):
        case.browser.open(path)
        assert case.browser.step == (STEPS[case.enrolled] if case.needed else case.browser.step), path
        if not case.needed and case.browser.step is None:
            assert case.browser.page.status_int == 200


def at_the_console(case: Case) -> None:
    case.browser.open(f"/console/organizations/{case.person.organization.id}/users")
    assert case.browser.step == case.step_of_session
    if case.step_of_session is None:
        assert case.browser.page.status_int == (403 if case.who == PERSON else 200)


def at_the_api(case: Case) -> None:
    answer = case.world.client.management("/me", case.managing)
    assert answer.status_int == (401 if case.needed else 200), answer


def by_reset(case: Case) -> None:
    with case.world.transaction() as services:
        link = services.passwords.issue_link(case.person.user.id)
    browser = Browser(case.world)
    browser.open(link)
    browser.submit({"new_password": f"{PASSWORD} 2", "new_password_again": f"{PASSWORD} 2"})
    assert not browser.session_cookies
    opened(browser, case.party)
    browser.sign_in(case.person.login_name, f"{PASSWORD} 2")
    assert browser.step == case.step
    assert bool(browser.session_cookies) is (case.step is None)


def by_one_time_password(case: Case) -> None:
    password = case.world.operator.users.one_time_password(case.person.user.id)
    browser = Browser(case.world)
    opened(browser, case.party)
    browser.sign_in(case.person.login_name, password)
    assert browser.step == (case.step or "password/change")
    browser.open(f"{'/'.join(browser.path.split('/')[:3])}/password/change")
    assert browser.step == (case.step or "password/change"), "the password is not changed before the factor"


WAYS = (
    by_session,
    silently,
    by_password,
    by_password_again,
    by_refresh,
    by_code,
    at_the_account,
    at_the_console,
    at_the_api,
    by_reset,
    by_one_time_password,
)


def test_there_is_no_way_around(case: Case) -> None:
    problems = []
    for way in WAYS:
        try:
            way(case)
        except AssertionError as problem:
            problems.append(f"{way.__name__}: {str(problem)[:300]}")
    assert problems == []


@pytest.mark.parametrize("rule", list(SecondFactor))
def test_whoever_registers_sets_one_up_where_everybody_needs_one(make_world: MakeWorld, rule: SecondFactor) -> None:
    world = make_world(**{"identity.second_factor": rule.value})
    party = RelyingParty.of(world, name="Invoices")
    with world.transaction() as services:
        client = services.applications.find_client(party.client_id)
        assert client is not None
        here = client.organization
        services.storage.organizations.update(replace(here, registration=True, version=here.version + 1))
    browser = Browser(world)
    opened(browser, party, prompt="create")
    names = {"user_name": "grace", "given_name": "Grace", "family_name": "Hopper", "email": "grace@navy.example"}
    browser.submit({**names, "password": PASSWORD, "password_again": PASSWORD})
    needed = rule is SecondFactor.REQUIRED
    assert browser.step == ("factors/new" if needed else None), browser.page
    assert bool(browser.session_cookies) is not needed

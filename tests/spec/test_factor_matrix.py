"""Security 18.2, 19.1 and 19.9: whatever the rule, the person, the factor, the grant: no way around a second factor.

A person has signed in, and an application has tokens and a code of theirs, all by the password alone. Then the rule
changes. From then on each way in asks for what the rule asks, or refuses. A factor or grant that a plugin offers and
that has no row here fails.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from identity.domain.permissions import INSTANCE
from identity.domain.policies import SecondFactor
from identity.plugin_host import installed
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE as OF_INSTANCE
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import Databases, MakeWorld, Worlds
from identity.testing.relying_party import Asked, RelyingParty, Tokens
from identity.testing.service_client import JWT_BEARER, Credentials
from identity.testing.world import World
from tests.plugins.login.conftest import Person
from tests.spec.factor_rows import ROWS, Held, settings_of, word_installed

PERSON, MANAGER, OWNER = "person", "org manager", "iam owner"
#: Of whom each rule asks a second factor.
ASKED = {
    SecondFactor.OFF: (),
    SecondFactor.OFFERED: (),
    SecondFactor.REQUIRED_FOR_IAM: (OWNER,),
    SecondFactor.REQUIRED_FOR_MANAGERS: (OWNER, MANAGER),
    SecondFactor.REQUIRED: (OWNER, MANAGER, PERSON),
}
#: What people have set up: nothing, each factor, and what only stands in for others by itself and beside one.
SET_UP: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    **{name: (name,) for name in ROWS},
    **{f"totp and {name}": ("totp", name) for name, one in ROWS.items() if one.spare},
}


@dataclass
class Case:
    """What there is when the rule changes."""

    world: World
    party: RelyingParty
    person: Person
    who: str
    held: tuple[Held, ...]
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
    def usable(self) -> tuple[Held, ...]:
        """What they can prove: what only stands in for others is nothing by itself."""
        return self.held if any(not one.spare for one in self.held) else ()

    @property
    def asked_at(self) -> str:
        """Where somebody is held who has to prove more."""
        if not self.usable:
            return "factors/new"
        return next(one.name for one in self.usable if not one.spare)

    @property
    def step(self) -> str | None:
        """Where somebody is held who has just given the password; None for nowhere."""
        asked = self.needed or (self.usable and self.rule is not SecondFactor.OFF)
        return self.asked_at if asked else None

    @property
    def step_of_session(self) -> str | None:
        return self.asked_at if self.needed else None


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


@pytest.fixture
def every_factor(worlds: Worlds, databases: Databases, storage_name: str) -> Iterator[World]:
    """A service with all factors; the rules of its instance are taken back afterwards."""
    with word_installed():
        world = worlds.shared(storage_name, settings_of(databases, storage_name))
        assert world.app
    yield world
    world.clock.reset()
    world.operator.policies.change(OF_INSTANCE, ChangePolicy.of(second_factor=None))


@pytest.fixture(params=SET_UP)
def case(request: pytest.FixtureRequest, every_factor: World, rule: SecondFactor, who: str) -> Case:
    world = every_factor
    world.operator.policies.change(OF_INSTANCE, ChangePolicy.of(second_factor=SecondFactor.OFFERED))
    types = [one.value for one in world.identity.protocol.response_types.values()]
    grants = ("authorization_code", "refresh_token", "client_credentials")
    person = Person(world)
    party = RelyingParty.of(world, may_manage=True, response_types=types, grant_types=grants)
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
    held = tuple(ROWS[name](world, person) for name in SET_UP[request.param])
    world.operator.policies.change(OF_INSTANCE, ChangePolicy.of(second_factor=rule))
    return Case(world, party, person, who, held, rule, browser, tokens, code, asked, tokens.access_token)


def by_session(case: Case) -> None:
    for one in case.world.identity.protocol.response_types.values():
        opened(case.browser, case.party, response_type=one.value)
        assert case.browser.step == case.step_of_session, one.value


def silently(case: Case) -> None:
    for one in case.world.identity.protocol.response_types.values():
        asked = opened(case.browser, case.party, response_type=one.value, prompt="none")
        if case.needed:
            case.party.refused(case.browser.page, asked, "interaction_required")
        else:
            assert "error" not in case.party.read(case.browser.page, asked), one.value


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


def by_client_credentials(case: Case) -> None:
    """They are an application's own and stand for nobody; who knows a person's password is no client."""
    grant = {"grant_type": "client_credentials", "scope": "openid"}
    answer = case.world.as_client(case.party.credentials, grant)
    assert answer.status_int == 200
    told = case.world.client.introspect(answer.json["access_token"], case.party.credentials).json
    assert case.person.user.id not in told.values()
    as_person = case.world.as_client(Credentials(case.person.user.id, PASSWORD), grant)
    assert as_person.json["error"] == "invalid_client"


def by_assertion(case: Case) -> None:
    """People have no keys, and the key of a program stands for nobody else."""
    robot = case.world.a_robot(case.person.organization)
    assert robot.token(iss=case.person.user.id, sub=case.person.user.id).json["error"] == "invalid_grant"
    assert robot.token(sub=case.person.user.id).json["error"] == "invalid_grant"


def at_the_account(case: Case) -> None:
    for path in ("/account/profile", "/account/security", "/account/password", "/account/data"):
        case.browser.open(path)
        assert case.browser.step == (case.asked_at if case.needed else case.browser.step), path
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


def by_password_and_factor(case: Case) -> None:
    """What is wrong proves nothing, and what is right proves it: tokens tell of two factors then and never else."""
    # By then another code can be mailed, and what was asked for before is gone.
    case.world.clock.advance(hours=2)
    for one in case.held:
        browser = Browser(case.world)
        asked = opened(browser, case.party)
        browser.sign_in(case.person.login_name)
        if case.step is not None and one in case.usable:
            if browser.step != one.name:
                browser.click("Use another way")
                browser.submit(press=("factor", one.name))
            browser.submit(one.wrong(browser))
            assert (browser.step, browser.session_cookies) == (one.name, frozenset())
            browser.submit(one.right(browser))
        if browser.step is None:
            claims = case.party.tokens(browser.page, asked).claims
            assert ("mfa" in claims["amr"]) is (case.step is not None), claims
        assert bool(browser.session_cookies) is (case.step is None or one in case.usable)


def by_a_factor_alone(case: Case) -> None:
    for one in (one for one in case.held if one.alone):
        for tell, proves in ((one.wrong, False), (one.right, case.rule is not SecondFactor.OFF)):
            browser = Browser(case.world)
            opened(browser, case.party)
            browser.open(f"{browser.path}/{one.name}/alone")
            browser.submit(tell(browser))
            assert bool(browser.session_cookies) is proves


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


#: What each grant of the token endpoint gives out.
GRANTS: Mapping[str, Callable[[Case], None]] = {
    "refresh_token": by_refresh,
    "authorization_code": by_code,
    "client_credentials": by_client_credentials,
    JWT_BEARER: by_assertion,
}
WAYS = (
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


def test_there_is_no_way_around(case: Case) -> None:
    problems = []
    for way in WAYS:
        try:
            way(case)
        except AssertionError as problem:
            problems.append(f"{way.__name__}: {str(problem)[:300]}")
    assert problems == []


def test_every_factor_and_every_grant_has_its_row(every_factor: World) -> None:
    identity = every_factor.identity
    assert identity.protocol.factors.keys() == ROWS.keys(), "see factor_rows.py"
    assert identity.protocol.grants.keys() == GRANTS.keys()
    spare = {name: (one.spare, one.alone) for name, one in identity.protocol.factors.items()}
    assert spare == {name: (one.spare, one.alone) for name, one in ROWS.items()}
    offering = {name for name, point in installed().items() if hasattr(point.load(), "identity_factors")}
    assert offering <= set(identity.host.names), "all of them are in the world of this test"


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
    assert browser.step == "registered"
    assert not browser.session_cookies
    browser.submit()
    needed = rule is SecondFactor.REQUIRED
    assert browser.step == ("factors/new" if needed else None), browser.page
    assert bool(browser.session_cookies) is not needed

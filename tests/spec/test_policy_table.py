"""Security 18.2 and 19.9: every rule of a policy, through every grant and at every other place where it could count.

A person has signed in, and an application has what that brought. Then their organization sets a rule, and some time
goes by. The table says where it comes out otherwise than without the rule; a rule, a grant or a response type that
stands in no row fails.
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
from identity.services.policies import INSTANCE as OF_INSTANCE
from identity.testing.browser import Browser
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import Asked, RelyingParty, Tokens
from identity.testing.service_client import JWT_BEARER
from identity.testing.world import World
from tests.plugins.login.conftest import Person

pytestmark = pytest.mark.storages("memory")  # what rules do is the services'

#: What goes by between the sign-in and the look at what has come of it.
MEANWHILE = timedelta(minutes=6)
SHORTER = timedelta(minutes=5)
#: Sixteen characters, and easy to guess.
WEAK = "monkeymonkey1234"


@dataclass
class Scene:
    """People of one organization, each for what would disturb the others, and an application of it."""

    world: World
    organization: Organization
    party: RelyingParty
    ada: Person
    browser: Browser
    tokens: Tokens
    code: str
    asked: Asked
    #: For the management API.
    managing: str
    #: Has an app, and a browser that is remembered.
    bert: Person
    remembered: Browser


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> Asked:
    asked = party.ask(**parameters)
    browser.open(asked.url, by=party.origin)
    return asked


def a_scene(world: World) -> Scene:
    organization = world.an_organization()
    ada, bert = Person(world, organization), Person(world, organization)
    party = RelyingParty.of(
        world,
        project_id=world.a_project(organization).id,
        response_types=[one.value for one in world.identity.protocol.response_types.values()],
        grant_types=("authorization_code", "refresh_token", "client_credentials"),
        consent=ConsentRule.WHEN_FOREIGN,
    )
    browser, remembered = Browser(world), Browser(world)
    browser.start_session(ada.user)
    tokens = party.signed_in(browser, scope="openid offline_access")
    managing = RelyingParty.of(world, may_manage=True)
    asked = opened(browser, managing, scope=f"openid {world.audience_scope()}")
    browser.submit(press=("decision", "allow"))
    token = managing.tokens(browser.page, asked).access_token
    asked = opened(browser, party)
    secret = pyotp.random_base32()
    with world.transaction() as services:
        subject = services.storage.users.find_subject(bert.user.id)
        assert subject is not None
        services.factors.add(subject, "totp", {"secret": secret, "step": 0})
    opened(remembered, party)
    remembered.sign_in(bert.login_name)
    remembered.submit({"code": pyotp.TOTP(secret).at(world.clock()), "remember": True})
    return Scene(
        world,
        organization,
        party,
        ada,
        browser,
        tokens,
        party.code(browser.page, asked),
        asked,
        token,
        bert,
        remembered,
    )


def answered(answer: Any) -> str:
    return str(answer.json.get("error", "granted"))


def silently(response_type: str) -> Callable[[Scene], str]:
    def ask(scene: Scene) -> str:
        asked = opened(scene.browser, scene.party, response_type=response_type, prompt="none")
        return scene.party.read(scene.browser.page, asked).get("error", "granted")

    return ask


def by_client_credentials(scene: Scene) -> str:
    form = {"grant_type": "client_credentials", "scope": "openid"}
    return answered(scene.world.as_client(scene.party.credentials, form))


#: By grant type.
GRANTS: Mapping[str, Callable[[Scene], str]] = {
    "authorization_code": lambda scene: answered(scene.party.redeem(scene.code, scene.asked)),
    "refresh_token": lambda scene: answered(scene.party.refresh(scene.tokens.refresh_token)),
    "client_credentials": by_client_credentials,
    JWT_BEARER: lambda scene: answered(scene.world.a_robot(scene.organization).token()),
}


def at_the_api(scene: Scene) -> str:
    status = scene.world.client.management("/me", scene.managing).status_int
    return "granted" if status == 200 else str(status)


def by_password(scene: Scene) -> str:
    """Ada, at another browser."""
    browser = Browser(scene.world)
    opened(browser, scene.party)
    browser.sign_in(scene.ada.login_name)
    return "signed in" if browser.step is None else str(browser.step)


def where_she_was(scene: Scene) -> str:
    """Looked at after she has signed in elsewhere."""
    scene.browser.open("/account/profile")
    return "signed in" if scene.browser.step is None else "asked"


def at_a_remembered_browser(scene: Scene) -> str:
    opened(scene.remembered, scene.party, prompt="login")
    scene.remembered.sign_in(scene.bert.login_name)
    return "signed in" if scene.remembered.step is None else str(scene.remembered.step)


def as_password(text: str) -> Callable[[Scene], str]:
    def choose(scene: Scene) -> str:
        try:
            with scene.world.reading() as services:
                services.passwords.check(text, None, whose=scene.organization, names=())
        except Invalid:
            return "refused"
        return "taken"

    return choose


def registering(scene: Scene) -> str:
    command = RegisterUser(user_name="new", given_name="Ada", family_name="Byron", email="ada@navy.example")
    try:
        with scene.world.transaction() as services:
            services.registration.register(scene.organization, command, "hash")
    except Denied:
        return "closed"
    return "open"


def deleting(scene: Scene) -> str:
    """By Carl's own hand."""
    browser = Browser(scene.world)
    browser.start_session(scene.world.a_person(scene.organization))
    status = browser.open("/account/data/delete").status_int
    return "offered" if status == 200 else str(status)


def without_a_wait(scene: Scene) -> str:
    """How many wrong passwords in a row make nobody wait."""
    name, free = Person(scene.world, scene.organization).login_name, 0
    try:
        while True:
            with scene.world.transaction() as services:
                refusal = services.passwords.reserve(LoginName.of(name), {}).reservation.refusal
            if refusal is not None:
                raise refusal
            free += 1
    except TooManyAttempts:
        return str(free)


def in_the_end(scene: Scene) -> str:
    """What becomes of an account after six failures, each after the wait for it."""
    person = Person(scene.world, scene.organization)
    try:
        for _ in range(6):
            with scene.world.transaction() as services:
                refusal = services.passwords.reserve(LoginName.of(person.login_name), {}).reservation.refusal
            if refusal is not None:
                raise refusal
            scene.world.clock.advance(minutes=16)
    except TooManyAttempts as refused:
        return "locked" if refused.exhausted else "held back"
    return "free"


def by_password_of_a_manager(scene: Scene) -> str:
    person = Person(scene.world, scene.organization)
    browser = Browser(scene.world)
    opened(browser, scene.party)
    browser.sign_in(person.login_name, scene.world.operator.users.one_time_password(person.user.id))
    return "signed in" if browser.step is None else str(browser.step)


def by_password_and_address(scene: Scene) -> str:
    person = Person(scene.world, scene.organization)
    with scene.world.transaction() as services:
        stored = services.storage.users.find(person.user.id)
        assert isinstance(stored, HumanUser)
        profile = replace(stored.profile, email=f"{stored.user_name}@navy.example", email_verified=True)
        services.storage.users.update(replace(stored, profile=profile, version=stored.version + 1))
    browser = Browser(scene.world)
    opened(browser, scene.party)
    browser.sign_in(profile.email)
    return "known" if browser.step != "password" else "unknown"


#: Where else rules count, in the order in which they are looked at.
PLACES: Mapping[str, Callable[[Scene], str]] = {
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
#: What comes of it without a rule; it is "granted" everywhere else.
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
class Row:
    """A rule at a tight value, and where that comes out otherwise; ``silent`` of all response types."""

    value: Any
    differs: Mapping[str, str]
    silent: str = "granted"


#: What an application holds stays with it where ways to sign in change: it was given when the way was allowed.
TABLE: Mapping[str, Row] = {
    "second_factor": Row(
        "required",
        {
            "authorization_code": "invalid_grant",
            "refresh_token": "invalid_grant",
            "management API": "401",
            "password": "factors/new",
            "password of a manager": "factors/new",
            "session before": "asked",
        },
        silent="interaction_required",
    ),
    "factors": Row(
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
    "sign_in_by_email": Row(False, {"address": "unknown"}),
    "remember_browser": Row(0, {"remembered browser": "totp"}),
    "password_min_length": Row(20, {"short password": "refused"}),
    "password_strength": Row(4, {"weak password": "refused"}),
    "password_change_after_reset": Row(True, {"password of a manager": "password/change"}),
    "session_idle_age": Row(SHORTER, {"session before": "asked"}, silent="login_required"),
    "session_max_age": Row(SHORTER, {"session before": "asked"}, silent="login_required"),
    "single_session": Row(True, {"session before": "asked"}),
    "free_attempts": Row(2, {"free attempts": "2"}),
    "most_attempts": Row(5, {"six failures": "locked"}),
    "consent": Row(
        "always",
        {
            "authorization_code": "invalid_grant",
            "refresh_token": "invalid_grant",
            "password": "consent",
            "password of a manager": "consent",
            "remembered browser": "consent",
        },
        silent="consent_required",
    ),
    "registration": Row("off", {"registration": "closed"}),
    "registration_domains": Row(("acme.example",), {"registration": "closed"}),
    "registration_verified": Row(True, {"registration": "closed"}),
    "account_deletion": Row(False, {"deletion": "404"}),
}
#: What the instance allows, so that an organization can allow less.
ALLOWED = {"remember_browser": 30, "account_deletion": True, "password_change_after_reset": False}


def seen(scene: Scene) -> dict[str, str]:
    types = [one.value for one in scene.world.identity.protocol.response_types.values()]
    found = {f"silently {one}": silently(one)(scene) for one in types}
    return found | {name: look(scene) for name, look in {**GRANTS, **PLACES}.items()}


def expected(world: World, row: Row | None) -> dict[str, str]:
    types = [one.value for one in world.identity.protocol.response_types.values()]
    silent = "granted" if row is None else row.silent
    usual = {
        **{f"silently {one}": silent for one in types},
        **dict.fromkeys((*GRANTS, *PLACES), "granted"),
        **OTHERWISE,
    }
    return usual if row is None else {**usual, **row.differs}


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    world = make_world(**{"identity.authorization_code_lifetime": "10m"})
    world.operator.policies.change(OF_INSTANCE, ChangePolicy.of(**ALLOWED))
    return world


@pytest.mark.parametrize("name", [one.name for one in fields(Policy)])
def test_a_rule_comes_out_as_its_row_says(world: World, name: str) -> None:
    """For its own organization; people of another one see nothing of it."""
    row, scene, elsewhere = TABLE[name], a_scene(world), a_scene(world)
    world.operator.policies.change(scene.organization.id, ChangePolicy.of(**{name: row.value}))
    world.clock.advance(seconds=MEANWHILE.total_seconds())
    assert row.differs or row.silent != "granted", "a rule does something"
    assert seen(elsewhere) == expected(world, None)
    world.clock.reset()
    world.clock.advance(seconds=MEANWHILE.total_seconds())
    assert seen(scene) == expected(world, row)


def test_every_grant_has_its_row(world: World) -> None:
    assert world.identity.protocol.grants.keys() == GRANTS.keys()

"""Attempt counters do not disclose whether a login name exists, however it is spelled."""

import pytest

from identity.domain.attempts import FREE_ATTEMPTS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    """An isolated world, because names are counted per instance."""
    return make_world()


def attempt_statuses(world: World, typed: str) -> int:
    browser = Browser(world)
    browser.open("/login")
    return browser.sign_in(typed, "wrong").status_int


@pytest.mark.parametrize("respelt", ["{}\u00ad{}", "{} {}", "{}\u200b{}", "{}\u0301{}", "{}{}@x"])
def test_login_name_spellings_do_not_disclose_accounts(world: World, ada: LoginUser, respelt: str) -> None:
    domain = ada.login_name.partition("@")[2]
    answers = []
    for name in (ada.user.user_name, "nobodyatall"):
        for _ in range(FREE_ATTEMPTS):
            assert attempt_statuses(world, f"{name}@{domain}") == 422
        answers.append(attempt_statuses(world, f"{respelt.format(name[:3], name[3:])}@{domain}"))
    assert len(set(answers)) == 1, answers

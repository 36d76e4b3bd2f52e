"""Fixtures of account tests: a signed-in user and access to what is stored about her.

Flows that need a mail server are tested in tests/journeys.
"""

from typing import Any

import pytest

from identity.domain.sessions import Session
from identity.domain.users import HumanUser
from identity.testing.browser import Browser, set_password
from identity.testing.world import World

OLD, NEW = "the old password of Ada", "a new and longer password"
#: The only origin whose forms these pages accept.
ACCOUNT_ORIGIN = "https://id.example.com"


def make_user_with_password(world: World) -> HumanUser:
    person = world.make_human_user()
    set_password(world, person, OLD)
    return person


@pytest.fixture
def ada(world: World) -> HumanUser:
    return make_user_with_password(world)


@pytest.fixture
def browser(world: World, ada: HumanUser) -> Browser:
    browser = Browser(world)
    browser.start_session(ada)
    return browser


def stored(world: World, person: HumanUser) -> HumanUser:
    with world.read_only_services() as services:
        return services.users.get(person.id)


def sessions_of(world: World, person: HumanUser) -> tuple[Session, ...]:
    with world.read_only_services() as services:
        return services.sessions.list_by_user(person.id)


def login_name_of(world: World, person: HumanUser) -> str:
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(person.id)
    assert subject is not None
    return subject.login_name


def form_of(browser: Browser) -> Any:
    return browser.find_form("page-form")


def token_of(browser: Browser) -> str:
    """The CSRF token of this session."""
    browser.open("/account/sessions")
    return str(next(iter(browser.page.forms.values()))["csrf_token"].value)


def press(browser: Browser, **hidden: str) -> None:
    """Submit the form of the current page that has this hidden field."""
    [(name, value)] = hidden.items()
    forms = browser.page.forms.values()
    form = next(form for form in forms if name in form.fields and form[name].value == value)
    browser.post_form(form.action, dict(form.submit_fields()), initiator=ACCOUNT_ORIGIN)

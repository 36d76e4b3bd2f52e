"""Users and attackers at the password page."""

from identity.domain.attempts import MAX_ATTEMPTS, MAX_DELAY
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.world import World

WRONG = "wrong"


def make_password_user(world: World, organization: Organization | None = None) -> HumanUser:
    """A new user who can sign in with PASSWORD."""
    person = world.make_human_user(organization)
    set_password(world, person)
    return person


def login_name(world: World, person: HumanUser) -> str:
    """The user's full login name."""
    name: str = world.operator_services.storage.users.find_subject(person.id).login_name
    return name


def at_password(world: World, user: HumanUser | str, browser: Browser | None = None) -> Browser:
    """A browser, new by default, at the password page of a user or name."""
    browser = browser or Browser(world)
    browser.open("/login")
    if "password" not in browser.find_form().fields:
        browser.submit({"login_name": user if isinstance(user, str) else login_name(world, user)})
    return browser


def tried(browser: Browser, password: str = WRONG) -> int:
    """Submits a password and returns the status code."""
    return int(browser.submit({"password": password}).status_int)


def enters(browser: Browser, password: str = PASSWORD) -> bool:
    """Whether the password, correct by default, signs in."""
    tried(browser, password)
    return browser.path.startswith("/account")


def leave(browser: Browser) -> None:
    """Deletes the session cookies only."""
    for name in browser.session_cookies:
        browser.cookies.delete(name)


def known(world: World, person: HumanUser) -> Browser:
    """A browser in which the user signed in and out again."""
    browser = at_password(world, person)
    assert enters(browser)
    leave(browser)
    return browser


def lock(world: World, person: HumanUser) -> None:
    """Guesses wrong passwords until the account is locked."""
    subject = world.operator_services.storage.users.find_subject(person.id)
    for _ in range(MAX_ATTEMPTS):
        world.operator_services.attempts.reserve_password_attempt(LoginName.parse(subject.login_name), subject, None)
        world.clock.advance(int(MAX_DELAY.total_seconds()))

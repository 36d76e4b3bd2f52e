"""What falls with a password: everything that was opened as the person, where somebody else set the new one."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from identity.crypto.secrets import digest
from identity.domain.records import CORE
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.links import CodeKind
from identity.testing.fixtures import MakeWorld
from identity.testing.service_client import Credentials
from identity.testing.world import BrowserSession, Code, World

pytestmark = pytest.mark.every_storage


@dataclass(frozen=True)
class Opened:
    """All that is open as a person."""

    world: World
    session: BrowserSession
    client: Credentials
    code: Code
    access_token: str
    refresh_token: str
    reset_link: str
    email_link: str
    request: tuple[str, str]

    @classmethod
    def of(cls, world: World) -> "Opened":
        client, session = world.a_web_application(), world.a_session()
        code, members = world.a_code(client, session), world.tokens(client, session)
        with world.transaction() as services:
            pending, secret = services.sign_ins.begin({}, target="/account")
            subject = services.storage.users.find_subject(session.person.id)
            assert subject is not None
            services.sign_ins.prove(pending, subject, ("pwd",))
            return cls(
                world,
                session,
                client,
                code,
                members["access_token"],
                members["refresh_token"],
                services.passwords.issue_link(session.person.id),
                services.users.issue_email_link(session.person.id, "new@acme.example"),
                (pending.id, secret),
            )

    def still_open(self) -> set[str]:
        """What still opens something; finding out uses nothing up but the tokens."""
        world = self.world
        with world.reading() as services:

            def is_kept(kind: CodeKind, link: str) -> bool:
                code = digest(link.rpartition("/")[2])
                return services.storage.records.find(CORE, kind, code) is not None

            found = {
                "session": bool(services.sessions.of_user(self.session.person.id)),
                "waiting sign-in": services.sign_ins.find(*self.request).user_id is not None,
                "reset link": is_kept(CodeKind.PASSWORD_RESET, self.reset_link),
                "address link": is_kept(CodeKind.EMAIL_CHANGE, self.email_link),
            }
        found["access token"] = world.client.userinfo(self.access_token).status_int == 200
        found["refresh token"] = "error" not in world.refresh(self.refresh_token, self.client).json
        found["code"] = "error" not in world.redeem(self.code, self.client).json
        return {name for name, opens in found.items() if opens}


def _change(services: Services, opened: Opened) -> None:
    subject = services.storage.users.find_subject(opened.session.person.id)
    assert subject is not None
    services.passwords.change(subject, "$hash$")


ALL = {"session", "waiting sign-in", "reset link", "address link", "access token", "refresh token", "code"}

#: By somebody who cannot show the present password: whoever knows that one loses everything, whatever the settings say.
BY_OTHERS: dict[str, Callable[[Services, Opened], object]] = {
    "one-time password": lambda services, opened: services.users.one_time_password(
        opened.session.person.id, by=THE_OPERATOR
    ),
    "recovered": lambda services, opened: services.users.recover(opened.session.person.id),
    "reset": lambda services, opened: services.passwords.reset(opened.reset_link.rpartition("/")[2], "$hash$"),
    "deactivated": lambda services, opened: services.users.deactivate(opened.session.person.id, by=THE_OPERATOR),
}


def test_before_any_of_it_all_is_open(world: World) -> None:
    assert Opened.of(world).still_open() == ALL


@pytest.mark.parametrize("how", BY_OTHERS)
def test_a_password_by_somebody_else_ends_everything_at_once(make_world: MakeWorld, how: str) -> None:
    world = make_world(**{"identity.password_change_ends_access": "false"})
    opened = Opened.of(world)
    with world.transaction() as services:
        BY_OTHERS[how](services, opened)
    assert opened.still_open() <= ({"reset link"} if how == "reset" else set()), "the link that was used is kept"
    if how == "deactivated":
        world.operator.users.reactivate(opened.session.person.id)
        assert opened.still_open() == set()


@pytest.mark.parametrize(("setting", "left"), [("true", set()), ("false", {"refresh token"})])
def test_a_password_of_one_s_own_leaves_at_most_what_applications_hold(
    make_world: MakeWorld, setting: str, left: set[str]
) -> None:
    world = make_world(**{"identity.password_change_ends_access": setting})
    opened = Opened.of(world)
    with world.transaction() as services:
        _change(services, opened)
    assert opened.still_open() == left

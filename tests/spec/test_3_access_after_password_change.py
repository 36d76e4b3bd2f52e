"""Access that ends when a password changes, depending on who sets the new one."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from identity.crypto.secrets import token_digest
from identity.domain.records import CORE_NAMESPACE
from identity.services.access_control import Principal
from identity.services.container import Services
from identity.services.one_time_links import OneTimeLinkKind
from identity.testing.fixtures import WorldFactory
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, PresentableCode, World

pytestmark = pytest.mark.every_storage


@dataclass(frozen=True)
class OpenedAccess:
    """Every kind of access a user has opened."""

    world: World
    session: BrowserSession
    client: Credentials
    code: PresentableCode
    access_token: str
    refresh_token: str
    reset_link: str
    email_link: str
    request: tuple[str, str]

    @classmethod
    def create(cls, world: World) -> "OpenedAccess":
        client, session = world.make_web_application(), world.make_browser_session()
        code, members = world.make_code(client, session), world.obtain_tokens(client, session)
        with world.transaction_services() as services:
            pending, secret = services.sign_ins.begin({}, target="/account")
            subject = services.storage.users.find_subject(session.user.id)
            assert subject is not None
            services.sign_ins.add_proof(pending, subject, ("pwd",))
            return cls(
                world,
                session,
                client,
                code,
                members["access_token"],
                members["refresh_token"],
                services.passwords.issue_reset_link(session.user.id),
                services.users.issue_email_link(session.user.id, "new@acme.example"),
                (pending.id, secret),
            )

    def still_open(self) -> set[str]:
        """Which access still works; the check consumes only the tokens."""
        world = self.world
        with world.read_only_services() as services:

            def is_kept(kind: OneTimeLinkKind, link: str) -> bool:
                code = token_digest(link.rpartition("/")[2])
                return services.storage.records.find(CORE_NAMESPACE, kind, code) is not None

            found = {
                "session": bool(services.sessions.list_by_user(self.session.user.id)),
                "waiting sign-in": services.sign_ins.find(*self.request).user_id is not None,
                "reset link": is_kept(OneTimeLinkKind.PASSWORD_RESET, self.reset_link),
                "address link": is_kept(OneTimeLinkKind.EMAIL_CHANGE, self.email_link),
            }
        found["access token"] = world.client.fetch_userinfo(self.access_token).status_int == 200
        found["refresh token"] = "error" not in world.refresh(self.refresh_token, self.client).json
        found["code"] = "error" not in world.redeem(self.code, self.client).json
        return {name for name, opens in found.items() if opens}


def _change(services: Services, opened: OpenedAccess) -> None:
    subject = services.storage.users.find_subject(opened.session.user.id)
    assert subject is not None
    services.passwords.change(subject, "$hash$")


ALL = {"session", "waiting sign-in", "reset link", "address link", "access token", "refresh token", "code"}

#: Password changes without the current password: they end all access, whatever the settings.
BY_OTHERS: dict[str, Callable[[Services, OpenedAccess], object]] = {
    "one-time password": lambda services, opened: services.users.set_one_time_password(
        opened.session.user.id, principal=Principal.OPERATOR
    ),
    "recovered": lambda services, opened: services.users.recover(opened.session.user.id),
    "reset": lambda services, opened: services.passwords.reset(opened.reset_link.rpartition("/")[2], "$hash$"),
    "deactivated": lambda services, opened: services.users.deactivate(
        opened.session.user.id, principal=Principal.OPERATOR
    ),
}


def test_access_is_open_before_password_change(world: World) -> None:
    assert OpenedAccess.create(world).still_open() == ALL


@pytest.mark.thorough
@pytest.mark.parametrize("how", BY_OTHERS)
def test_password_set_by_manager_ends_all_access(make_world: WorldFactory, how: str) -> None:
    world = make_world(**{"identity.password_change_ends_access": "false"})
    opened = OpenedAccess.create(world)
    with world.transaction_services() as services:
        BY_OTHERS[how](services, opened)
    assert opened.still_open() <= ({"reset link"} if how == "reset" else set()), "the link that was used is kept"
    if how == "deactivated":
        world.operator_services.users.reactivate(opened.session.user.id)
        assert opened.still_open() == set()


@pytest.mark.thorough
@pytest.mark.parametrize(("setting", "left"), [("true", set()), ("false", {"refresh token"})])
def test_own_password_change_keeps_at_most_application_tokens(
    make_world: WorldFactory, setting: str, left: set[str]
) -> None:
    world = make_world(**{"identity.password_change_ends_access": setting})
    opened = OpenedAccess.create(world)
    with world.transaction_services() as services:
        _change(services, opened)
    assert opened.still_open() == left

"""Account deletion with several processes: all of them see it at once, and only one of them deletes."""

from dataclasses import replace

import pytest

from identity.domain.users import HumanUser
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.journeys import account_deletion_view
from tests.journeys.account_deletion_view import AccountDeletionView
from tests.nodes import PROCESSES, NodePool

pytestmark = pytest.mark.storages("sqlite", "postgresql")  # memory belongs to one process


def ask(browser: Browser, person: HumanUser) -> None:
    browser.open("/account/data/delete")
    browser.submit({"confirm_name": person.user_name}, form="page-form")
    assert browser.path == "/leaving"


@pytest.mark.exhaustive
def test_account_is_left_kept_and_deleted_by_whichever_process(isolated_world: World, nodes: NodePool) -> None:
    world = isolated_world
    with world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy(account_deletion=True))
    person, party = world.make_human_user(), RelyingParty.register(world)
    login_name = set_password(world, person)

    def opened() -> tuple[Browser, str, str, str]:
        """A browser with a session, its cookies, and tokens that an application obtained."""
        browser = Browser(world)
        authorization = party.open_request(browser, scope="openid profile offline_access")
        tokens = party.obtain_tokens(browser.sign_in(login_name, PASSWORD), authorization)
        cookies = browser.cookies.header(browser.login_url, world.clock(), method="GET", site="none")
        return browser, cookies, tokens.access_token, tokens.refresh_token

    def audit_rows(*tokens: str) -> set[tuple[str | None, bool, int, str]]:
        """The view of each process."""
        account_deletion_views: list[AccountDeletionView] = nodes.run_on_all(
            account_deletion_view.look, world.settings, login_name, *tokens, party.credentials
        )
        assert len({account_deletion_view.process for account_deletion_view in account_deletion_views}) == PROCESSES
        return {
            (
                account_deletion_view.step,
                account_deletion_view.session,
                account_deletion_view.userinfo,
                account_deletion_view.refresh,
            )
            for account_deletion_view in account_deletion_views
        }

    browser, *own_tokens = opened()
    _, *other_tokens = opened()
    ask(browser, person)
    for item in (own_tokens, other_tokens):
        assert audit_rows(*item) == {("keep", False, 401, "invalid_grant")}

    again = Browser(world)
    again.open("/account/profile")
    again.sign_in(login_name, PASSWORD)
    again.submit(form="page-form")
    assert again.path == "/account/profile"
    assert audit_rows(*own_tokens) == {(None, False, 401, "invalid_grant")}, "it stays, and what has ended stays ended"
    assert nodes.run_on_all(account_deletion_view.delete, world.settings) == [0] * PROCESSES

    browser, *own_tokens = opened()
    ask(browser, person)
    assert nodes.run_on_all(account_deletion_view.delete, world.settings) == [0] * PROCESSES, "two weeks are not over"
    with world.transaction_services() as services:
        user = services.users.get(person.id)
        services.storage.users.update(replace(user, deletion_at=services.now, version=user.version + 1))
    assert sorted(nodes.run_on_all(account_deletion_view.delete, world.settings)) == [0] * (PROCESSES - 1) + [1]
    assert audit_rows(*own_tokens) == {("password", False, 401, "invalid_grant")}
    with world.read_only_services() as services:
        assert services.storage.users.find_subject(person.id) is None
    assert len([event for event in world.audit_events(event="user.removed") if event.object_id == person.id]) == 1

"""Runs in separate processes: how they see an account that is pending deletion, and its deletion."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import PASSWORD, Browser
from identity.testing.clock import TickingClock
from identity.testing.service_test_client import Credentials
from identity.testing.world import World
from tests import nodes


@dataclass(frozen=True)
class AccountDeletionView:
    """The responses of one process to the account's password, session and tokens."""

    process: int
    step: str | None
    session: bool
    userinfo: int
    refresh: str


def look(
    settings: Mapping[str, str], login_name: str, cookie: str, token: str, refresh_token: str, client: Credentials
) -> AccountDeletionView:
    """Query the state of the account."""
    world = World(settings, clock=TickingClock(), key_pool=RsaKeyPool(0))
    try:
        nodes._wait_for_others()
        browser = Browser(world)
        browser.open("/login?target=/account/profile")
        browser.sign_in(login_name, PASSWORD)
        inside = world.client.get(f"{world.identity.settings.login_url}/account/profile", {"Cookie": cookie})
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        refreshed = world.post_token_request(client, form)
        return AccountDeletionView(
            os.getpid(),
            browser.sign_in_step,
            inside.status_int == 200,
            world.client.fetch_userinfo(token).status_int,
            refreshed.json.get("error", "good"),
        )
    finally:
        world.close()


def delete(settings: Mapping[str, str]) -> int:
    """Delete the due accounts at the same moment as the other processes; returns how many this one deleted."""
    world = World(settings, clock=TickingClock(), key_pool=RsaKeyPool(0))
    try:
        nodes._wait_for_others()
        return world.identity.background_jobs.delete_due_accounts()
    finally:
        world.close()

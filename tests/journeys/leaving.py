"""What processes of one service see of an account that is to be deleted, and that they delete it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from identity.testing import nodes
from identity.testing.browser import PASSWORD, Browser
from identity.testing.clock import RunningClock
from identity.testing.service import KeyPool
from identity.testing.service_client import Credentials
from identity.testing.world import World


@dataclass(frozen=True)
class Seen:
    """How one process answers: to the password, the session and the tokens that there were."""

    process: int
    step: str | None
    session: bool
    userinfo: int
    refresh: str


def look(
    settings: Mapping[str, str], login_name: str, cookie: str, token: str, refresh_token: str, client: Credentials
) -> Seen:
    """Ask a process of its own for all of it, once all of them are there."""
    world = World(settings, clock=RunningClock(), key_pool=KeyPool(0))
    try:
        nodes._wait_for_others()
        browser = Browser(world)
        browser.open("/login?target=/account/profile")
        browser.sign_in(login_name, PASSWORD)
        inside = world.client.get(f"{world.identity.settings.login_url}/account/profile", {"Cookie": cookie})
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        refreshed = world.as_client(client, form)
        return Seen(
            os.getpid(),
            browser.step,
            inside.status_int == 200,
            world.client.userinfo(token).status_int,
            refreshed.json.get("error", "good"),
        )
    finally:
        world.close()


def delete(settings: Mapping[str, str]) -> int:
    """Delete the accounts whose day has come, at the same moment as the others; how many went by this process."""
    world = World(settings, clock=RunningClock(), key_pool=KeyPool(0))
    try:
        nodes._wait_for_others()
        return world.identity.jobs.delete_accounts()
    finally:
        world.close()

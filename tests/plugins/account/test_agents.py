"""The user's agents in the account: create, keys, stop, confirm, remove."""

import json

from identity.domain.users import HumanUser
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import press


def agents_of(world: World, person: HumanUser) -> tuple[tuple[str, bool], ...]:
    with world.read_only_services() as services:
        found = services.agents.list_by_owner(person.id)
        return tuple((agent.display_name, agent.stopped_at is None) for agent in found)


def test_agent_is_created_stopped_confirmed_and_removed(world: World, browser: Browser, ada: HumanUser) -> None:
    check_page(browser.open("/account/agents"), 200, "Agents")
    check_page(browser.open("/account/agents/new"), 200, "New agent")
    browser.submit({"display_name": ""})
    assert browser.page.status_int == 422
    browser.submit({"display_name": "Assistant"})
    text = browser.page.html.find(id="key-file-text").get_text()
    file = json.loads(text)
    assert set(file) == {"type", "keyId", "key", "userId"}
    check_page(browser.open(f"/account/agents/{file['userId']}"), 200, "Assistant")
    press(browser, add_key="yes")
    check_page(browser.open("/account/agents"), 200, "Agents")
    press(browser, stop="all")
    assert "Your agents are stopped." in browser.page.text
    assert agents_of(world, ada) == (("Assistant", False),)
    browser.open(f"/account/agents/{file['userId']}")
    press(browser, remove_key=file["keyId"])
    assert "The key is removed." in browser.page.text
    press(browser, confirm="yes")
    assert agents_of(world, ada) == (("Assistant", True),)
    check_page(browser.open(f"/account/agents/{file['userId']}/remove"), 200, "Remove Assistant?")
    browser.submit({})
    assert agents_of(world, ada) == ()


def test_agents_of_others_are_404_and_creating_takes_a_recent_sign_in(
    world: World, browser: Browser, ada: HumanUser
) -> None:
    other = world.make_agent(world.make_human_user())
    assert browser.open(f"/account/agents/{other.id}").status_int == 404
    world.clock.advance(minutes=11)
    for path in ("/account/agents/new", f"/account/agents/{other.id}", f"/account/agents/{other.id}/remove"):
        browser.open(path)
        assert browser.path.startswith("/login/"), path
    browser.open("/account/agents")
    assert browser.path == "/account/agents", "looking at them and stopping them takes no more than the session"

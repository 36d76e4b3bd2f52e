"""Signing keys in the console: states, rotation and withdrawal."""

import pytest

from identity.domain.permissions import Resource
from identity.testing.browser import Browser
from identity.testing.world import World

KEYS = "/console/instance/signing-keys"


def manager(world: World, role: str = "IAM_OWNER") -> Browser:
    person = world.make_human_user()
    world.assign_manager_role(person, role, resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(person)
    return browser


def rows(browser: Browser) -> list[list[str]]:
    return [
        [cell.get_text(" ", strip=True) for cell in row.find_all("td")] for row in browser.page.html.select("tbody tr")
    ]


def test_first_signing_key_is_active(isolated_world: World) -> None:
    browser = manager(isolated_world)
    page = browser.open(KEYS)
    assert page.status_int == 200
    [[state, since, retires, published, withdraw]] = rows(browser)
    assert withdraw.startswith("Withdraw …")
    assert state == "Active"
    assert since.endswith("UTC")
    assert (retires, published) == ("Not before its successor is active", "No end date")


def test_normal_rotation_announces_key(isolated_world: World) -> None:
    browser = manager(isolated_world)
    browser.open(KEYS)
    browser.click("Rotate now")
    assert "starts signing in 6 minutes" in browser.page
    page = browser.submit(form="page-form")
    assert "The next signing key is created." in page
    assert [row[0] for row in rows(browser)] == ["Waiting", "Active"]
    isolated_world.clock.advance(minutes=7)
    browser.open(KEYS)
    assert [row[0] for row in rows(browser)] == ["Active", "Retired"]


@pytest.mark.thorough
def test_rotation_with_announced_key_is_refused(isolated_world: World) -> None:
    browser = manager(isolated_world)
    for _ in range(2):
        browser.open(f"{KEYS}/rotate")
        page = browser.submit(form="page-form")
    assert page.status_int == 409
    assert "The next key is already published" in page
    browser.open(KEYS)
    assert len(rows(browser)) == 2
    # An announced key is too slow for an emergency.
    browser.open(f"{KEYS}/rotate")
    assert "Only an emergency rotation creates another one." in browser.page
    page = browser.submit({"mode": "emergency"}, form="page-form")
    assert "The next signing key is created." in page
    assert len(rows(browser)) == 3


@pytest.mark.thorough
def test_emergency_rotation_warns_and_takes_effect_soon(isolated_world: World) -> None:
    browser = manager(isolated_world)
    page = browser.open(f"{KEYS}/rotate")
    assert "The new key starts signing in 30 seconds." in page
    assert "refuse new tokens until they fetch it again, for at most 5 minutes." in page
    browser.submit({"mode": "emergency"}, form="page-form")
    isolated_world.clock.advance(31)
    browser.open(KEYS)
    assert [row[0] for row in rows(browser)] == ["Active", "Retired"]


def test_unknown_rotation_mode_is_refused(isolated_world: World) -> None:
    browser = manager(isolated_world)
    browser.open(f"{KEYS}/rotate")
    browser.find_form("page-form")["mode"].force_value("never")
    page = browser.submit(form="page-form")
    assert page.status_int == 422
    assert "Choose one of the values offered." in page


def test_viewer_has_no_rotation_button(isolated_world: World) -> None:
    browser = manager(isolated_world, "IAM_OWNER_VIEWER")
    page = browser.open(KEYS)
    assert page.status_int == 200
    assert page.html.main.select("a.button") == []
    assert browser.open(f"{KEYS}/rotate").status_int == 403


def test_signing_key_withdrawal_needs_confirmation(isolated_world: World) -> None:
    browser = manager(isolated_world)
    [first] = [key["kid"] for key in isolated_world.client.fetch_jwks().json["keys"]]
    browser.open(KEYS)
    browser.click("Withdraw …")
    assert f"Key id: {first}" in browser.page
    assert "A new key signs from now on." in browser.page
    assert "It cannot be undone." in browser.page
    page = browser.submit(form="page-form")
    assert "The signing key is withdrawn." in page
    [row] = rows(browser)
    assert row[0] == "Active"
    assert first not in page
    browser.open(f"{KEYS}/{first}/delete")
    assert browser.page.status_int == 404


def test_viewer_cannot_withdraw_signing_key(isolated_world: World) -> None:
    browser = manager(isolated_world, "IAM_OWNER_VIEWER")
    assert "Withdraw" not in browser.open(KEYS)

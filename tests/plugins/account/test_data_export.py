"""Export of all data that is stored about a user."""

import json
from typing import Any

import pytest

from identity.domain.audit import Actor, ActorKind
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.account.conftest import OLD, login_name_of, make_user_with_password

MANAGER = Actor(kind=ActorKind.USER, id="0192f3a7-5b1e-7c44-9d0e-3f2a8b61c7d5", client_address="198.51.100.7")


def download_export(browser: Browser) -> dict[str, Any]:
    browser.open("/account/data")
    answer = browser.submit(form="page-form")
    assert answer.status_int == 200
    assert answer.content_type == "application/json"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="account.json"'
    assert answer.headers["Cache-Control"] == "no-store"
    document: dict[str, Any] = json.loads(answer.body)
    return document


def test_data_export_contains_all_user_data(world: World, ada: HumanUser) -> None:
    client = world.make_web_application()
    world.make_authorization(ada, client, scope=("openid", "profile"))
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(login_name_of(world, ada), OLD)
    document = download_export(browser)
    assert document["login_name"] == login_name_of(world, ada)
    assert document["account"]["id"] == ada.id
    assert document["account"]["profile"]["given_name"] == ada.profile.given_name
    assert document["organization"]["id"] == ada.organization_id
    [session] = document["sessions"]
    assert session["methods"] == ["pwd"]
    assert [item["client_id"] for item in document["applications"]] == [client.client_id]
    events = [item["event"] for item in document["activity"]]
    # The export contains its own audit event.
    assert events[:2] == ["user.exported", "session.started"]
    assert document["activity"][0]["by"] == "you"


def test_data_export_omits_secrets_and_other_users(world: World, browser: Browser, ada: HumanUser) -> None:
    eve = make_user_with_password(world)
    with world.identity.transaction(MANAGER) as services:
        services.users.change(ada.id, ChangeHumanUser(given_name="Augusta"), principal=Principal.OPERATOR)
    with world.identity.transaction(Actor(kind=ActorKind.USER, id=ada.id)) as services:
        services.users.change(eve.id, ChangeHumanUser(given_name="Evelyn"), principal=Principal.OPERATOR)
        stored = services.storage.users.find_password(ada.id)
    assert stored is not None
    document = download_export(browser)
    text = json.dumps(document)
    assert "Augusta" in text
    for secret in (stored.hash, "Evelyn", eve.id, "198.51.100.7", str(MANAGER.id), *browser.session_cookies):
        assert secret not in text


@pytest.mark.storages("memory")
def test_data_export_contains_plugin_data(world: World, browser: Browser, ada: HumanUser) -> None:
    world.app.registry.pages.account_data["pets"] = lambda request, subject: [{"of": subject.user.id}]
    try:
        assert download_export(browser)["pets"] == [{"of": ada.id}]
    finally:
        del world.app.registry.pages.account_data["pets"]


def test_data_page_exports_nothing(world: World, browser: Browser, ada: HumanUser) -> None:
    browser.open("/account/data")
    assert [event for event in world.audit_events(event="user.exported") if event.object_id == ada.id] == []

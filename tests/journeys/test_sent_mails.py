"""The log of sent mails: what became of each, for those who may read it, without links and codes."""

from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeProfile
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.journeys.test_mail import ask_for_reset, set_password
from tests.mail_server import ReceivingMailServer

pytestmark = pytest.mark.storages("sqlite")

ADDRESS = "ada@acme.example"


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


@pytest.fixture
def ada(world: World) -> HumanUser:
    person = world.make_human_user(world.make_organization())
    set_password(world, person, "the old password of Ada")
    with world.transaction_services() as services:
        return services.users.change_profile(person.id, ChangeProfile(email=ADDRESS, locale="de"))


def send_reset(world: World, person: HumanUser) -> None:
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(person.id)
    assert subject is not None
    ask_for_reset(world, subject.login_name)
    world.identity.senders["mail"].send_due()


def read_log(world: World, path: str, role: str, resource: Resource) -> Any:
    token = world.make_manager_program(role, resource=resource).management_token()
    return world.client.call_management_api(path, token)


def test_log_names_recipient_and_outcome_but_no_link(world: World, post: ReceivingMailServer, ada: HumanUser) -> None:
    send_reset(world, ada)
    message = post.pop_only_message()
    path = f"/users/{ada.id}/mails"
    [mail] = read_log(world, path, "ORG_USER_MANAGER", Resource.of_organization(ada.organization_id)).json["items"]
    assert (mail["kind"], mail["recipient"], mail["outcome"]) == ("password_reset", ADDRESS, "sent")
    assert (mail["language"], mail["attempts"], mail["user_id"]) == ("de", 1, ada.id)
    assert mail["message_id"] == message["Message-ID"]
    assert "/password/reset/" not in str(mail)
    assert message["Subject"] not in str(mail)
    manager = world.make_human_user(world.make_organization())
    world.assign_manager_role(manager, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(manager)
    assert ADDRESS in browser.open("/console/instance/sent-mails").html.main.text
    assert ADDRESS in browser.open(f"/console/users/{ada.id}/activity").html.find(id="mails").text


def test_refused_and_given_up_mails_are_logged_without_the_address_in_the_reply(
    world: World, post: ReceivingMailServer, ada: HumanUser
) -> None:
    post.rcpt_response = f"550 <{ADDRESS}> is unknown here"
    send_reset(world, ada)
    post.rcpt_response = "451 later"
    send_reset(world, ada)
    sender = world.identity.senders["mail"]
    for _ in range(20):
        world.clock.advance(minutes=9)
        sender.send_due()
    with world.read_only_services() as services:
        given_up, refused = services.sent_mails.page_of_user(ada.id, principal=Principal.OPERATOR).items
    assert (refused.outcome, given_up.outcome) == ("refused", "given_up")
    assert refused.reply.startswith("550 ")
    assert ADDRESS not in refused.reply
    assert given_up.attempts > 1
    assert given_up.reply.startswith("451")


def test_log_of_all_needs_instance_read_and_addresses_need_user_read(world: World, ada: HumanUser) -> None:
    send_reset(world, ada)
    home = Resource.of_organization(ada.organization_id)
    assert read_log(world, "/instance/sent-mails", "ORG_OWNER", home).status_int == 403
    foreign = Resource.of_organization(world.make_organization().id)
    assert read_log(world, f"/users/{ada.id}/mails", "ORG_OWNER", foreign).status_int == 404
    assert read_log(world, f"/users/{ada.id}/mails", "ORG_SETTINGS_MANAGER", home).status_int == 403


def test_log_is_deleted_after_its_retention(world: World, post: ReceivingMailServer, ada: HumanUser) -> None:
    send_reset(world, ada)
    world.clock.advance(days=29)
    with world.transaction_services() as services:
        assert services.sent_mails.remove_old() == 0
    world.clock.advance(days=2)
    with world.transaction_services() as services:
        assert services.sent_mails.remove_old() >= 1


def test_test_mails_are_logged_with_their_result(world: World, post: ReceivingMailServer) -> None:
    manager = world.make_human_user(world.make_organization())
    with world.transaction_services() as services:
        services.users.change_profile(manager.id, ChangeProfile(email=ADDRESS))
    world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(manager)
    browser.open("/console/instance/mail-server")
    browser.submit(button=("action", "test"))
    message = post.pop_only_message()
    token = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE).management_token()
    for reply in (f"550 5.1.1 <{ADDRESS}> is unknown here", "451 later"):
        post.rcpt_response = reply
        answer = world.client.call_management_api("/instance/mail-server/test", token, "POST", {"to": ADDRESS})
        assert answer.json["reply"] == reply
    mails = read_log(world, "/instance/sent-mails", "IAM_OWNER_VIEWER", Resource.INSTANCE).json["items"][:3]
    later, refused, sent = mails
    assert {(mail["kind"], mail["recipient"], mail["attempts"]) for mail in mails} == {("test", ADDRESS, 1)}
    assert (sent["outcome"], sent["reply"], sent["user_id"]) == ("sent", "250 OK", manager.id)
    assert sent["message_id"] == message["Message-ID"]
    assert (refused["outcome"], refused["reply"], refused["user_id"]) == (
        "refused",
        "550 5.1.1 … is unknown here",
        None,
    )
    assert (later["outcome"], later["reply"]) == ("refused", "451 later")
    assert "Test mail" in browser.open("/console/instance/sent-mails").html.main.text

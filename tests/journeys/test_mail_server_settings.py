"""The mail server that is set in the service: stored sealed, used at once, below the ini file."""

from pathlib import Path
from typing import Any

import pytest

from identity.crypto.secrets import token_digest
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.mail_server import MailServer as MailServerSettings
from identity.domain.records import CORE_NAMESPACE
from identity.services.access_control import Principal
from identity.services.commands.desired_state import DesiredState
from identity.services.commands.documents import decode_document
from identity.services.commands.mail_server import ChangeMailServer
from identity.services.desired_state.apply import apply_desired_state
from identity.services.mails import Mail, MailReason
from identity.services.queued_mails import QueuedMailState, mask_address
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.mail_server import PASSWORD, USER, ReceivingMailServer

pytestmark = pytest.mark.storages("memory", "sqlite")

SENDER = "Identity <no-reply@id.example.com>"
LOCAL = {"identity.outgoing_networks": "127.0.0.0/8\n::1"}
SECRET = "the stored password"
HELLO = Mail(to="ada@acme.example", subject="Hello", text="Hello to you\n")


def change(world: World, principal: Principal = Principal.OPERATOR, **members: Any) -> MailServerSettings:
    with world.transaction_services() as services:
        return services.mail_server.change(ChangeMailServer.decode(members), principal=principal)


def point_to(world: World, post: ReceivingMailServer, **members: Any) -> None:
    change(world, **{"host": "localhost", "port": post.port, "security": "none", "sender": SENDER} | members)


def effective(world: World) -> Any:
    with world.transaction_services() as services:
        return services.mail_server.effective()


def queue(world: World) -> None:
    with world.transaction_services() as services:
        services.mails.queue(HELLO, MailReason.NOTICE)


@pytest.fixture
def post() -> Any:
    server = ReceivingMailServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    """A service of its own, because the mail server is one for all."""
    return make_world()


@pytest.fixture
def local_world(make_world: WorldFactory) -> World:
    return make_world(**LOCAL)


# --- in use -----------------------------------------------------------------------------------------------------------


def test_stored_mail_server_is_used_without_restart(local_world: World, post: ReceivingMailServer) -> None:
    with local_world.transaction_services() as services:
        assert not services.mails.is_enabled
    point_to(local_world, post)
    with local_world.transaction_services() as services:
        assert services.mails.is_enabled
    queue(local_world)
    assert local_world.identity.senders["mail"].send_due() == 1
    message = post.pop_only_message()
    assert (message["To"], message["From"]) == (HELLO.to, SENDER)
    change(local_world, host="")
    with local_world.transaction_services() as services:
        assert not services.mails.is_enabled


def test_other_process_uses_stored_mail_server_after_seconds(local_world: World, post: ReceivingMailServer) -> None:
    point_to(local_world, post)
    cache = local_world.identity.process_state.mail_server_cache
    # What another process cached just before the change.
    cache.entry = (local_world.clock(), False)
    with local_world.transaction_services() as services:
        assert not services.mails.is_enabled
    local_world.clock.advance(10)
    with local_world.transaction_services() as services:
        assert services.mails.is_enabled


def test_stored_user_and_password_log_in(local_world: World) -> None:
    post = ReceivingMailServer()
    post.start()
    point_to(local_world, post, user=USER, password=PASSWORD)
    # The server offers no sign-in without TLS, which is said and not worked around.
    result = local_world.identity.mailer.try_to_send(HELLO)
    assert not result.is_sent
    post.stop()


def test_private_mail_server_needs_an_allowed_network(world: World, post: ReceivingMailServer) -> None:
    point_to(world, post)
    result = world.identity.mailer.try_to_send(HELLO)
    assert (result.is_sent, result.is_private) == (False, True)
    assert result.problem == "The host name is not known."
    assert not post.received_messages


def test_mail_server_of_the_ini_file_may_be_private(make_world: WorldFactory, post: ReceivingMailServer) -> None:
    world = make_world(**post.settings)
    assert world.identity.mailer.try_to_send(HELLO).reply == "250 OK"


def test_test_mail_shows_the_reply_of_the_server(local_world: World, post: ReceivingMailServer) -> None:
    point_to(local_world, post)
    assert local_world.identity.mailer.try_to_send(HELLO).reply == "250 OK"
    post.rcpt_response = "550 5.1.1 no such mailbox"
    result = local_world.identity.mailer.try_to_send(HELLO)
    assert (result.is_sent, result.reply) == (False, "550 5.1.1 no such mailbox")


# --- the ini file wins ------------------------------------------------------------------------------------------------


def test_ini_file_wins_for_each_value(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.smtp.port": "2525"})
    change(world, host="mail.example.com", sender=SENDER, security="tls")
    found = effective(world)
    assert (found.server.host, found.server.port, found.server.security.value) == ("mail.example.com", 2525, "tls")
    assert found.configured == {"port"}
    with pytest.raises(Invalid) as refused:
        change(world, port=587 + 1)
    assert set(refused.value.fields) == {"port"}


def test_password_of_the_ini_file_goes_only_to_its_host(make_world: WorldFactory, tmp_path: Path) -> None:
    """Otherwise a manager of the instance could have the operator's password sent to a host of their own."""
    file = tmp_path / "password"
    file.write_text("the operator's")
    world = make_world(**{"identity.smtp.password_file": str(file), "identity.smtp.user": "identity"})
    for members in ({"host": "evil.example.com", "sender": SENDER}, {"security": "none"}, {"port": 25}):
        with pytest.raises(Invalid):
            change(world, **members)
    with pytest.raises(Invalid):
        change(world, password="another")
    assert effective(world).server.host == ""


# --- stored secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "members", [{"host": "evil.example.com"}, {"port": 2525}, {"security": "tls"}, {"user": "mallory"}]
)
def test_stored_password_does_not_follow_to_another_connection(world: World, members: dict[str, Any]) -> None:
    change(world, host="mail.example.com", sender=SENDER, user="identity", password=SECRET)
    with pytest.raises(Invalid) as refused:
        change(world, **members)
    assert set(refused.value.fields) == {"password"}
    assert effective(world).server.password == SECRET
    change(world, **members, password="another")
    assert effective(world).server.password == "another"
    change(world, sender="Other <other@id.example.com>")
    assert effective(world).server.password == "another"


def test_stored_password_is_sealed_and_not_audited(world: World) -> None:
    change(world, host="mail.example.com", sender=SENDER, user="identity", password=SECRET)
    with world.transaction_services() as services:
        record = services.storage.records.find(CORE_NAMESPACE, "mail_server", token_digest("mail_server"))
    assert record is not None
    assert record.value == {}
    assert SECRET.encode() not in record.sealed
    events = world.audit_events(event="mail_server.changed")
    assert len(events) == 1
    assert SECRET not in str(events)
    change(world, host="mail.example.com")
    assert len(world.audit_events(event="mail_server.changed")) == 1, "nothing has changed"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"host": "mail.example.com"}, "sender"),
        ({"host": "mail.example.com", "sender": SENDER, "user": "identity"}, "password"),
        ({"host": "m.example.com", "sender": SENDER, "user": "u", "password": "p", "security": "none"}, "security"),
        ({"host": "m.example.com", "sender": SENDER, "password": "p"}, "user"),
    ],
)
def test_contradicting_mail_server_is_refused(world: World, members: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        change(world, **members)
    assert set(refused.value.fields) == {field}


@pytest.mark.parametrize(
    "members",
    [
        {"host": "a b"},
        {"host": "a\r\nb"},
        {"port": 0},
        {"port": 65536},
        {"sender": "nobody"},
        {"sender": "a\r\nBcc: b <a@b.example>"},
    ],
)
def test_invalid_mail_server_value_is_refused(world: World, members: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        change(world, **members)


def test_mail_server_requires_instance_write(world: World) -> None:
    manager = world.make_human_user()
    world.assign_manager_role(manager, "ORG_OWNER")
    with world.transaction_services() as services:
        principal = services.access_control.load_principal(services.storage.users.find_subject(manager.id))
        for act in (
            lambda: services.mail_server.change(ChangeMailServer.build(host="x.example"), principal=principal),
            lambda: services.mail_server.record_test(principal=principal),
            lambda: services.queued_mails.list_newest(principal=principal),
            lambda: services.queued_mails.retry("x", principal=principal),
            lambda: services.queued_mails.cancel("x", principal=principal),
        ):
            with pytest.raises(Denied):
                act()


def test_stale_change_of_the_mail_server_is_refused(world: World) -> None:
    version = change(world, host="mail.example.com", sender=SENDER).version
    change(world, port=2525)
    with world.transaction_services() as services, pytest.raises(Conflict):
        services.mail_server.change(
            ChangeMailServer.build(port=26), principal=Principal.OPERATOR, expected_version=version
        )


def test_apply_sets_the_mail_server_without_telling_its_password(world: World) -> None:
    document = {
        "version": 1,
        "instance": {
            "mail_server": {"host": "mail.example.com", "sender": SENDER, "user": "identity", "password": SECRET}
        },
    }
    for expected in (1, 0):
        with world.transaction_services() as services:
            state = decode_document(DesiredState, document)
            result = apply_desired_state(services, state, principal=Principal.OPERATOR)
        assert len(result.state_changes) == expected
        assert SECRET not in str(result.state_changes)
    assert effective(world).server.password == SECRET
    broken = {"version": 1, "instance": {"mail_server": {"host": "other.example.com"}}}
    with world.transaction_services() as services, pytest.raises(Invalid) as refused:
        apply_desired_state(services, decode_document(DesiredState, broken), principal=Principal.OPERATOR)
    assert set(refused.value.fields) == {"instance.mail_server.password"}


# --- waiting mails ----------------------------------------------------------------------------------------------------


def listed(world: World) -> Any:
    with world.transaction_services() as services:
        return services.queued_mails.list_newest(principal=Principal.OPERATOR)


def test_failing_mail_shows_the_last_answer_without_addresses(local_world: World, post: ReceivingMailServer) -> None:
    point_to(local_world, post)
    post.rcpt_response = "451 4.7.1 <ada@acme.example> is greylisted"
    queue(local_world)
    [waiting] = listed(local_world)
    assert (waiting.state, waiting.subject, waiting.recipient) == ("waiting", "Hello", "a…@acme.example")
    local_world.identity.senders["mail"].send_due()
    [failing] = listed(local_world)
    assert (failing.state, failing.attempts) == (QueuedMailState.FAILING, 1)
    assert failing.last_answer == "451 4.7.1 … is greylisted"
    local_world.clock.advance(days=7)
    assert listed(local_world)[0].state is QueuedMailState.GIVEN_UP


def test_given_up_mail_can_be_sent_again(local_world: World, post: ReceivingMailServer) -> None:
    point_to(local_world, post)
    queue(local_world)
    local_world.clock.advance(days=7)
    assert local_world.identity.senders["mail"].send_due() == 0
    [mail] = listed(local_world)
    with local_world.transaction_services() as services:
        services.queued_mails.retry(mail.id, principal=Principal.OPERATOR)
    assert local_world.identity.senders["mail"].send_due() == 1
    assert listed(local_world) == ()
    assert len(local_world.audit_events(event="mail.retried")) == 1


def test_cancelled_mail_is_not_sent(local_world: World, post: ReceivingMailServer) -> None:
    point_to(local_world, post)
    queue(local_world)
    [mail] = listed(local_world)
    with local_world.transaction_services() as services:
        services.queued_mails.cancel(mail.id, principal=Principal.OPERATOR)
    assert local_world.identity.senders["mail"].send_due() == 0
    assert not post.received_messages


@pytest.mark.parametrize(
    ("address", "masked"),
    [("ada@acme.example", "a…@acme.example"), ("", ""), ("@x", ""), ("a@b@c.example", "a…@c.example")],
)
def test_mask_address(address: str, masked: str) -> None:
    assert mask_address(address) == masked

"""Security 20.6: an organization that exhausts a limited resource does not block other organizations."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from identity import outbound_http
from identity.domain.organizations import Organization
from identity.fair_semaphore import FairSemaphore, NoFreeSlot, client_network_scope
from identity.outbound_http import DeadlineResolver
from identity.password_hashing import ServerBusy
from identity.services.commands.organizations import AddDomain
from identity.services.mails import Mail, MailReason
from identity.services.organization_transfer import StreamedOrganizationImport
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.mail_server import ReceivingMailServer
from tests.spec.password_attempts import at_password, enters, known, make_password_user, tried

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as open_:
        yield open_


@pytest.fixture
def world(isolated_world: World) -> World:
    """An isolated world, whose capacity is used up."""
    return isolated_world


def fill(shares: FairSemaphore, organization_id: str, stack: ExitStack) -> None:
    """Acquire everything that one organization can get, from many networks."""
    for number in range(100):
        with client_network_scope(f"192.{number}.2.0/24"), FairSemaphore.organization_scope(organization_id):
            try:
                stack.callback(shares.acquire())
            except NoFreeSlot:
                return


def test_password_flood_of_one_organization_spares_others(world: World, stack: ExitStack) -> None:
    ada, user = make_password_user(world), make_password_user(world, world.make_organization())
    laptop = known(world, ada)
    fill(world.identity.process_state.hasher._semaphore, ada.organization_id, stack)
    assert tried(at_password(world, ada), PASSWORD) == 503
    assert enters(at_password(world, user))
    assert enters(at_password(world, ada, laptop)), "a browser that the account knows has places of its own"


def test_hashing_capacity_does_not_reveal_accounts(world: World, stack: ExitStack) -> None:
    ada = make_password_user(world)
    domain = world.operator_services.organizations.get(ada.organization_id).primary_domain
    for organization_id in (ada.organization_id, ""):
        fill(world.identity.process_state.hasher._semaphore, organization_id, stack)
        for with_domain in (f"@{domain}", ""):
            answers = {_guess(world, f"{name}{with_domain}") for name in (ada.user_name, "nobody")}
            assert len(answers) == 1, "a name that exists is answered as one that does not"


def _guess(world: World, login_name: str) -> int:
    browser = Browser(world)
    browser.open("/login")
    browser.submit({"login_name": login_name})
    return int(browser.submit({"password": "wrong password"}).status_int)


def test_imports_of_one_organization_do_not_block_others(stack: ExitStack) -> None:
    with client_network_scope("192.0.2.0/24"), FairSemaphore.organization_scope("acme"):
        for _ in range(2):
            stack.enter_context(StreamedOrganizationImport())
        with pytest.raises(ServerBusy):
            StreamedOrganizationImport().__enter__()
    with (
        client_network_scope("198.51.100.0/24"),
        FairSemaphore.organization_scope("bolt"),
        StreamedOrganizationImport(),
    ):
        pass


def test_domain_checks_of_one_organization_do_not_block_others(
    world: World, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = world.identity.domain_verifier
    monkeypatch.setattr(checks, "_txt_records", lambda name: ())
    monkeypatch.setattr(checks, "_file_lines", lambda url: ())
    slow, other = (_waiting(world, world.make_organization()) for _ in range(2))
    fill(checks._slots, slow.organization_id, stack)
    with client_network_scope("198.51.100.0/24"):
        with pytest.raises(ServerBusy):
            checks.find_proof(slow)
        assert checks.find_proof(other) is None


def _waiting(world: World, organization: Organization) -> Any:
    with world.transaction_services() as services:
        return services.domains.add(organization.id, AddDomain(domain=f"mail-{organization.primary_domain}"))


def test_silent_name_servers_of_one_organization_do_not_block_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up times out, but occupies its slot until the resolver gives up."""
    go_on = threading.Event()

    def look_up(host: str, seconds: float) -> list[str]:
        if host == "slow.example":
            go_on.wait(60)
        return ["192.0.2.1"]

    monkeypatch.setattr(outbound_http, "resolve_host", look_up)
    resolver = DeadlineResolver()
    try:
        for number in range(40):
            with (
                client_network_scope(f"192.{number}.2.0/24"),
                FairSemaphore.organization_scope("acme"),
                pytest.raises(TimeoutError),
            ):
                resolver("slow.example", 0.001)
        with client_network_scope("198.51.100.0/24"), FairSemaphore.organization_scope("bolt"):
            assert resolver("quick.example", 30) == ["192.0.2.1"]
    finally:
        go_on.set()


def test_invitations_of_one_organization_do_not_delay_resets(make_world: WorldFactory) -> None:
    post = ReceivingMailServer()
    post.start()
    world = make_world(**post.settings)
    with world.transaction_services() as services:
        for number in range(50):
            mail = Mail(to=f"{number}@acme.example", subject="Invited", text="Hello\n")
            services.mails.queue(mail, MailReason.ACCESS, organization_id="acme")
    world.clock.advance(minutes=1)
    with world.transaction_services() as services:
        for to, reason, organization_id in (
            ("new@bolt.example", MailReason.ACCESS, "bolt"),
            ("ada@bolt.example", MailReason.RESET, "bolt"),
            ("grace@acme.example", MailReason.RESET, "acme"),
        ):
            services.mails.queue(Mail(to=to, subject="x", text="y\n"), reason, organization_id=organization_id)
    assert world.identity.senders["mail"].send_due() == 10
    post.stop()
    first = [message["To"] for message in post.received_messages]
    assert set(first[:2]) == {"ada@bolt.example", "grace@acme.example"}
    assert "new@bolt.example" in first[:4]

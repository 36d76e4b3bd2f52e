"""Domains have an effect once they are verified (decisions, "Domains"), with a real DNS server and a real web
server."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity import domain_verification
from identity.domain import domains
from identity.domain.organizations import Organization
from identity.fair_semaphore import FairSemaphore
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldCache, WorldFactory
from identity.testing.response_checks import check_api_error
from identity.testing.world import World
from tests.external_servers import LOOPBACK, NameServer, WebServer
from tests.journeys.domain_requests import OWN_DOMAIN, api_of, manager, path_of, request_domain
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = pytest.mark.every_storage


@pytest.fixture(scope="module")
def name_server() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


@pytest.fixture
def names(name_server: NameServer) -> NameServer:
    name_server.records.clear()
    name_server.requests.clear()
    return name_server


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A web server with a trusted certificate. Its port replaces 443."""
    server = WebServer(tmp_path, OWN_DOMAIN)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    monkeypatch.setattr(
        domains.OrganizationDomain,
        "file_url",
        property(lambda domain: f"https://{domain.name}:{server.port}/.well-known/identity-verification"),
    )
    yield server
    server.close()


@pytest.fixture
def world(world_cache: WorldCache, storage_name: str, names: NameServer) -> World:
    """A service that queries the test's name server and may connect to loopback."""
    settings = {"identity.dns_resolver": names.address, "identity.outgoing_networks": LOOPBACK}
    return world_cache.shared_world(storage_name, settings)


@pytest.fixture
def organization(world: World) -> Iterator[Organization]:
    """An organization whose domains are released afterwards."""
    organization = world.make_organization()
    yield organization
    with world.transaction_services() as services:
        derived = f"{organization.name.lower()}.id.example.com"
        services.organizations.change(organization.id, ChangeOrganization(primary_domain=derived))
        for domain in services.domains.list_by_organization(organization.id):
            if domain.name != derived:
                services.domains.remove(organization.id, domain.name, principal=Principal.OPERATOR)


@pytest.fixture
def api(world: World, organization: Organization) -> ApiClient:
    """The management API as an ORG_OWNER."""
    return api_of(world, organization)


def refused_proof(api: ApiClient, organization: Organization, name: str = OWN_DOMAIN) -> None:
    answer = api.ask("POST", f"{path_of(organization, name)}/verify")
    assert "Neither the record nor the file" in check_api_error(answer, 422, "invalid")["fields"]["domain"]
    assert not api.get(path_of(organization, name))["counts"]


# --- proofs -----------------------------------------------------------------------------------------------------------


def test_dns_record_verifies_a_domain(
    world: World, api: ApiClient, organization: Organization, names: NameServer
) -> None:
    domain = request_domain(api, organization)
    assert domain["record_name"] == f"_identity-challenge.{OWN_DOMAIN}"
    assert domain["file_url"] == f"https://{OWN_DOMAIN}/.well-known/identity-verification"
    refused_proof(api, organization)
    names.prove(domain)
    proven = api.post(f"{path_of(organization, OWN_DOMAIN)}/verify", status=200)
    assert (proven["counts"], proven["proof"]) == (True, "dns")
    assert api.list(path_of(organization))[0] == proven
    # Now the domain can be the primary one, and users sign in with it.
    person = world.make_human_user(organization)
    assert (
        api.patch(f"/organizations/{organization.id}", {"primary_domain": OWN_DOMAIN})["primary_domain"] == OWN_DOMAIN
    )
    browser = Browser(world)
    browser.open("/account")
    set_password(world, person)
    browser.sign_in(f"{person.user_name}@{OWN_DOMAIN}")
    assert browser.path == "/account/profile"
    events = [event.event for event in world.audit_events(object_id=organization.id)]
    assert events[:3] == ["organization.changed", "domain.verified", "domain.asked"]


def test_file_verifies_a_domain(api: ApiClient, organization: Organization, names: NameServer, web: WebServer) -> None:
    domain = request_domain(api, organization)
    names.set(OWN_DOMAIN, "A", [LOOPBACK])
    where = OWN_DOMAIN, "/.well-known/identity-verification"
    refused_proof(api, organization)
    for content in (b"identity-verification=", domain["record_value"][:-1].encode(), b"<html>404</html>", b"\xff\x00"):
        web.files[where] = (200, {}, content)
        refused_proof(api, organization)
    web.files[where] = (404, {}, domain["record_value"].encode())
    refused_proof(api, organization)
    web.files[where] = (200, {}, f"identity-verification=another\r\n{domain['record_value']}\r\n".encode())
    assert api.post(f"{path_of(organization, OWN_DOMAIN)}/verify", status=200)["proof"] == "file"


@pytest.mark.storages("memory")
def test_unrelated_dns_record_does_not_verify(api: ApiClient, organization: Organization, names: NameServer) -> None:
    domain = request_domain(api, organization)
    challenge = domain["record_value"].partition("=")[2]
    names.set(OWN_DOMAIN, "TXT", [domain["record_value"]])
    for text in ("identity-verification={}x", "{}", "IDENTITY-VERIFICATION={}", "v=spf1 -all"):
        names.set(domain["record_name"], "TXT", [text.format(challenge)])
        refused_proof(api, organization)


@pytest.mark.storages("memory")
def test_dns_record_does_not_verify_another_organization(
    world: World, api: ApiClient, organization: Organization, names: NameServer
) -> None:
    other = world.make_organization()
    rival = api_of(world, other)
    names.prove(request_domain(api, organization))
    request_domain(rival, other)
    refused_proof(rival, other)
    # Not even if the domain was removed and requested again.
    api.delete(path_of(organization, OWN_DOMAIN))
    request_domain(api, organization)
    refused_proof(api, organization)
    with world.transaction_services() as services:
        services.domains.remove(other.id, OWN_DOMAIN, principal=Principal.OPERATOR)


def test_first_organization_to_prove_gets_the_domain(
    world: World, api: ApiClient, organization: Organization, names: NameServer
) -> None:
    other = world.make_organization()
    rival = api_of(world, other)
    first, second = request_domain(api, organization), request_domain(rival, other)
    names.set(first["record_name"], "TXT", [first["record_value"], second["record_value"]])
    assert api.post(f"{path_of(organization, OWN_DOMAIN)}/verify", status=200)["counts"]
    answer = rival.ask("POST", f"{path_of(other, OWN_DOMAIN)}/verify")
    assert "Another organization has this domain" in check_api_error(answer, 409, "conflict")["message"]
    rival.delete(path_of(other, OWN_DOMAIN))


@pytest.mark.storages("memory")
def test_verification_is_idempotent(api: ApiClient, organization: Organization, names: NameServer) -> None:
    names.prove(request_domain(api, organization))
    where = f"{path_of(organization, OWN_DOMAIN)}/verify"
    answers = [api.post(where, status=200, Idempotency_Key="once") for _ in range(2)]
    assert answers[0] == answers[1]
    assert names.requests.count((f"_identity-challenge.{OWN_DOMAIN}", "TXT")) == 1


@pytest.mark.storages("sqlite", "postgresql")  # memory has no locks
def test_domain_lookups_do_not_block_other_requests(
    world: World, api: ApiClient, organization: Organization, names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another transaction writes to the same organization while the name server delays its response."""
    request_domain(api, organization)
    texts = domain_verification.DomainVerifier._txt_records

    def rename() -> None:
        with world.transaction_services() as services:
            services.organizations.change(organization.id, ChangeOrganization(name="Meanwhile"))

    def meanwhile(self: Any, name: str) -> Any:
        thread = threading.Thread(target=rename)
        thread.start()
        thread.join(30)
        return texts(self, name)

    monkeypatch.setattr(domain_verification.DomainVerifier, "_txt_records", meanwhile)
    refused_proof(api, organization)
    with world.read_only_services() as services:
        assert services.organizations.get(organization.id).name == "Meanwhile"


@pytest.mark.storages("memory")
def test_concurrent_domain_checks_are_limited(
    world: World, api: ApiClient, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that never answers does not block other organizations."""
    request_domain(api, organization)
    fair_semaphore = FairSemaphore(1)
    monkeypatch.setattr(world.identity.domain_verifier, "_slots", fair_semaphore)
    fair_semaphore.acquire()
    answer = api.ask("POST", f"{path_of(organization, OWN_DOMAIN)}/verify")
    check_api_error(answer, 503, "temporarily_unavailable")
    assert answer.headers["Retry-After"] == "10"


# --- where the check goes ---------------------------------------------------------------------------------------------

PRIVATE = {
    "A": ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0"],  # noqa: S104
    "AAAA": ["::1", "::", "::ffff:127.0.0.1", "fe80::1", "fc00::1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"],
}


@pytest.mark.storages("memory")
def test_domain_check_skips_private_addresses(make_world: WorldFactory, names: NameServer, web: WebServer) -> None:
    """Unless a setting names the address. The web server must receive no connection."""
    world = make_world(**{"identity.dns_resolver": names.address})
    organization = world.make_organization()
    api = api_of(world, organization)
    domain = request_domain(api, organization)
    web.files[OWN_DOMAIN, "/.well-known/identity-verification"] = (200, {}, domain["record_value"].encode())
    for kind, addresses in PRIVATE.items():
        for address in addresses:
            names.records.clear()
            names.set(OWN_DOMAIN, kind, [address])
            refused_proof(api, organization)
            assert web.connections == 0, address


@pytest.mark.storages("memory")
def test_dns_rebinding_is_not_followed(
    make_world: WorldFactory, names: NameServer, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the address is public when checked, and private from then on."""
    world = make_world(**{"identity.dns_resolver": names.address})
    organization = world.make_organization()
    api = api_of(world, organization)
    request_domain(api, organization)
    names.set(OWN_DOMAIN, "A", ["203.0.114.7"], [LOOPBACK])
    tried: list[Any] = []

    def connect(target: Any, **_: Any) -> Any:
        tried.append(target)
        raise ConnectionRefusedError

    monkeypatch.setattr("identity.outbound_http.socket.create_connection", connect)
    refused_proof(api, organization)
    assert tried == [("203.0.114.7", web.port)]
    assert web.connections == 0
    refused_proof(api, organization)
    assert len(tried) == 1, "by now the name leads to a private address"


@pytest.mark.storages("memory")
def test_domain_check_follows_no_redirect(
    api: ApiClient, organization: Organization, names: NameServer, web: WebServer
) -> None:
    domain = request_domain(api, organization)
    names.set(OWN_DOMAIN, "A", [LOOPBACK])
    target = f"https://{OWN_DOMAIN}:{web.port}/elsewhere"
    web.files[OWN_DOMAIN, "/.well-known/identity-verification"] = (302, {"Location": target}, b"")
    web.files[OWN_DOMAIN, "/elsewhere"] = (200, {}, domain["record_value"].encode())
    refused_proof(api, organization)
    assert web.received == [(OWN_DOMAIN, "/.well-known/identity-verification")]


# --- permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")
def test_instance_administrator_asserts_domain(world: World, api: ApiClient, organization: Organization) -> None:
    request_domain(api, organization)
    path = path_of(organization, OWN_DOMAIN)
    for client in (api, manager(world, "IAM_ORG_MANAGER")):
        check_api_error(client.ask("POST", f"{path}/assert"), 403, "forbidden")
    owner = manager(world, "IAM_OWNER")
    answer = owner.post(f"{path}/assert", status=200)
    assert (answer["proof"], answer["people_losing_sign_in"]) == ("asserted", 0)
    # An organization cannot remove an asserted domain itself, because others would then be trusted with it.
    check_api_error(api.ask("DELETE", path), 403, "forbidden")
    api.patch(f"/organizations/{organization.id}", {"primary_domain": OWN_DOMAIN})
    check_api_error(owner.ask("DELETE", path), 409, "conflict")
    api.patch(f"/organizations/{organization.id}", {"primary_domain": organization.primary_domain})
    owner.delete(path)
    events = {event.event for event in world.audit_events(object_id=organization.id)}
    assert {"domain.asked", "domain.asserted", "domain.removed"} <= events


@pytest.mark.storages("memory")
def test_domains_per_organization_are_limited(world: World, api: ApiClient, organization: Organization) -> None:
    for number in range(domains.MAX_DOMAINS - 1):
        request_domain(api, organization, f"d{number}.example")
    answer = api.ask("POST", path_of(organization), {"domain": "last.example"})
    assert "20 domains" in check_api_error(answer, 422, "invalid")["fields"]["domain"]
    # Former primary domains stay in the list and count, too.
    answer = api.ask("PATCH", f"/organizations/{organization.id}", {"primary_domain": "x-1.id.example.com"})
    assert "20 domains" in check_api_error(answer, 422, "invalid")["fields"]["primary_domain"]


def test_verified_domain_stays_reserved(isolated_world: World) -> None:
    """Neither another primary domain nor deletion releases it; only an instance manager can assert it."""
    world = isolated_world
    organization, other = world.make_organization(primary_domain=OWN_DOMAIN), world.make_organization()
    former = world.make_organization()
    owner, rival = manager(world, "IAM_OWNER"), manager(world, "IAM_ORG_MANAGER")
    names = [OWN_DOMAIN, former.primary_domain]
    owner.patch(f"/organizations/{organization.id}", {"primary_domain": "second.example"})
    owner.patch(f"/organizations/{former.id}", {"primary_domain": "third.id.example.com"})
    for is_deleted in (False, True):
        if is_deleted:
            for item in (organization, former):
                owner.delete(f"/organizations/{item.id}")
        for name in names:
            by_whom = (rival,) if is_deleted else (rival, owner)
            for client in by_whom:
                answer = client.ask("PATCH", f"/organizations/{other.id}", {"primary_domain": name})
                assert answer.status_int == 422 or answer.json["primary_domain"] == other.primary_domain
                with world.read_only_services() as services:
                    assert services.storage.organizations.find_by_domain(name) is None
    # A new organization with the same name gets another domain.
    created = rival.post("/organizations", {"name": former.name})
    assert created["primary_domain"] == former.primary_domain.replace(".", "-2.", 1)
    for name in names:
        assert owner.patch(f"/organizations/{other.id}", {"primary_domain": name})["primary_domain"] == name


def test_reimported_organization_has_its_domain(isolated_world: World) -> None:
    organization = isolated_world.make_organization(primary_domain=OWN_DOMAIN)
    owner = manager(isolated_world, "IAM_OWNER")
    document = owner.post(f"/organizations/{organization.id}/export", status=200)
    owner.delete(f"/organizations/{organization.id}")
    back = owner.post("/organizations/import", document)
    assert (back["id"], back["primary_domain"]) == (organization.id, OWN_DOMAIN)


@pytest.mark.storages("memory")
def test_system_checks_report_unproven_domains(isolated_world: World) -> None:
    """Domains from before verification was required still count, and can be verified or asserted."""
    organization = isolated_world.make_organization()
    api, owner = api_of(isolated_world, organization), manager(isolated_world, "IAM_OWNER")
    with isolated_world.transaction_services() as services:
        stored = services.organizations.get(organization.id)
        services.storage.organizations.update(replace(stored, primary_domain=OWN_DOMAIN, version=2))
        services.domains.ensure_bound(replace(stored, primary_domain=OWN_DOMAIN))
    assert OWN_DOMAIN in isolated_world.identity.system_checks.failures()["domains"]
    assert "domains" not in isolated_world.identity.system_checks.failures(readiness_only=True)
    document = api.get(path_of(organization, OWN_DOMAIN))
    assert (document["counts"], document["proof"]) == (True, "unproven")
    owner.post(f"{path_of(organization, OWN_DOMAIN)}/assert", status=200)
    assert "domains" not in isolated_world.identity.system_checks.failures()

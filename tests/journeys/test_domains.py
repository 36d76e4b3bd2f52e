"""Domains count once they are proven (decisions, "Domains"): a real DNS server, a real web server, and every reader."""

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity import domain_checks
from identity.crypto.secrets import new_id
from identity.domain import domains
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.users import HumanUser
from identity.services.access import THE_OPERATOR
from identity.services.commands.organizations import ChangeOrganization
from identity.testing.browser import Browser, give_password
from identity.testing.fixtures import MakeWorld, Worlds
from identity.testing.responses import check_api_error
from identity.testing.world import World
from tests.outside import LOOPBACK, NameServer, WebServer
from tests.plugins.management.estate import Api

pytestmark = pytest.mark.every_storage

#: What nobody here may go by.
FOREIGN = "microsoft.com"
OWN = "acme.example"


@pytest.fixture(scope="module")
def name_server() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


@pytest.fixture
def names(name_server: NameServer) -> NameServer:
    name_server.records.clear()
    name_server.asked.clear()
    return name_server


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A web server whose certificate the machine trusts. Its port stands where 443 would."""
    server = WebServer(tmp_path, OWN)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    monkeypatch.setattr(
        domains.OrganizationDomain,
        "file_url",
        property(lambda domain: f"https://{domain.name}:{server.port}/.well-known/identity-verification"),
    )
    yield server
    server.close()


@pytest.fixture
def world(worlds: Worlds, storage_name: str, names: NameServer) -> World:
    """It asks our name server, and may go to the loopback interface."""
    settings = {"identity.dns_resolver": names.address, "identity.outgoing_networks": LOOPBACK}
    return worlds.shared(storage_name, settings)


@pytest.fixture
def organization(world: World) -> Iterator[Organization]:
    """Its domains are free again afterwards."""
    organization = world.an_organization()
    yield organization
    with world.transaction() as services:
        derived = f"{organization.name.lower()}.id.example.com"
        services.organizations.change(organization.id, ChangeOrganization(primary_domain=derived))
        for domain in services.domains.of_organization(organization.id):
            if domain.name != derived:
                services.domains.remove(organization.id, domain.name, by=THE_OPERATOR)


def api_of(world: World, organization: Organization) -> Api:
    robot = world.a_robot(organization)
    world.make_manager(robot, "ORG_OWNER", resource=organization_resource(organization.id))
    return Api.of(robot)


@pytest.fixture
def api(world: World, organization: Organization) -> Api:
    """The management API as an ORG_OWNER."""
    return api_of(world, organization)


def path_of(organization: Organization, name: str = "") -> str:
    return f"/organizations/{organization.id}/domains" + (f"/{name}" if name else "")


def asked(api: Api, organization: Organization, name: str = OWN) -> Any:
    """The domain, waiting."""
    made = api.post(path_of(organization), {"domain": name})
    assert (made["counts"], made["proof"], made["verified_at"]) == (False, None, None)
    return made


def refused_proof(api: Api, organization: Organization, name: str = OWN) -> None:
    answer = api.ask("POST", f"{path_of(organization, name)}/verify")
    assert "Neither the record nor the file" in check_api_error(answer, 422, "invalid")["fields"]["domain"]
    assert not api.get(path_of(organization, name))["counts"]


# --- proofs -----------------------------------------------------------------------------------------------------------


def test_a_record_proves_a_domain(world: World, api: Api, organization: Organization, names: NameServer) -> None:
    domain = asked(api, organization)
    assert domain["record_name"] == f"_identity-challenge.{OWN}"
    assert domain["file_url"] == f"https://{OWN}/.well-known/identity-verification"
    refused_proof(api, organization)
    names.prove(domain)
    proven = api.post(f"{path_of(organization, OWN)}/verify", status=200)
    assert (proven["counts"], proven["proof"]) == (True, "dns")
    assert api.list(path_of(organization))[0] == proven
    # Now the organization can go by it, and its people sign in with it.
    person = world.a_person(organization)
    assert api.patch(f"/organizations/{organization.id}", {"primary_domain": OWN})["primary_domain"] == OWN
    browser = Browser(world)
    browser.open("/account")
    give_password(world, person)
    browser.sign_in(f"{person.user_name}@{OWN}")
    assert browser.path == "/account/profile"
    events = [one.event for one in world.audit_events(object_id=organization.id)]
    assert events[:3] == ["organization.changed", "domain.verified", "domain.asked"]


def test_a_file_proves_a_domain(api: Api, organization: Organization, names: NameServer, web: WebServer) -> None:
    domain = asked(api, organization)
    names.set(OWN, "A", [LOOPBACK])
    where = OWN, "/.well-known/identity-verification"
    refused_proof(api, organization)
    for content in (b"identity-verification=", domain["record_value"][:-1].encode(), b"<html>404</html>", b"\xff\x00"):
        web.files[where] = (200, {}, content)
        refused_proof(api, organization)
    web.files[where] = (404, {}, domain["record_value"].encode())
    refused_proof(api, organization)
    web.files[where] = (200, {}, f"identity-verification=another\r\n{domain['record_value']}\r\n".encode())
    assert api.post(f"{path_of(organization, OWN)}/verify", status=200)["proof"] == "file"


@pytest.mark.storages("memory")
@pytest.mark.parametrize("text", ["identity-verification={}x", "{}", "IDENTITY-VERIFICATION={}", "v=spf1 -all"])
def test_another_record_proves_nothing(api: Api, organization: Organization, names: NameServer, text: str) -> None:
    domain = asked(api, organization)
    challenge = domain["record_value"].partition("=")[2]
    names.set(domain["record_name"], "TXT", [text.format(challenge)])
    names.set(OWN, "TXT", [domain["record_value"]])
    refused_proof(api, organization)


@pytest.mark.storages("memory")
def test_a_record_of_one_organization_proves_nothing_for_another(
    world: World, api: Api, organization: Organization, names: NameServer
) -> None:
    other = world.an_organization()
    rival = api_of(world, other)
    names.prove(asked(api, organization))
    asked(rival, other)
    refused_proof(rival, other)
    # Nor does one that was removed and asked for anew.
    api.delete(path_of(organization, OWN))
    asked(api, organization)
    refused_proof(api, organization)
    with world.transaction() as services:
        services.domains.remove(other.id, OWN, by=THE_OPERATOR)


def test_many_wait_and_the_first_to_prove_has_it(
    world: World, api: Api, organization: Organization, names: NameServer
) -> None:
    other = world.an_organization()
    rival = api_of(world, other)
    first, second = asked(api, organization), asked(rival, other)
    names.set(first["record_name"], "TXT", [first["record_value"], second["record_value"]])
    assert api.post(f"{path_of(organization, OWN)}/verify", status=200)["counts"]
    answer = rival.ask("POST", f"{path_of(other, OWN)}/verify")
    assert "Another organization has this domain" in check_api_error(answer, 409, "conflict")["message"]
    rival.delete(path_of(other, OWN))


@pytest.mark.storages("memory")
def test_an_answer_is_kept_under_its_key_though_it_was_asked_in_between(
    api: Api, organization: Organization, names: NameServer
) -> None:
    names.prove(asked(api, organization))
    where = f"{path_of(organization, OWN)}/verify"
    answers = [api.post(where, status=200, Idempotency_Key="once") for _ in range(2)]
    assert answers[0] == answers[1]
    assert names.asked.count((f"_identity-challenge.{OWN}", "TXT")) == 1


@pytest.mark.storages("sqlite", "postgresql")  # memory has no locks to wait for
def test_nobody_waits_while_others_are_asked(
    world: World, api: Api, organization: Organization, names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another transaction writes, to the same organization, while the name server takes its time."""
    asked(api, organization)
    texts = domain_checks.DomainChecks._texts

    def rename() -> None:
        with world.transaction() as services:
            services.organizations.change(organization.id, ChangeOrganization(name="Meanwhile"))

    def meanwhile(self: Any, name: str) -> Any:
        thread = threading.Thread(target=rename)
        thread.start()
        thread.join(30)
        return texts(self, name)

    monkeypatch.setattr(domain_checks.DomainChecks, "_texts", meanwhile)
    refused_proof(api, organization)
    with world.reading() as services:
        assert services.organizations.get(organization.id).name == "Meanwhile"


@pytest.mark.storages("memory")
def test_so_many_are_checked_at_a_time(
    world: World, api: Api, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever's name server never answers holds up nobody else."""
    asked(api, organization)
    monkeypatch.setattr(world.identity.domain_checks._places, "acquire", lambda blocking: False)
    answer = api.ask("POST", f"{path_of(organization, OWN)}/verify")
    check_api_error(answer, 503, "temporarily_unavailable")
    assert answer.headers["Retry-After"] == "10"


# --- where the check goes ---------------------------------------------------------------------------------------------

PRIVATE = {
    "A": ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0"],  # noqa: S104
    "AAAA": ["::1", "::", "::ffff:127.0.0.1", "fe80::1", "fc00::1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"],
}


@pytest.mark.storages("memory")
@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind, all_ in PRIVATE.items() for one in all_])
def test_no_check_goes_to_a_private_address(
    make_world: MakeWorld, names: NameServer, web: WebServer, kind: str, address: str
) -> None:
    """Unless a setting names it: here none does, and nobody is connected to. The web server is the canary."""
    world = make_world(**{"identity.dns_resolver": names.address})
    organization = world.an_organization()
    api = api_of(world, organization)
    domain = asked(api, organization)
    names.set(OWN, kind, [address])
    web.files[OWN, "/.well-known/identity-verification"] = (200, {}, domain["record_value"].encode())
    refused_proof(api, organization)
    assert web.connections == 0


@pytest.mark.storages("memory")
def test_a_name_that_changes_its_mind_is_not_followed(
    make_world: MakeWorld, names: NameServer, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: public when it is looked at, private ever after."""
    world = make_world(**{"identity.dns_resolver": names.address})
    organization = world.an_organization()
    api = api_of(world, organization)
    asked(api, organization)
    names.set(OWN, "A", ["203.0.114.7"], [LOOPBACK])
    tried: list[Any] = []

    def connect(target: Any, **_: Any) -> Any:
        tried.append(target)
        raise ConnectionRefusedError

    monkeypatch.setattr("identity.outgoing.socket.create_connection", connect)
    refused_proof(api, organization)
    assert tried == [("203.0.114.7", web.port)]
    assert web.connections == 0
    refused_proof(api, organization)
    assert len(tried) == 1, "by now the name leads to a private address"


@pytest.mark.storages("memory")
def test_a_file_is_not_looked_for_elsewhere(
    api: Api, organization: Organization, names: NameServer, web: WebServer
) -> None:
    domain = asked(api, organization)
    names.set(OWN, "A", [LOOPBACK])
    target = f"https://{OWN}:{web.port}/elsewhere"
    web.files[OWN, "/.well-known/identity-verification"] = (302, {"Location": target}, b"")
    web.files[OWN, "/elsewhere"] = (200, {}, domain["record_value"].encode())
    refused_proof(api, organization)
    assert web.received == [(OWN, "/.well-known/identity-verification")]


# --- who may say it ---------------------------------------------------------------------------------------------------


def manager(world: World, role: str) -> Api:
    return Api.of(world.a_manager(role, resource=INSTANCE))


@pytest.mark.storages("memory")
def test_who_manages_the_instance_asserts(world: World, api: Api, organization: Organization) -> None:
    asked(api, organization)
    path = path_of(organization, OWN)
    for other in (api, manager(world, "IAM_ORG_MANAGER")):
        check_api_error(other.ask("POST", f"{path}/assert"), 403, "forbidden")
    owner = manager(world, "IAM_OWNER")
    assert owner.post(f"{path}/assert", status=200)["proof"] == "asserted"
    # What counts, its own organization cannot let go: others would be taken for it.
    check_api_error(api.ask("DELETE", path), 403, "forbidden")
    api.patch(f"/organizations/{organization.id}", {"primary_domain": OWN})
    check_api_error(owner.ask("DELETE", path), 409, "conflict")
    api.patch(f"/organizations/{organization.id}", {"primary_domain": organization.primary_domain})
    owner.delete(path)
    events = {one.event for one in world.audit_events(object_id=organization.id)}
    assert {"domain.asked", "domain.asserted", "domain.removed"} <= events


@pytest.mark.storages("memory")
def test_an_organization_has_so_many_domains(world: World, api: Api, organization: Organization) -> None:
    for number in range(domains.MOST_DOMAINS - 1):
        asked(api, organization, f"d{number}.example")
    answer = api.ask("POST", path_of(organization), {"domain": "last.example"})
    assert "20 domains" in check_api_error(answer, 422, "invalid")["fields"]["domain"]
    # The list holds on to names that were the primary one, too.
    answer = api.ask("PATCH", f"/organizations/{organization.id}", {"primary_domain": "x-1.id.example.com"})
    assert "20 domains" in check_api_error(answer, 422, "invalid")["fields"]["primary_domain"]


def test_a_domain_that_counted_is_nobody_elses(own_world: World) -> None:
    """Not after its organization has another one, nor after it is gone; but who manages the instance can assert it."""
    world = own_world
    organization, other = world.an_organization(primary_domain=OWN), world.an_organization()
    former = world.an_organization()
    owner, rival = manager(world, "IAM_OWNER"), manager(world, "IAM_ORG_MANAGER")
    taken = [OWN, former.primary_domain]
    owner.patch(f"/organizations/{organization.id}", {"primary_domain": "second.example"})
    owner.patch(f"/organizations/{former.id}", {"primary_domain": "third.id.example.com"})
    for gone in (False, True):
        if gone:
            for one in (organization, former):
                owner.delete(f"/organizations/{one.id}")
        for name in taken:
            by_whom = (rival,) if gone else (rival, owner)
            for who in by_whom:
                answer = who.ask("PATCH", f"/organizations/{other.id}", {"primary_domain": name})
                assert answer.status_int == 422 or answer.json["primary_domain"] == other.primary_domain
                with world.reading() as services:
                    assert services.storage.organizations.find_by_domain(name) is None
    # A new organization of the name gets another domain.
    made = rival.post("/organizations", {"name": former.name})
    assert made["primary_domain"] == former.primary_domain.replace(".", "-2.", 1)
    for name in taken:
        assert owner.patch(f"/organizations/{other.id}", {"primary_domain": name})["primary_domain"] == name


def test_an_organization_that_comes_back_has_its_domain(own_world: World) -> None:
    organization = own_world.an_organization(primary_domain=OWN)
    owner = manager(own_world, "IAM_OWNER")
    document = owner.post(f"/organizations/{organization.id}/export", status=200)
    owner.delete(f"/organizations/{organization.id}")
    back = owner.post("/organizations/import", document)
    assert (back["id"], back["primary_domain"]) == (organization.id, OWN)


@pytest.mark.storages("memory")
def test_the_operator_hears_of_domains_that_nobody_has_proven(own_world: World) -> None:
    """From the time before that was asked for: they go on counting, and one can prove or assert them."""
    organization = own_world.an_organization()
    api, owner = api_of(own_world, organization), manager(own_world, "IAM_OWNER")
    with own_world.transaction() as services:
        stored = services.organizations.get(organization.id)
        services.storage.organizations.update(replace(stored, primary_domain=OWN, version=2))
        services.domains.keep(replace(stored, primary_domain=OWN))
    assert OWN in own_world.identity.checks.failed()["domains"]
    assert "domains" not in own_world.identity.checks.failed(of_readiness=True)
    shown = api.get(path_of(organization, OWN))
    assert (shown["counts"], shown["proof"]) == (True, "unproven")
    owner.post(f"{path_of(organization, OWN)}/assert", status=200)
    assert "domains" not in own_world.identity.checks.failed()


# --- nothing else counts ----------------------------------------------------------------------------------------------


def _created(world: World, api: Api) -> tuple[Organization, str]:
    made = manager(world, "IAM_ORG_MANAGER").post("/organizations", {"name": "Evil", "primary_domain": FOREIGN})
    return _found(world, made["id"]), FOREIGN


def _changed(world: World, api: Api) -> tuple[Organization, str]:
    organization = world.an_organization()
    path = f"/organizations/{organization.id}"
    assert api_of(world, organization).patch(path, {"primary_domain": FOREIGN})["primary_domain"] != FOREIGN
    return _found(world, organization.id), FOREIGN


def _asked(world: World, api: Api) -> tuple[Organization, str]:
    organization = world.an_organization()
    asked(api_of(world, organization), organization, FOREIGN)
    return _found(world, organization.id), FOREIGN


def _typed(world: World, api: Api) -> tuple[Organization, str]:
    organization = world.an_organization()
    person = world.a_person(organization)
    world.make_manager(person, "ORG_OWNER", resource=organization_resource(organization.id))
    browser = Browser(world)
    browser.start_session(person)
    browser.open(f"/console/organizations/{organization.id}/edit")
    browser.submit({"primary_domain": FOREIGN}, form="page-form")
    return _found(world, organization.id), FOREIGN


def _imported(world: World, api: Api) -> tuple[Organization, str]:
    organization = {"name": "Evil", "primary_domain": FOREIGN}
    document = {"format": "identity-organization", "version": 1, "instance": new_id(), "organization": organization}
    made = manager(world, "IAM_ORG_MANAGER").post("/organizations/import", document)
    return _found(world, made["id"]), FOREIGN


def _found(world: World, organization_id: str) -> Organization:
    with world.reading() as services:
        found: Organization = services.organizations.get(organization_id)
        assert services.domains.get(organization_id, FOREIGN).proof is None
        return found


DOORS = {"create": _created, "change": _changed, "ask": _asked, "console": _typed, "import": _imported}

ROLES = "urn:service:iam:org:projects:roles"


def _signs_in(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """As user@name on the login page."""
    give_password(world, person)
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(f"{person.user_name}@{name}")
    return browser.path == "/account/profile"


def _is_scope(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """``…:org:domain:primary:name``, that only members of the organization are granted."""
    client = world.a_web_application(world.a_project(organization).id)
    scope = f"openid urn:service:iam:org:domain:primary:{name}"
    answer = world.a_session(person).authorize(client, scope=scope, prompt="none")
    members = parse_qs(urlsplit(answer.headers["Location"]).query)
    return "code" in members


def _claims(world: World, organization: Organization, person: HumanUser) -> str:
    project = world.a_project(organization, roles=["reader"])
    world.a_user_grant(person, project, "reader")
    client = world.a_web_application(project.id)
    scope = f"openid profile email {ROLES} urn:service:iam:user:resourceowner"
    token = world.tokens(client, world.a_session(person), scope=scope)["access_token"]
    told: str = world.client.userinfo(token).text + world.client.introspect(token, client).text
    assert "primary_domain" in told
    return told


def _is_claimed(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """Role claims (role → {organization id: primary domain}) and claims of the resource owner."""
    return name in _claims(world, organization, person)


def _is_on_login_pages(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """What the pages of a sign-in say of the application's organization, and of the person's."""
    client = world.a_web_application(world.a_project(organization).id)
    browser = Browser(world)
    shown = []
    login_name = give_password(world, person)
    for parameters in ({}, {"scope": f"openid urn:service:iam:org:id:{organization.id}"}):
        browser.open(world.a_session(person).authorize(client, **parameters, prompt="login").headers["Location"])
        shown.append(browser.page.text)
    browser.open("/account")
    browser.sign_in(login_name)
    shown.append(browser.page.text)
    return any(name in page for page in shown)


def _is_represented(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """By the API: as the organization's, and as the caller's own."""
    api = api_of(world, organization)
    shown = [api.get("/me"), api.get(f"/organizations/{organization.id}"), api.list("/organizations")]
    return name in str(shown)


def _is_found(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """By programs, apply and documents that name an organization by its domain."""
    with world.reading() as services:
        return services.storage.organizations.find_by_domain(name) is not None


def _is_exported(world: World, organization: Organization, person: HumanUser, name: str) -> bool:
    """In the organization's document, under which it would be made elsewhere."""
    api = manager(world, "IAM_OWNER")
    return name in str(api.post(f"/organizations/{organization.id}/export", status=200))


READERS: dict[str, Callable[[World, Organization, HumanUser, str], bool]] = {
    "login name": _signs_in,
    "domain scope": _is_scope,
    "claims": _is_claimed,
    "login pages": _is_on_login_pages,
    "management API": _is_represented,
    "programs": _is_found,
    "document": _is_exported,
}


@pytest.mark.storages("memory")
@pytest.mark.parametrize("door", DOORS)
def test_a_domain_that_waits_is_said_nowhere(own_world: World, door: str) -> None:
    api = manager(own_world, "IAM_OWNER")
    organization, name = DOORS[door](own_world, api)
    person = own_world.a_person(organization)
    for reader, says in READERS.items():
        assert not says(own_world, organization, person, name), f"{reader} says {name}"
    # Each of them would say it if it counted.
    changed = api.patch(f"/organizations/{organization.id}", {"primary_domain": name})
    assert changed["primary_domain"] == name
    for reader, says in READERS.items():
        if reader != "login pages":
            assert says(own_world, _primary(own_world, organization), person, name), f"{reader} does not say {name}"


def _primary(world: World, organization: Organization) -> Organization:
    with world.reading() as services:
        found: Organization = services.organizations.get(organization.id)
        return found


@pytest.mark.storages("memory")
def test_no_spelling_of_a_domain_counts_without_a_proof(own_world: World) -> None:
    """Unicode, punycode, dots and cases; addresses and single names; the service's own hosts; others' names."""
    acme = own_world.an_organization(name="Acme")
    evil = own_world.an_organization(name="Evil")
    api = api_of(own_world, evil)
    spellings = [
        FOREIGN,
        "MICROSOFT.com",
        "microsoft.com.",
        ".microsoft.com",
        "microsoft..com",
        "microsоft.com",
        "ｍicrosoft.com",
        "microsoft。com",
        "xn--mirosoft-cgb.com",
        "microsoft.com\n",
        "microsoft.com ",
        "microsoft.com@evil.example",
        "com",
        "co.uk",
        "microsoft",
        "localhost",
        "127.0.0.1",
        "2130706433",
        "[::1]",
        "::1",
        "0x7f.1",
        "id.example.com",
        "ID.example.com",
        "example.com",
        "login.id.example.com.",
        acme.primary_domain,
        acme.primary_domain.upper(),
        f"evil.{acme.primary_domain}",
        f"xn--acme-9ya.{acme.primary_domain.partition('.')[2]}",
        "x" * 64 + ".example",
        ".".join(["x" * 60] * 5),
    ]
    for name in spellings:
        answers = [
            api.ask("PATCH", f"/organizations/{evil.id}", {"primary_domain": name}),
            api.ask("POST", path_of(evil), {"domain": name}),
            api.ask("POST", "/organizations", {"name": "Evil", "primary_domain": name}),
        ]
        assert {one.status_int for one in answers} <= {200, 201, 403, 422}, name
        with own_world.reading() as services:
            assert services.organizations.get(evil.id).primary_domain == evil.primary_domain, name
            assert [one.name for one in services.domains.of_organization(evil.id) if one.counts] == [
                evil.primary_domain
            ], name
    assert re.fullmatch(r"evil\.id\.example\.com", evil.primary_domain)

"""Client ID metadata documents: clients whose id is the URL of their metadata."""

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.errors import Invalid
from identity.domain.legal_holds import LegalHoldKind
from identity.domain.permissions import Resource
from identity.domain.projects import URL_CLIENTS_PROJECT_ID
from identity.plugins.client_id_metadata_documents import ClientIdMetadataDocuments
from identity.services.access_control import Principal
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.commands.projects import ChangeProject
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import ReceivedTokens, SentAuthorizationRequest
from identity.testing.response_checks import check_api_error, check_oauth_error, check_page, check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import World
from tests.plugins.metadata_host import CALLBACK, URL, document, install_url_client
from tests.spec.consent_scenario import CONSENT
from tests.spec.test_5_3_private_key_jwt import SigningClient, key_set

# The storage matters where consents meet; a world of its own is cheap in memory.
pytestmark = pytest.mark.storages("memory")

HOST = "app.example"
MEMBERS = (
    "client_id",
    "client_name",
    "redirect_uris",
    "grant_types",
    "response_types",
    "token_endpoint_auth_method",
    "token_endpoint_auth_methods_supported",
    "token_endpoint_auth_signing_alg",
    "jwks",
    "jwks_uri",
)
SETTINGS = {"identity.plugin.client_id_metadata_documents.allowed_hosts": "*"}


class UrlClient:
    """A public client at URL, and a person in a browser."""

    def __init__(self, world: World, *hosts: str) -> None:
        self.world = world
        self.party, self.host = install_url_client(world, *hosts)
        # That of the project in which such clients are stored: the nearest that they have to an organization.
        with world.transaction_services() as services:
            self.organization = services.organizations.get(world.instance.organization_id)
        self.person = world.make_human_user(self.organization)
        self.browser = Browser(world)
        self.browser.start_session(self.person)

    def publish(self, **members: Any) -> None:
        """Change the document, and let the cache expire."""
        self.host.document = document(**members)
        metadata = self.world.identity.process_state.client_metadata
        assert metadata is not None
        metadata.cache.forget(URL)

    def agree(self, scope: str = "openid email offline_access", **parameters: Any) -> ReceivedTokens:
        sent = self.party.open_request(self.browser, "code", scope, **parameters)
        assert self.browser.sign_in_step == CONSENT
        self.browser.submit(button=("decision", "allow"))
        return self.party.obtain_tokens(self.browser.page, sent)


@pytest.fixture
def client(make_world: WorldFactory) -> UrlClient:
    return UrlClient(make_world(), "*")


def test_discovery_says_whether_hosts_are_allowed(make_world: WorldFactory) -> None:
    member = "client_id_metadata_document_supported"
    assert make_world(**SETTINGS).client.discovery[member] is True
    assert member not in make_world().client.discovery


@pytest.mark.storages("sqlite")
def test_client_signs_in_and_refreshes_without_registration(client: UrlClient) -> None:
    client.party.open_request(client.browser, "code", "openid email offline_access")
    page = client.browser.page.html.get_text(" ", strip=True)
    assert "Invoices & more (app.example) requests access to your account" in page
    assert "It is known only by its address at app.example" in page
    tokens = client.agree()
    assert tokens.claims["sub"] == client.person.id
    assert tokens.claims["aud"] == URL
    assert client.party.fetch_userinfo(tokens)["sub"] == client.person.id
    assert client.party.refresh(tokens.refresh_token).status_int == 200
    assert len(client.host.requests) == 1, "the metadata is cached"


def test_client_authenticates_with_the_key_of_its_metadata(client: UrlClient) -> None:
    signer = SigningClient(client.world, client.world.key_pool.next(), URL)
    keys = json.loads(key_set(("one", signer.key)))
    client.publish(token_endpoint_auth_method="private_key_jwt", jwks=keys)
    sent = client.party.open_request(client.browser)
    client.browser.submit(button=("decision", "allow"))
    code = client.party.extract_code(client.browser.page, sent)
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": str(sent.verifier)}
    check_oauth_error(client.party.redeem(code, sent), "invalid_client", status=401)
    check_token_response(signer.ask(code=code, **form))


def test_changed_metadata_needs_another_consent(client: UrlClient) -> None:
    """Who controls the address later gets nothing by an earlier consent."""
    tokens, party = client.agree(), client.party
    another_uri = "https://app.example/other"
    client.publish(redirect_uris=[another_uri])
    client.browser.open(party.new_request("code", "openid email").url)
    check_page(client.browser.page, 400)
    refreshed = party.refresh(tokens.refresh_token)
    assert refreshed.status_int == 200
    # Another person agrees to the new metadata, which the client then has for all.
    client.browser = Browser(client.world)
    client.browser.start_session(client.world.make_human_user())
    client.agree(redirect_uri=another_uri)
    check_oauth_error(party.refresh(refreshed.json["refresh_token"]), "invalid_grant")


def test_consent_page_of_older_metadata_grants_nothing(client: UrlClient) -> None:
    client.party.open_request(client.browser, "code", "openid")
    client.publish(client_name="Your bank")
    client.browser.submit(button=("decision", "allow"))
    assert client.browser.sign_in_step == CONSENT
    assert "Your bank" in client.browser.page.html.get_text()


def test_client_belongs_to_no_organization(client: UrlClient) -> None:
    """Its audience is itself: not the project or organization of the user, and never the service."""
    world = client.world
    project = world.make_project(client.organization)
    client.agree()
    with world.transaction_services() as services:
        command = ChangeProject(open_to_dynamic_clients=True)
        services.projects.change(URL_CLIENTS_PROJECT_ID, command, principal=Principal.OPERATOR)
    for scope in (
        world.audience_scope(),
        world.audience_scope(project.id),
        world.audience_scope(URL_CLIENTS_PROJECT_ID),
    ):
        sent = client.party.open_request(client.browser, "code", f"openid {scope}")
        client.party.check_error_response(client.browser.page, sent, "invalid_scope")
    for grant_type in ("client_credentials", TOKEN_EXCHANGE):
        answer = world.client.request_token({"grant_type": grant_type, "client_id": URL})
        check_oauth_error(answer, "unauthorized_client")


@pytest.mark.every_storage
def test_people_who_agree_at_once_all_get_tokens(make_world: WorldFactory) -> None:
    client = UrlClient(make_world(), "*")
    barrier, people = Barrier(6), []
    for _ in range(6):
        browser = Browser(client.world)
        browser.start_session(client.world.make_human_user())
        people.append((browser, client.party.open_request(browser)))

    def agree(browser: Browser, sent: SentAuthorizationRequest) -> ReceivedTokens:
        barrier.wait()
        browser.submit(button=("decision", "allow"))
        return client.party.obtain_tokens(browser.page, sent)

    with ThreadPoolExecutor(len(people)) as pool:
        assert len({tokens.claims["sub"] for tokens in pool.map(agree, *zip(*people, strict=True))}) == len(people)


@pytest.mark.storages("memory", "sqlite")
def test_client_that_another_person_stored_meanwhile_stays(client: UrlClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a transaction sees that began before the other one ended."""
    client.agree()
    with client.world.transaction_services() as services:
        found = services.applications.find_requesting_client(URL)
        assert found is not None
        renamed = replace(found, application=replace(found.application, name="Other", version=9))
        services.applications.store_url_client(renamed)
        for store in (services.storage.applications, services.storage.projects):
            monkeypatch.setattr(type(store), "find", lambda self, id: None)
        services.applications.store_url_client(found)
        monkeypatch.undo()
        assert services.applications.get(URL) == found.application


def test_new_clients_are_limited_per_network(make_world: WorldFactory) -> None:
    """Anyone can publish any number of documents; a client that is stored already does not count."""
    client = UrlClient(make_world(**{"identity.attempts_per_address": "1"}), "*")
    client.agree()
    client.agree()
    client.party.client_id = "https://app.example/second.json"
    client.party.open_request(client.browser)
    client.browser.submit(button=("decision", "allow"))
    check_page(client.browser.page, 429)
    client.world.clock.advance(minutes=11)
    client.browser.submit(button=("decision", "allow"))
    assert client.browser.external_redirect is not None


@pytest.mark.storages("memory", "sqlite")
def test_client_that_nobody_uses_is_deleted(client: UrlClient) -> None:
    """Consents, live tokens and legal holds keep it, and so does a manager who has blocked it."""
    world = client.world
    tokens = client.agree()

    def remove_unused() -> int:
        return world.identity.background_jobs.remove_unused_clients()

    world.clock.advance(days=29)
    assert client.party.refresh(tokens.refresh_token).status_int == 200
    world.clock.advance(days=2)
    assert remove_unused() == 0, "someone agreed to it"
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(client.person.id)
        assert subject is not None
        assert services.consents.withdraw_consent(subject, URL)
    assert remove_unused() == 0, "its refresh token is live"
    with world.transaction_services() as services:
        services.storage.tokens.revoke_for_user(client.person.id, services.now, client_id=URL)
        command = CreateLegalHold(kind=LegalHoldKind.USER, held_id=client.person.id, reason="Case 1")
        hold = services.legal_holds.create(command)
    assert remove_unused() == 0, "a legal hold keeps its tokens"
    with world.transaction_services() as services:
        services.legal_holds.release(hold.id)
    world.operator_services.applications.deactivate(URL)
    assert remove_unused() == 0, "a manager has blocked it"
    world.operator_services.applications.reactivate(URL)
    assert remove_unused() == 1
    client.browser.start_session(client.person)
    assert client.agree().claims["aud"] == URL
    assert remove_unused() == 0


def test_blocked_client_is_unknown(client: UrlClient) -> None:
    tokens = client.agree()
    client.world.operator_services.applications.deactivate(URL)
    client.party.open_request(client.browser)
    check_page(client.browser.page, 400, "This application is unknown")
    check_oauth_error(client.party.refresh(tokens.refresh_token), "invalid_client", status=401)


def test_client_has_pages_and_operations_by_its_encoded_url(client: UrlClient) -> None:
    tokens, world = client.agree(), client.world
    path = f"/applications/{quote(quote(URL, safe=''))}"
    program = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)
    found = world.client.call_management_api(path, program.management_token()).json
    assert (found["id"], found["name"], found["consent"]) == (URL, "Invoices & more (app.example)", "always")
    # Its organization's managers cannot change it.
    home = Resource.of_organization(world.instance.organization_id)
    owner = world.make_manager_program("ORG_OWNER", resource=home)
    answer = world.client.call_management_api(f"{path}/deactivate", owner.management_token(), method="POST")
    check_api_error(answer, 403, "forbidden")
    for strange in ("%252500", "https%253A%252F%252Fapp.example%252F%2500", "%25ff%253A"):
        answer = world.client.call_management_api(f"/applications/{strange}", program.management_token())
        check_api_error(answer, 404, "not_found")
    client.browser.open("/account/applications")
    client.browser.open(client.browser.page.html.find("a", href=re.compile("/disconnect"))["href"])
    client.browser.submit()
    check_oauth_error(client.party.refresh(tokens.refresh_token), "invalid_grant")


def test_console_pages_of_the_client_are_linked(client: UrlClient) -> None:
    client.agree()
    manager = client.world.make_human_user()
    client.world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(client.world)
    browser.start_session(manager)
    for path in (f"/console/projects/{URL_CLIENTS_PROJECT_ID}/applications", "/console/audit-events"):
        browser.open(path)
        browser.open(browser.page.html.find("a", href=re.compile("client.json$"))["href"])
        check_page(browser.page, 200, "Invoices & more (app.example)")


def test_host_that_is_denied_later_stops_its_clients(client: UrlClient) -> None:
    tokens = client.agree()
    metadata = client.world.identity.process_state.client_metadata
    assert metadata is not None
    for sources in ((ClientIdMetadataDocuments(["*"], ["*.example"]),), (ClientIdMetadataDocuments(["*"], [HOST]),)):
        metadata._sources = sources
        client.party.open_request(client.browser)
        check_page(client.browser.page, 400, "This application is unknown")
        check_oauth_error(client.party.refresh(tokens.refresh_token), "invalid_client", status=401)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_unavailable_metadata_shows_a_page_and_backs_off(client: UrlClient, status: int) -> None:
    client.host.status = status
    for _ in range(2):
        client.party.open_request(client.browser)
        check_page(client.browser.page, 400, "This application cannot be verified")
    assert len(client.host.requests) == 1


def test_unlisted_host_is_not_asked(make_world: WorldFactory) -> None:
    client = UrlClient(make_world(), "other.example")
    client.party.open_request(client.browser)
    check_page(client.browser.page, 400, "This application is unknown")
    assert client.host.requests == []


def test_program_on_the_device_is_pointed_out(client: UrlClient) -> None:
    client.publish(redirect_uris=["http://127.0.0.1/callback"])
    client.browser.open(client.party.new_request("code", "openid", redirect_uri="http://127.0.0.1:4711/callback").url)
    assert client.browser.sign_in_step == CONSENT
    assert "A program on this device gets the access" in client.browser.page.html.get_text()


ALL = ClientIdMetadataDocuments(["*"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["none", "private_key_jwt", "code", URL])
    | st.text(max_size=20),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(["keys", "kty", "k"]), values),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(MEMBERS), JSON))
def test_any_document_is_read_or_refused(members: Mapping[str, Any]) -> None:
    try:
        command = ALL.read(URL, json.dumps(document() | dict(members)).encode())
    except Invalid:
        return
    assert str(command).encode()
    assert command.response_types == {"code"}


@given(st.binary(max_size=200))
def test_any_body_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        ALL.read(URL, body)


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example/client.json",
        "https://app.example",
        "https://app.example/",
        "https://app.example/a//b",
        "https://app.example/a/../b",
        "https://app.example/%2e%2e/b",
        "https://app.example/a?b=c",
        "https://app.example/a#b",
        "https://user@app.example/a",
        "https://app.example:443/a",
        "https://APP.example/a",
        "https://localhost/a",
        "https://127.0.0.1/a",
        "https://192.0.2.1/a",
        "https://example/a",
        "https://app.example/a\n",
        f"https://app.example/{'a' * 200}",
    ],
)
def test_other_urls_are_no_client_ids(url: str) -> None:
    assert not ALL.accepts(url)


def test_hosts_are_allowed_by_name_or_by_parent() -> None:
    hosts = ClientIdMetadataDocuments(["app.example", "*.shop.example", "127.0.0.1"])
    assert all(map(hosts.accepts, (URL, "https://a.b.shop.example/x", "http://127.0.0.1:8000/x")))
    assert not any(map(hosts.accepts, ("https://shop.example/x", "https://x.app.example/x", "https://xshop.example/x")))


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"client_id": f"{URL}/"}, "client_id"),
        ({"client_secret": "x"}, "client_secret"),
        ({"client_secret_expires_at": 0}, "client_secret_expires_at"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_methods_supported": ["client_secret_post"]}, "token_endpoint_auth_method"),
        ({"redirect_uris": None}, "redirect_uris"),
        ({"redirect_uris": []}, "redirect_uris"),
        ({"redirect_uris": ["https://app.example.evil.example/"]}, "redirect_uris"),
        ({"redirect_uris": ["https://other.example/cb"]}, "redirect_uris"),
        ({"redirect_uris": ["com.example.app:/cb"]}, "redirect_uris"),
        ({"redirect_uris": [7]}, "redirect_uris"),
        ({"grant_types": ["client_credentials"]}, "grant_types"),
        ({"grant_types": "authorization_code"}, "grant_types"),
        ({"response_types": ["token"]}, "response_types"),
        ({"client_name": ["x"]}, "client_name"),
        ({"client_name": "a\u202eb"}, "name"),
        ({"client_name": "\ud800"}, "name"),
        ({"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [{"kty": "oct", "k": "eA"}]}}, "jwks"),
        ({"client_name": "x" * 6000}, "document"),
    ],
)
def test_wrong_metadata_is_refused(members: Mapping[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        ALL.read(URL, json.dumps(document(**members)).encode())
    assert field in refusal.value.fields


def test_client_chooses_the_best_of_its_methods() -> None:
    """OpenID Connect RP Metadata Choices."""
    members = {
        "token_endpoint_auth_methods_supported": ["client_secret_post", "none", "private_key_jwt"],
        "jwks_uri": "https://app.example/keys",
    }
    assert ALL.read(URL, json.dumps(document(**members)).encode()).authentication_method == "private_key_jwt"

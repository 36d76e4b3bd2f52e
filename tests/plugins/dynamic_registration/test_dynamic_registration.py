"""Dynamic client registration (RFC 7591) and the configuration of registered clients (RFC 7592)."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identity.crypto.secrets import new_id
from identity.domain.applications import ApplicationOrigin, ConsentRule
from identity.domain.errors import Invalid
from identity.domain.permissions import Resource
from identity.domain.projects import Project
from identity.outbound_http import OutboundResponse
from identity.plugins.dynamic_registration.metadata import _BOUND_TOKENS, _MEMBERS
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_token_response
from identity.testing.world import World
from tests.spec.test_fuzz_token_endpoint import fuzzing, json_values, texts

REDIRECT_URI = "https://reports.example/callback"
METADATA = {"client_name": "Reports", "redirect_uris": [REDIRECT_URI]}
POLICY = {"client_registration": "initial_access_token", "registration_redirect_hosts": ["reports.example"]}


@pytest.fixture
def world(make_world: WorldFactory, storage_name: str) -> World:
    storage = "memory" if storage_name == "memory" else "sql"
    return make_world(**{"identity.plugins": f"{storage} {DEFAULT_PLUGINS} dynamic_registration"})


@pytest.fixture
def project(world: World) -> Project:
    return set_policy(world, world.make_project())


pytestmark = pytest.mark.storages("memory", "sqlite")


def set_policy(world: World, project: Project, **changes: Any) -> Project:
    with world.transaction_services() as services:
        command = ChangeProject.decode({**POLICY, **changes})
        return services.projects.change(project.id, command, principal=Principal.OPERATOR)


def manager_token(world: World, project: Project) -> str:
    resource = Resource.of_organization(project.organization_id)
    return world.make_manager_program(resource=resource).management_token()


def add_token(world: World, project: Project, **members: Any) -> dict[str, Any]:
    """As a manager does it by the API."""
    manager = manager_token(world, project)
    answer = world.client.call_management_api(
        f"/projects/{project.id}/initial-access-tokens", manager, "POST", {"name": "CI", **members}
    )
    assert answer.status_int == 200, answer
    world.client.secrets.add(answer.json["token"])
    return dict(answer.json)


def send(
    world: World, method: str, url: str, token: str | None, metadata: object = None, *, body: bytes | None = None
) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if metadata is not None or body is not None:
        headers["Content-Type"] = "application/json"
    sent = body if body is not None else b"" if metadata is None else json.dumps(metadata).encode()
    answer = world.client.request(method, url, headers=headers, body=sent)
    if answer.status_int in (200, 201):
        world.client.secrets |= {answer.json[name] for name in SECRETS if name in answer.json}
    return answer


SECRETS = ("client_secret", "registration_access_token")


def register(world: World, token: str | None, metadata: object = METADATA, query: str = "", **more: Any) -> Any:
    return send(world, "POST", world.client.discovery["registration_endpoint"] + query, token, metadata, **more)


def registered(
    world: World, token: str | None, metadata: Mapping[str, Any] = METADATA, query: str = ""
) -> dict[str, Any]:
    answer = register(world, token, metadata, query)
    assert answer.status_int == 201, answer
    return dict(answer.json)


def test_client_registers_and_signs_a_person_in(world: World, project: Project) -> None:
    """The response has what was registered (RFC 7591 §3.2.1); the client is dynamic."""
    token = add_token(world, project)["token"]
    answer = register(world, token, {**METADATA, "grant_types": ["authorization_code", "refresh_token"], "unknown": 1})
    assert (answer.status_int, answer.headers["Cache-Control"]) == (201, "no-store")
    client = answer.json
    assert {name: client[name] for name in METADATA} == METADATA
    assert (client["response_types"], client["token_endpoint_auth_method"]) == (["code"], "client_secret_basic")
    assert (client["client_secret_expires_at"], "unknown" in client) == (0, False)
    with world.read_only_services() as services:
        application = services.applications.get(client["client_id"])
    assert (application.project_id, application.origin) == (project.id, ApplicationOrigin.REGISTRATION)
    assert (application.consent, application.access_token_lifetime) == (ConsentRule.ALWAYS, timedelta(hours=1))
    browser, person = Browser(world), world.make_human_user()
    browser.start_session(person)
    party = RelyingParty(
        world.client,
        client["client_id"],
        client["client_secret"],
        redirect_uri=REDIRECT_URI,
        now=lambda: world.clock.seconds,
    )
    request = party.open_request(browser, "code", "openid offline_access")
    assert "The access goes to reports.example." in browser.page.html.get_text()
    browser.submit(button=("decision", "allow"))
    tokens = party.obtain_tokens(browser.page, request)
    check_token_response(party.refresh(tokens.refresh_token))
    assert (
        send(world, "DELETE", client["registration_client_uri"], client["registration_access_token"]).status_int == 204
    )
    assert party.refresh(tokens.refresh_token).status_int == 401
    assert world.client.fetch_userinfo(tokens.access_token).status_int == 401


def test_nobody_registers_without_permission(world: World, project: Project) -> None:
    """One answer, whether a project is unknown, closed, or needs a token."""
    token, closed = (
        add_token(world, project)["token"],
        set_policy(world, world.make_project(), client_registration="off"),
    )
    texts = set()
    for presented, query in (
        (None, ""),
        (None, f"?project={project.id}"),
        (None, f"?project={closed.id}"),
        (None, "?project=unknown"),
        (f"{token}x", ""),
        (f"{closed.id}.{token.partition('.')[2]}", ""),
        (add_token(world, closed)["token"], ""),
    ):
        answer = register(world, presented, query=query)
        assert answer.status_int == 401, answer
        texts.add((answer.text, answer.headers["WWW-Authenticate"]))
    assert len(texts) == 1
    world.clock.advance(days=7)
    assert register(world, token).status_int == 401, "it has expired"


def test_initial_access_token_counts_its_uses_and_can_be_revoked(world: World, project: Project) -> None:
    manager = manager_token(world, project)
    twice, other = add_token(world, project, uses=2), add_token(world, project)
    assert register(world, twice["token"], {"redirect_uris": []}).status_int == 400
    assert [register(world, twice["token"]).status_int for _ in range(3)] == [201, 201, 401]
    path = f"/projects/{project.id}/initial-access-tokens"
    rows = world.client.call_management_api(path, manager, "GET").json["items"]
    assert {row["id"]: row["used"] for row in rows} == {twice["id"]: 2, other["id"]: 0}
    assert not any("token" in row for row in rows)
    assert world.client.call_management_api(f"{path}/{other['id']}", manager, "DELETE").status_int == 204
    assert register(world, other["token"]).status_int == 401


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"redirect_uris": ["https://evil.example/cb"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["https://reports.example@evil.example/cb"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["https://reports.example/#x"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["http://reports.example/cb"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["http://localhost/cb"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["com.evil.app:/cb"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
    ({"redirect_uris": []}, "invalid_redirect_uri"),
    ({"redirect_uris": REDIRECT_URI}, "invalid_client_metadata"),
    ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
    ({"grant_types": ["unknown"]}, "invalid_client_metadata"),
    ({"response_types": ["none"]}, "invalid_client_metadata"),
    ({"token_endpoint_auth_method": "unknown"}, "invalid_client_metadata"),
    ({"backchannel_logout_uri": "https://evil.example/logout"}, "invalid_client_metadata"),
    ({"jwks": "{}"}, "invalid_client_metadata"),
    ({"client_name": "a\u0000b"}, "invalid_client_metadata"),
    ({"subject_type": "secret"}, "invalid_client_metadata"),
    ({"sector_identifier_uri": "https://stranger.example/list"}, "invalid_client_metadata"),
    ({"request_uris": ["https://stranger.example/request"]}, "invalid_client_metadata"),
    ({"tls_client_certificate_bound_access_tokens": "yes"}, "invalid_client_metadata"),
    (
        {"tls_client_certificate_bound_access_tokens": True, "dpop_bound_access_tokens": True},
        "invalid_client_metadata",
    ),
    ({"application_type": "api"}, "invalid_client_metadata"),
    ({"id_token_signed_response_alg": "none"}, "invalid_client_metadata"),
    ({"software_statement": "text"}, "invalid_software_statement"),
    ({"software_statement": "e30.e30.x"}, "unapproved_software_statement"),
)
MALFORMED = (b"", b"[]", b"null", b"{", b'{"a":NaN}', b'{"client_name":"\\ud800"}', b"[" * 60000, b"\xff")


@pytest.mark.storages("memory")
def test_metadata_beyond_the_rules_are_refused(world: World, project: Project) -> None:
    """The rules of applications that managers create, and the project's policy. A refused registration uses nothing."""
    token = add_token(world, project)["token"]
    for changes, error in REFUSED:
        answer = register(world, token, {**METADATA, **changes})
        assert (answer.status_int, answer.json.get("error")) == (400, error), (changes, answer.text)
    for body in MALFORMED:
        assert register(world, token, None, body=body).status_int == 400, body[:50]
    assert register(world, token).status_int == 201


@pytest.mark.storages("memory")
def test_any_metadata_are_answered(world: World, project: Project) -> None:
    token = add_token(world, project, uses=100)["token"]
    names = st.sampled_from([*_MEMBERS, "jwks", "application_type", "software_statement", *_BOUND_TOKENS.values()])

    @settings(fuzzing, max_examples=60)
    @given(st.dictionaries(names, json_values | st.lists(texts, max_size=2), max_size=4))
    def check(changes: Mapping[str, Any]) -> None:
        answer = register(world, token, {**METADATA, **changes})
        assert answer.status_int in (201, 400), answer.text
        assert (answer.status_int == 400) == ("error" in answer.json)

    check()


@pytest.mark.storages("memory")
def test_nobody_waits_for_the_host_of_a_sector(world: World, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither clients nor managers can stop all writes with a host that responds slowly."""
    written: list[bool] = []

    def write() -> None:
        with world.transaction_services() as services:
            services.storage.attempts.clear_for_user(new_id())

    def respond(method: str, url: str, **_: Any) -> OutboundResponse:
        thread = Thread(target=write, daemon=True)
        thread.start()
        thread.join(3)
        written.append(not thread.is_alive())
        return OutboundResponse(200, json.dumps([REDIRECT_URI]).encode())

    monkeypatch.setattr(world.identity.process_state.documents.transport, "send", respond)
    sector = {"subject_type": "pairwise", "sector_identifier_uri": "https://reports.example/list"}
    set_policy(world, project, client_registration="open")
    client = registered(world, None, {**METADATA, **sector}, f"?project={project.id}")
    url, token = client["registration_client_uri"], client["registration_access_token"]
    metadata = {**METADATA, **sector, "client_id": client["client_id"]}
    moved = {"sector_identifier_uri": "https://reports.example/moved"}
    assert send(world, "PUT", url, token, {**metadata, **moved}).status_int == 200
    manager, path = manager_token(world, project), f"/projects/{project.id}/applications"
    settings = {"name": "Shop", "type": "web", "redirect_uris": [REDIRECT_URI], **sector}
    created = world.client.call_management_api(path, manager, "POST", settings)
    assert created.status_int == 201
    path = f"/applications/{created.json['id']}"
    assert world.client.call_management_api(path, manager, "PATCH", moved).status_int == 200
    assert written == [True] * 4


def test_no_metadata_make_a_client_more(world: World, project: Project) -> None:
    more = {
        "consent": "never",
        "may_manage": True,
        "origin": "manager",
        "development": True,
        "access_token_lifetime": 9,
    }
    client = registered(world, add_token(world, project)["token"], METADATA | more)
    with world.read_only_services() as services:
        application = services.applications.get(client["client_id"])
    assert (application.consent, application.may_manage, application.development) == (ConsentRule.ALWAYS, False, False)
    assert application.is_dynamic


def test_client_replaces_its_metadata(world: World, project: Project) -> None:
    """RFC 7592 §2.2: what is left out gets its default, and the policy holds."""
    client = registered(
        world, add_token(world, project)["token"], {**METADATA, "post_logout_redirect_uris": [REDIRECT_URI]}
    )
    url, token = client["registration_client_uri"], client["registration_access_token"]
    read = send(world, "GET", url, token)
    assert read.status_int == 200
    assert read.json == {name: value for name, value in client.items() if name != "client_secret"}
    beyond = {**METADATA, "client_id": client["client_id"], "redirect_uris": ["https://evil.example/cb"]}
    for metadata, error in (
        (METADATA, "invalid_client_metadata"),
        ({**METADATA, "client_id": "other"}, "invalid_client_metadata"),
        ({**METADATA, "client_id": client["client_id"], "client_secret": "guess"}, "invalid_client_metadata"),
        (beyond, "invalid_redirect_uri"),
    ):
        answer = send(world, "PUT", url, token, metadata)
        assert (answer.status_int, answer.json["error"]) == (400, error), answer
    changed = {
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        "redirect_uris": [f"{REDIRECT_URI}/2"],
    }
    answer = send(world, "PUT", url, token, changed)
    assert answer.status_int == 200, answer
    assert answer.json["redirect_uris"] == changed["redirect_uris"]
    assert answer.json["post_logout_redirect_uris"] == []
    assert send(world, "GET", url, token).status_int == 401, "the token was replaced"
    renewed = answer.json["registration_access_token"]
    set_policy(world, project, client_registration="off")
    assert send(world, "PUT", url, renewed, {**METADATA, "client_id": client["client_id"]}).status_int == 400
    assert send(world, "DELETE", url, renewed).status_int == 204


def test_configuration_is_disclosed_to_its_client_alone(world: World, project: Project) -> None:
    first, second = (registered(world, add_token(world, project)["token"]) for _ in range(2))
    url, token = first["registration_client_uri"], second["registration_access_token"]
    unknown = url.replace(first["client_id"], "unknown")
    answers = [
        send(world, method, address, presented, METADATA if method == "PUT" else None)
        for method in ("GET", "PUT", "DELETE")
        for address, presented in ((url, None), (url, token), (unknown, token), (url.partition("?")[0], token))
    ]
    assert {(answer.status_int, answer.text) for answer in answers} == {(401, answers[0].text)}
    assert send(world, "GET", url, first["registration_access_token"]).status_int == 200


def test_open_project_takes_anyone_until_it_is_full(world: World, project: Project) -> None:
    """A deleted client frees its place; requests are counted per network address."""
    set_policy(world, project, client_registration="open", registration_limit=2)
    query = f"?project={project.id}"
    clients = [registered(world, None, query=query) for _ in range(2)]
    answer = register(world, None, query=query)
    assert (answer.status_int, answer.json["error"]) == (429, "temporarily_unavailable")
    send(world, "DELETE", clients[0]["registration_client_uri"], clients[0]["registration_access_token"])
    assert register(world, None, query=query).status_int == 201


def test_loopback_and_private_schemes_make_native_clients(world: World, project: Project) -> None:
    set_policy(world, project, registration_redirect_hosts=["localhost", "com.example.app"])
    metadata = {
        "redirect_uris": ["http://127.0.0.1/cb", "com.example.app:/cb"],
        "token_endpoint_auth_method": "none",
    }
    client = registered(world, add_token(world, project)["token"], metadata)
    assert (client["application_type"], "client_secret" in client) == ("native", False)


@pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")
@pytest.mark.thorough
def test_parallel_registrations_keep_the_limits(world: World, project: Project) -> None:
    """Security 5.2: the last use of a token, and the last place in a project."""
    set_policy(world, project, registration_limit=3)
    token, many = add_token(world, project)["token"], add_token(world, project, uses=100)["token"]
    with ThreadPoolExecutor(20) as pool:
        once = [answer.status_int for answer in pool.map(lambda _: register(world, token), range(25))]
        limited = [answer.status_int for answer in pool.map(lambda _: register(world, many), range(25))]
    assert sorted(once) == [201] + 24 * [401]
    assert sorted(limited) == 2 * [201] + 23 * [429]


@pytest.mark.storages("memory", "sqlite")
def test_unused_clients_are_deleted(world: World, project: Project) -> None:
    """A consent keeps a client, age alone does not delete it."""
    token = add_token(world, project, uses=3)["token"]
    used, unused = registered(world, token), registered(world, token)
    person = world.make_human_user()
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        client = services.applications.find_client(used["client_id"])
        assert subject is not None
        assert client is not None
        services.consents.grant_consent(subject, client, ("openid",))
    world.clock.advance(days=29)
    assert world.identity.background_jobs.remove_unused_clients() == 0
    young = registered(world, add_token(world, project)["token"])
    world.clock.advance(days=1)
    assert world.identity.background_jobs.remove_unused_clients() == 1
    with world.read_only_services() as services:
        found = [services.applications.find_client(item["client_id"]) is not None for item in (used, unused, young)]
    assert found == [True, False, True]


@pytest.mark.storages("memory")
def test_manager_adds_and_revokes_tokens_in_the_console(world: World, project: Project) -> None:
    """The token is shown once; who may only read the project sees the list."""
    resource, pages = Resource.of_organization(project.organization_id), []
    for role in ("ORG_OWNER", "ORG_OWNER_VIEWER"):
        person, browser = world.make_human_user(), Browser(world)
        world.assign_manager_role(person, role, resource=resource)
        browser.start_session(person)
        pages.append(browser)
    owner, viewer = pages
    owner.open(f"/console/projects/{project.id}")
    owner.click("Initial access tokens")
    owner.languages = "de"
    page = owner.submit({"name": "", "uses": "0"}, form="page-form")
    assert page.status_int == 422
    assert page.text.count("Geben Sie eine Zahl von mindestens 1 ein.") == 2, "in the summary and at the field"
    assert page.html.select_one(".rail__item[aria-current]").text.strip() == "Projekte"
    owner.languages = "en"
    page = owner.submit({"name": "CI <b>", "uses": "2"}, form="page-form")
    [token] = {
        item for item in page.text.replace('"', "<").replace(">", "<").split("<") if item.startswith(f"{project.id}.")
    }
    world.client.secrets.add(token)
    registered(world, token)
    path = f"/console/projects/{project.id}/initial-access-tokens"
    assert token not in owner.open(path).text
    assert "Used 1 of 2 times" in owner.page.text
    viewed = viewer.open(path)
    assert ("CI &lt;b&gt;" in viewed.text, "Revoke" in viewed.text, "Create the token" in viewed.text) == (
        True,
        False,
        False,
    )
    [revoking] = [key for key, form in owner.page.forms.items() if "revoked" in form.fields]
    owner.submit(form=revoking)
    assert "No initial access tokens yet" in owner.open(path).text
    assert register(world, token).status_int == 401


@pytest.mark.storages("memory")
def test_terms_are_shown_while_clients_can_register(world: World) -> None:
    """Registered clients act only for people, so a grant of clients alone is no choice."""
    organization = world.make_organization()
    project, owner, person = world.make_project(organization), Browser(world), world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_OWNER")
    owner.start_session(person)
    path = f"/console/projects/{project.id}"
    assert "Most registered clients" not in owner.open(path).text
    choices = owner.open(f"{path}/edit").forms["page-form"].fields["registration_grant_type"]
    assert "client_credentials" not in {item._value for item in choices}
    owner.submit({"client_registration": "open"}, form="page-form")
    text = owner.open(path).html.find(id="settings").get_text(" ")
    assert all(item in text for item in ("no client can register", "Codes and refresh tokens", "60 minutes", "30 days"))
    command = ChangeProject.decode({"registration_grant_types": ["client_credentials"]})
    with world.transaction_services() as services, pytest.raises(Invalid):
        services.projects.change(project.id, command, principal=Principal.OPERATOR)

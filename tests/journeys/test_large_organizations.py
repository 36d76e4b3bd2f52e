"""Large organizations are exported as a stream, from one snapshot or visibly truncated, and imported."""

import http.client
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from identity import password_hashing
from identity.domain.audit import AuditFilter
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.http.json_stream import parse_json_stream
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeHumanUser
from identity.services.organization_transfer import OrganizationTransfer, StreamedOrganizationImport
from identity.storage.contract import factories as make
from identity.storage.paging import MAX_PAGE_ROWS, iterate_rows
from identity.testing.world import World
from tests.http_server import loopback_socket, running_http_server
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = [pytest.mark.every_storage, pytest.mark.thorough]

PEOPLE = 2 * MAX_PAGE_ROWS + 50


@pytest.fixture
def large(isolated_world: World) -> Organization:
    """An organization with several pages of users."""
    organization = isolated_world.make_organization()
    with isolated_world.transaction_services() as services:
        for number in range(PEOPLE):
            services.storage.users.add(make.human_user(organization, user_name=f"u{number:05}"))
    return organization


def test_export_excludes_concurrent_writes(isolated_world: World, large: Organization) -> None:
    with isolated_world.identity.snapshot() as services:
        before = list(OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR))
    with isolated_world.identity.snapshot() as services:
        document = OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR)
        documents = [next(document) for _ in range(20)]
        _disturb(isolated_world, large)
        documents += document
    assert documents == before
    users = json.loads("".join(documents))["organization"]["users"]
    assert [user["user_name"] for user in users] == [f"u{number:05}" for number in range(PEOPLE)]


def _disturb(world: World, organization: Organization) -> None:
    """Remove two users, add another one, and rename the first one so that it sorts last."""
    with world.transaction_services() as services:
        stored = services.storage.users
        for name in (f"u{PEOPLE - 1:05}", f"u{MAX_PAGE_ROWS + 7:05}"):
            found = stored.find_by_name(organization.id, name)
            assert found is not None
            stored.delete(found.id)
        stored.add(make.human_user(organization, user_name="u99999"))
        first = stored.find_by_name(organization.id, "u00000")
        assert first is not None
        services.users.change(first.id, ChangeHumanUser(user_name="u99998"), principal=Principal.OPERATOR)


@pytest.mark.exhaustive
def test_export_keeps_one_page_in_memory(
    isolated_world: World, large: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page is fetched after the previous one was sent."""
    sent = 0
    requested = []
    with isolated_world.identity.snapshot() as services:
        store = type(services.storage.users)
        page = store.page

        def counted(*arguments: Any) -> Any:
            requested.append(sent)
            return page(*arguments)

        monkeypatch.setattr(store, "page", counted)
        for piece in OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR):
            sent += '"user_name"' in piece
    # Two full pages of users, the rest of them, and service users.
    assert requested == [0, MAX_PAGE_ROWS, 2 * MAX_PAGE_ROWS, PEOPLE]


def test_export_and_import_round_trip(isolated_world: World, large: Organization) -> None:
    """Ids are kept, and the import records one audit event for each user."""
    with isolated_world.identity.snapshot() as services:
        whole = "".join(OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR))
    with isolated_world.transaction_services() as services:
        services.organizations.remove(large.id, principal=Principal.OPERATOR)
    progress: list[int] = []
    with StreamedOrganizationImport() as incoming:
        document = incoming.document(parse_json_stream(io.BytesIO(whole.encode()), incoming.list_consumers))
        assert incoming.user_count == PEOPLE
        assert document.organization.users == ()
        with isolated_world.transaction_services() as services:
            OrganizationTransfer(services).import_document(
                document, principal=Principal.OPERATOR, progress=progress.append
            )
    with isolated_world.identity.snapshot() as services:
        assert "".join(OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR)) == whole
        created = AuditFilter(event="user.created", organization_id=large.id)
        assert sum(1 for _ in iterate_rows(lambda request: services.storage.audit.page(request, created))) == PEOPLE
    assert sum(progress) == PEOPLE
    assert len(progress) > 4


@pytest.mark.exhaustive
def test_import_does_not_block_other_requests(isolated_world: World, large: Organization) -> None:
    """The document is read and validated before the only transaction that writes it."""
    with isolated_world.identity.snapshot() as services:
        text = "".join(OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR))
    text = text.replace(large.primary_domain, "copy.localhost")
    with StreamedOrganizationImport() as incoming:
        values = parse_json_stream(
            io.BytesIO(text.encode()), incoming.list_consumers, lambda _: _disturb_once(isolated_world, large)
        )
        with isolated_world.transaction_services() as services:
            OrganizationTransfer(services).import_document(
                incoming.document(values), principal=Principal.OPERATOR, keep_ids=False
            )
    assert isolated_world.audit_events(event="user.changed", organization_id=large.id)


def _disturb_once(world: World, organization: Organization) -> None:
    if not world.audit_events(event="user.changed", organization_id=organization.id):
        _disturb(world, organization)


@pytest.mark.exhaustive
def test_export_over_http_is_the_same_document(isolated_world: World, large: Organization) -> None:
    with isolated_world.identity.snapshot() as services:
        document = json.loads(
            "".join(OrganizationTransfer(services).export_document(large.id, principal=Principal.OPERATOR))
        )
    assert json.loads(_received(isolated_world, large)) == document


@pytest.mark.storages("memory")
def test_late_failure_truncates_the_response(
    isolated_world: World, large: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial document is neither a valid response nor valid JSON."""
    whole = OrganizationTransfer.export_document

    def failing(self: OrganizationTransfer, *arguments: Any, **named: Any) -> Iterator[str]:
        for number, piece in enumerate(whole(self, *arguments, **named)):
            if number > 2 * MAX_PAGE_ROWS:
                raise ZeroDivisionError
            yield piece

    monkeypatch.setattr(OrganizationTransfer, "export_document", failing)
    with pytest.raises(http.client.IncompleteRead) as cut:
        _received(isolated_world, large)
    assert cut.value.partial.startswith(b'{\n  "format": "identity-organization"')
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.value.partial)
    # The transaction was closed, and the export is in the audit trail.
    assert isolated_world.audit_events(event="organization.exported", object_id=large.id)


@pytest.mark.exhaustive
def test_export_does_not_block_other_requests(
    isolated_world: World, large: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """development.ini has one thread, and a slow client may take a minute."""
    aside: list[str] = []
    sizes: list[int] = []

    @contextmanager
    def stepping_aside() -> Iterator[None]:
        aside.append("a thread")
        yield
        aside.pop()

    def watched(name: str) -> None:
        done = getattr(OrganizationTransfer, name)

        def watching(*arguments: Any, **named: Any) -> Any:
            sizes.append(len(aside))
            return done(*arguments, **named)

        monkeypatch.setattr(OrganizationTransfer, name, watching)

    monkeypatch.setattr(password_hashing, "released_slot", stepping_aside)
    watched("export_document")
    watched("import_document")
    api = ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    document = api.ask("POST", f"/organizations/{large.id}/export").json
    document["organization"]["primary_domain"] = "copy.localhost"
    answer = api.ask("POST", "/organizations/import?keep_ids=false", document)
    assert answer.status_int == 201, answer.text
    assert sizes == [1, 1]
    assert not aside


def _received(world: World, organization: Organization) -> bytes:
    token = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE).management_token()
    bound = loopback_socket()
    with running_http_server(world.app, bound):
        connection = http.client.HTTPConnection(*bound.getsockname())
        host = world.issuer.partition("://")[2]
        connection.request(
            "POST",
            f"/management/v1/organizations/{organization.id}/export",
            headers={"Authorization": f"Bearer {token}", "Host": host},
        )
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{organization.primary_domain}.json"'
        assert answer.headers["Cache-Control"] == "no-store"
        return answer.read()

"""An organization is exported as a document and imported again, complete and unchanged, or not at all."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.crypto.secrets import new_client_id, new_id
from identity.crypto.signature_keys import PublicKey
from identity.domain.errors import Denied, Invalid, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.http.json_stream import parse_json_stream
from identity.services.access_control import Principal
from identity.services.commands.service_users import CreateServiceUser
from identity.services.container import Services
from identity.services.images import sanitize_image
from identity.services.organization_transfer import OrganizationTransfer, StreamedOrganizationImport
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

OTHER = "other.example"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")

# --- documents --------------------------------------------------------------------------------------------------------

names = st.text("abcÄß 漢-7", min_size=1, max_size=8).map(lambda text: text.strip() or "x")
user_names = st.text("abcdeÄ7.-", min_size=1, max_size=6)
keys = st.text("abc:.-", min_size=1, max_size=4).filter(lambda key: key.strip("."))
booleans = st.booleans()
#: A sanitized logo, which is exported unchanged.
LOGO = sanitize_image(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'
).base64_text
PEM = PublicKey(RsaKeyPool(1).next().public_key()).to_pem()


def unique(values: st.SearchStrategy[Any], *, most: int = 3) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, max_size=most, unique_by=str.casefold)


@st.composite
def organizations(draw: st.DrawFn) -> dict[str, Any]:
    """A consistent organization, with ids as in a document."""
    people, programs = draw(unique(user_names)), draw(unique(user_names))
    attributes = draw(unique_attributes())
    users = [draw(user_documents(f"p{name}", attributes)) for name in people]
    service_users = [draw(service_user_documents(f"s{name}")) for name in programs]
    ids = [user["id"] for user in (*users, *service_users)]
    projects = draw(st.lists(project_documents(ids), max_size=3))
    return {
        "id": new_id(),
        "name": draw(names),
        "primary_domain": "acme.example",
        "registration": draw(booleans),
        "active": draw(booleans),
        **draw(some_branding()),
        "attributes": attributes,
        "users": users,
        "service_users": service_users,
        "projects": projects,
        "groups": [draw(group_documents(name, ids, projects)) for name in draw(unique(keys))],
        "managers": draw(some_managers(ids, "ORG_OWNER", "ORG_OWNER_VIEWER")),
    }


def some_branding() -> st.SearchStrategy[dict[str, Any]]:
    members = {
        "display_name": names,
        "accent": st.just("#2540ad"),
        "support": st.just("help@acme.example"),
        "login_title": st.just({"de": "Willkommen", "en": "Welcome"}),
        "mail_footer": st.just({"fr": "Deux\nlignes"}),
        "logo": st.just(LOGO),
    }
    return st.fixed_dictionaries({}, optional={"branding": st.fixed_dictionaries(members)})


#: Values of the attributes of each type.
ATTRIBUTE_VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "text": names,
    "number": st.integers(-9, 9) | st.just(1.5),
    "date": st.just("2026-02-28"),
    "choice": st.sampled_from(["S", "größer"]),
    "boolean": booleans,
}


@st.composite
def unique_attributes(draw: st.DrawFn) -> list[dict[str, Any]]:
    types = draw(st.lists(st.sampled_from(sorted(ATTRIBUTE_VALUES)), max_size=3))
    return [
        {
            "id": new_id(),
            "key": f"key_{number}",
            "label": draw(names),
            "hint": draw(st.sampled_from(["", "As in the contract"])),
            "type": type_,
            "choices": ["S", "größer"] if type_ == "choice" else [],
            "required": draw(booleans),
            "visible_to": "person",
            "editable_by": draw(st.sampled_from(["managers", "person"])),
            "confidential": draw(booleans),
            "in_tokens": True,
            "claim": draw(st.sampled_from(["", f"claim_{number}"])),
        }
        for number, type_ in enumerate(types)
    ]


@st.composite
def user_documents(draw: st.DrawFn, user_name: str, attributes: list[dict[str, Any]]) -> dict[str, Any]:
    further = st.fixed_dictionaries(
        {},
        optional={
            "email": st.just("anna@acme.example"),
            "nickname": names,
            "birthdate": st.just("1990-12-31"),
            "locale": st.just("de-CH"),
            "address": st.fixed_dictionaries({"locality": names, "formatted": st.just("Gasse 1\nBern")}),
        },
    )
    values = {"id": new_id(), "user_name": user_name, "given_name": draw(names), "family_name": draw(names)}
    known = {item["key"]: draw(ATTRIBUTE_VALUES[item["type"]]) for item in attributes if draw(booleans)}
    return {**values, **draw(further), **({"attributes": known} if known else {}), "active": draw(booleans)}


@st.composite
def service_user_documents(draw: st.DrawFn, user_name: str) -> dict[str, Any]:
    expirations = st.sampled_from(["never", "2098-01-01T00:00:00Z"])
    return {
        "id": new_id(),
        "user_name": user_name,
        "display_name": draw(names),
        "description": draw(st.sampled_from(["", "Two\nlines"])),
        "access_token_type": draw(st.sampled_from(["opaque", "jwt"])),
        "active": draw(booleans),
        "keys": [
            {"id": new_id(), "public_key": PEM, "expires_at": item, "algorithm": "PS256"}
            for item in draw(st.lists(expirations, max_size=2))
        ],
    }


@st.composite
def project_documents(draw: st.DrawFn, user_ids: list[str]) -> dict[str, Any]:
    roles = draw(unique(keys))
    some_roles = st.lists(st.sampled_from(roles), unique=True) if roles else st.just([])
    holders = draw(st.lists(st.sampled_from(user_ids), unique=True)) if user_ids else []
    grant = st.fixed_dictionaries(
        {
            "organization": st.just(OTHER),
            "roles": some_roles,
            "active": booleans,
            "managers": some_managers([f"otto@{OTHER}"], "PROJECT_GRANT_OWNER"),
        }
    )
    return {
        "id": new_id(),
        "name": draw(names),
        "assert_roles": draw(booleans),
        "check_roles": draw(booleans),
        "active": draw(booleans),
        "roles": [{"key": key, "display_name": draw(names), "group": draw(names)} for key in roles],
        "applications": draw(st.lists(application_documents(), max_size=3)),
        "grants": draw(st.lists(grant, max_size=1)),
        "user_grants": [{"user": holder, "roles": draw(some_roles), "active": draw(booleans)} for holder in holders],
        "managers": draw(some_managers([*user_ids, f"otto@{OTHER}"], "PROJECT_OWNER")),
    }


@st.composite
def group_documents(draw: st.DrawFn, name: str, user_ids: list[str], projects: list[dict[str, Any]]) -> dict[str, Any]:
    members = draw(st.lists(st.sampled_from(user_ids), unique=True)) if user_ids else []
    managed = draw(st.lists(st.sampled_from([project["id"] for project in projects]), unique=True)) if projects else []
    return {
        "id": new_id(),
        "name": name,
        "description": draw(names),
        "active": draw(booleans),
        "members": [{"user": user} for user in members],
        "grants": [
            {"project": project["id"], "roles": [role["key"] for role in project["roles"]]} for project in projects
        ],
        "managers": [
            *draw(st.sampled_from([[], [{"roles": ["ORG_OWNER"]}]])),
            *({"project": id_, "roles": ["PROJECT_OWNER"]} for id_ in managed),
        ],
    }


def application_documents() -> st.SearchStrategy[dict[str, Any]]:
    addresses = {
        "web": ["https://app.example/callback", "http://localhost/b"],
        "native": ["com.example.app:/callback"],
        "browser": ["https://app.example/"],
        "api": [],
    }
    return st.builds(
        lambda type, name, lifetime, format, flag, active: {
            "id": new_client_id(),
            "type": type,
            "name": name,
            "redirect_uris": addresses[type],
            "post_logout_redirect_uris": addresses[type][:1],
            "response_types": [] if type == "api" else ["code", "id_token token"],
            "access_token_lifetime": lifetime,
            "access_token_type": format,
            "assert_roles_in_id_token": flag,
            "active": active,
        },
        st.sampled_from(sorted(addresses)),
        names,
        st.sampled_from([None, 60, 3600]),
        st.sampled_from(["opaque", "jwt"]),
        booleans,
        booleans,
    )


def some_managers(users: list[str], *roles: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    if not users:
        return st.just([])
    role_lists = st.lists(st.sampled_from(roles), min_size=1, unique=True)
    chosen = st.lists(st.sampled_from(users), max_size=2, unique=True)
    return chosen.flatmap(
        lambda some: st.tuples(*(role_lists for _ in some)).map(
            lambda all_roles: [{"user": user, "roles": list(item)} for user, item in zip(some, all_roles, strict=True)]
        )
    )


def document(organization: dict[str, Any], instance: str | None = None) -> dict[str, Any]:
    head = {"format": "identity-organization", "version": 1, "instance": instance or new_id()}
    return {**head, "organization": organization}


def without_ids(value: Any) -> Any:
    """The document with every id replaced by its index."""
    text = json.dumps(value["organization"], sort_keys=True)
    paths: dict[str, str] = {}
    return json.loads(_ID.sub(lambda found: paths.setdefault(found[0], f"#{len(paths)}"), text))


# --- where they go ----------------------------------------------------------------------------------------------------


class Undone(Exception):
    """Rolls back a transaction."""


@pytest.fixture
def with_other(make_world: WorldFactory) -> World:
    """A world with the organization to which documents refer, and its service user otto."""
    world = make_world()
    organization = world.make_organization(name="Other", primary_domain=OTHER)
    with world.transaction_services() as services:
        services.service_users.create(organization.id, CreateServiceUser(user_name="otto", display_name="Otto"))
    return world


@contextmanager
def undone(world: World) -> Iterator[Services]:
    with suppress(Undone), world.transaction_services() as services:
        yield services
        raise Undone


def imported(services: Services, values: dict[str, Any], **options: Any) -> Organization:
    options = {"principal": Principal.OPERATOR, **options}
    with StreamedOrganizationImport() as incoming:
        document = incoming.document(
            parse_json_stream(io.BytesIO(json.dumps(values).encode()), incoming.list_consumers)
        )
        return OrganizationTransfer(services).import_document(document, **options)


def exported(services: Services, organization: Organization) -> dict[str, Any]:
    OrganizationTransfer(services).begin_export(organization.id, principal=Principal.OPERATOR)
    values: dict[str, Any] = json.loads(
        "".join(OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR))
    )
    return values


@pytest.mark.thorough
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(organization=organizations())
def test_import_and_export_round_trip(with_other: World, organization: dict[str, Any]) -> None:
    with undone(with_other) as services:
        first = exported(services, imported(services, document(organization)))
        assert is_shown(organization, first["organization"])
        first["organization"]["primary_domain"] = "again.example"
        second = exported(services, imported(services, first, keep_ids=False))
        assert without_ids(second) == without_ids(first)
        assert _ID.findall(json.dumps(second)) != _ID.findall(json.dumps(first))


class TestComingBack:
    def test_removed_organization_is_restored_with_its_ids(self, isolated_world: World) -> None:
        robot = isolated_world.make_service_user_program()
        with isolated_world.transaction_services() as services:
            before = exported(services, robot.organization)
            services.organizations.remove(robot.organization.id, principal=Principal.OPERATOR)
            imported(services, before)
            assert exported(services, robot.organization) == before
        # The program's key file works again.
        assert robot.access_token()

    def test_expired_key_is_not_imported(self, with_other: World) -> None:
        keys = [{"public_key": PEM, "expires_at": "2001-01-01T00:00:00Z"}]
        user = {"user_name": "robot", "display_name": "Robot", "keys": keys}
        with undone(with_other) as services:
            result = exported(services, imported(services, document({"name": "New", "service_users": [user]})))
        assert result["organization"]["service_users"][0]["keys"] == []


def is_shown(described: Any, exported_value: Any) -> bool:
    """True if everything described exists, whatever the ids and the order of lists."""
    if isinstance(described, dict):
        return all(
            name in exported_value and is_shown(value, exported_value[name]) for name, value in described.items()
        )
    if isinstance(described, list):
        return len(described) == len(exported_value) and all(
            any(is_shown(item, other) for other in exported_value) for item in described
        )
    return described == exported_value or (isinstance(described, str) and _ID.fullmatch(described) is not None)


class TestContent:
    @pytest.mark.thorough
    def test_export_contains_no_secrets(self, isolated_world: World) -> None:
        robot, person = isolated_world.make_service_user_program(), isolated_world.make_human_user()
        isolated_world.make_service_user_secret(robot)
        token = isolated_world.make_personal_access_token(robot)
        project = isolated_world.make_project(robot.organization)
        client = isolated_world.make_web_application(project.id)
        with isolated_world.transaction_services() as services:
            services.passwords.set_one_time_password(person.id)
            text = json.dumps(exported(services, robot.organization))
        assert "PUBLIC KEY" in text
        assert client.client_id in text
        for secret in ("PRIVATE", token, client.secret, "digest", "hash", "secret_id"):
            assert secret not in text

    def test_export_omits_expired_keys(self, isolated_world: World) -> None:
        robot = isolated_world.make_service_user_program(expires_at=isolated_world.clock() + timedelta(days=1))
        isolated_world.clock.advance(days=2)
        with undone(isolated_world) as services:
            [user] = exported(services, robot.organization)["organization"]["service_users"]
            assert user["keys"] == []

    def test_export_and_import_are_audited(self, isolated_world: World) -> None:
        organization = isolated_world.make_organization()
        with isolated_world.transaction_services() as services:
            values = exported(services, organization)
            values["organization"]["primary_domain"] = "copy.example"
            copy = imported(services, values, keep_ids=False)
        assert isolated_world.audit_events(event="organization.exported", object_id=organization.id)
        [event] = isolated_world.audit_events(event="organization.imported", object_id=copy.id)
        assert event.detail == {"instance": isolated_world.instance.project_id, "kept_ids": False}

    def test_unknown_organization_is_not_found(self, isolated_world: World) -> None:
        with undone(isolated_world) as services, pytest.raises(NotFound):
            OrganizationTransfer(services).begin_export(new_id(), principal=Principal.OPERATOR)


class TestProblems:
    def test_all_problems_are_reported_with_paths(self, with_other: World) -> None:
        user = {"user_name": "anna", "given_name": "A", "family_name": "B"}
        application = {"name": "Web", "type": "web", "redirect_uris": ["ftp://x"]}
        project = {
            "name": "Shop",
            "roles": [{"key": "a", "display_name": "A"}, {"key": "a", "display_name": "B"}],
            "applications": [application],
            "grants": [{"organization": "nowhere.example"}],
            "user_grants": [{"user": "nobody"}, {"user": "anna", "roles": ["b"]}],
            "managers": [{"user": "anna", "roles": ["ORG_OWNER"]}],
        }
        values = {"name": "New", "primary_domain": OTHER, "users": [user, user], "projects": [project]}
        with undone(with_other) as services, pytest.raises(Invalid) as refusal:
            imported(services, document(values))
        assert set(refusal.value.fields) == {"organization.primary_domain"}
        values["primary_domain"] = "new.example"
        with undone(with_other) as services, pytest.raises(Invalid) as refused:
            imported(services, document(values))
        assert set(refused.value.fields) == {
            "organization.users[1].user_name",
            "organization.projects[0].roles[1]",
            "organization.projects[0].applications[0].redirect_uris",
            "organization.projects[0].grants[0].organization",
            "organization.projects[0].user_grants[0].user",
            "organization.projects[0].user_grants[1].roles",
            "organization.projects[0].managers[0].roles",
        }

    def test_invalid_values_are_reported_before_any_write(self) -> None:
        values = document({"name": "", "colour": "red", "users": [{"user_name": 1}], "projects": 5})
        with StreamedOrganizationImport() as incoming, pytest.raises(Invalid) as refused:
            incoming.document(parse_json_stream(io.BytesIO(json.dumps(values).encode()), incoming.list_consumers))
        assert set(refused.value.fields) == {
            "organization.name",
            "organization.colour",
            "organization.users[0].user_name",
            "organization.users[0].given_name",
            "organization.users[0].family_name",
            "organization.projects",
        }

    def test_existing_ids_are_refused(self, isolated_world: World) -> None:
        robot = isolated_world.make_service_user_program()
        with undone(isolated_world) as services:
            values = exported(services, robot.organization)
            values["organization"]["primary_domain"] = "copy.example"
            with pytest.raises(Invalid) as refused:
                imported(services, values)
        assert set(refused.value.fields) == {"organization.id"}


class TestPermissions:
    def test_organization_manager_imports_with_new_ids(self, isolated_world: World) -> None:
        robot = isolated_world.make_service_user_program()
        by_role = {role: _principal(isolated_world, role) for role in ("IAM_ORG_MANAGER", "IAM_USER_MANAGER")}
        with isolated_world.transaction_services() as services:
            values = exported(services, robot.organization)
            values["organization"]["primary_domain"] = "copy.example"
            values["organization"]["managers"] = [
                {"user": values["organization"]["service_users"][0]["id"], "roles": ["ORG_OWNER"]}
            ]
            assert imported(services, values, principal=by_role["IAM_ORG_MANAGER"], keep_ids=False)
        for options in (
            {"principal": by_role["IAM_ORG_MANAGER"]},
            {"principal": by_role["IAM_USER_MANAGER"], "keep_ids": False},
        ):
            values["organization"]["primary_domain"] = "third.example"
            with undone(isolated_world) as services, pytest.raises(Denied):
                imported(services, values, **options)

    @pytest.mark.parametrize("role", ["IAM_USER_MANAGER"])
    def test_partial_visibility_forbids_export(self, isolated_world: World, role: str) -> None:
        organization, principal = isolated_world.make_organization(), _principal(isolated_world, role)
        with undone(isolated_world) as services, pytest.raises(Denied):
            OrganizationTransfer(services).begin_export(organization.id, principal=principal)


def _principal(world: World, role: str) -> Principal:
    person = world.make_human_user()
    world.assign_manager_role(person, role, resource=Resource.INSTANCE)
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        return services.access_control.load_principal(subject)

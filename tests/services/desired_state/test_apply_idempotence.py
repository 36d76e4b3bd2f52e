"""Applying an accepted or an exported state a second time changes nothing."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from identity.crypto.signature_keys import PublicKey
from identity.domain.applications import ApplicationType
from identity.domain.errors import Invalid
from identity.domain.policies import Policy
from identity.domain.upstream_providers import ClaimMapping
from identity.domain.users import Address, Profile
from identity.services.access_control import Principal
from identity.services.commands import Command
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.desired_state import UpstreamProviderSpec
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import AddProjectRole, CreateProject
from identity.services.commands.service_users import CreateServiceUser
from identity.services.commands.users import ChangeAddress, ChangeHumanUser
from identity.services.container import Services
from identity.services.desired_state import apply as applying
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

ROLES = ("reader", "Editor", "a:b")
PEM = PublicKey(RsaKeyPool(1).next().public_key()).to_pem()
#: Names as users type them: in capitals, with removed characters, or twice.
NAMES = st.sampled_from(["Acme", "ACME GmbH", "Zoë", "漢字", "a-b"])
TEXTS = st.sampled_from(["", "Text", "Straße 1"])
#: Strategies for fields whose type is not specific enough.
BY_NAME: Mapping[str, st.SearchStrategy[Any]] = {
    "name": NAMES,
    "display_name": NAMES,
    "given_name": NAMES,
    "family_name": NAMES,
    "description": TEXTS,
    "group": TEXTS,
    "nickname": TEXTS,
    "middle_name": TEXTS,
    "gender": TEXTS,
    "email": st.sampled_from(["", "Anna@Acme.example", "anna@acme.example"]),
    "phone": st.sampled_from(["", "+41 44 123 45 67", "+41441234567"]),
    "profile": st.sampled_from(["", "https://acme.example/anna"]),
    "picture": st.sampled_from(["", "https://acme.example/anna.png"]),
    "website": st.sampled_from(["", "https://ACME.example/"]),
    "birthdate": st.sampled_from(["", "1990-12-31", "1990"]),
    "zoneinfo": st.sampled_from(["", "Europe/Zurich"]),
    "locale": st.sampled_from(["", "de-CH", "DE-ch", "en"]),
    "formatted": TEXTS,
    "street_address": st.sampled_from(["", "Gasse 1\nHof"]),
    "locality": TEXTS,
    "region": TEXTS,
    "postal_code": TEXTS,
    "country": TEXTS,
    "team_id": TEXTS,
    "key_id": TEXTS,
    "scopes": st.sampled_from(["", "openid email", "email  openid openid"]),
    "issuer": st.sampled_from(["https://login.example", "https://login.example/"]),
    "client_id": st.sampled_from(["here", "Here"]),
    "client_secret": st.sampled_from(["s3cr3t-of-theirs", "another"]),
    "claims": st.lists(
        st.sampled_from([f"{name} ={claim}" for name, claim in ClaimMapping.DEFAULT.items()] + ["email = mail"]),
        max_size=3,
    ),
    "redirect_uris": st.lists(st.sampled_from(["https://a.example/", "https://b.example/cb"]), max_size=4),
    "post_logout_redirect_uris": st.lists(st.sampled_from(["https://a.example/", "https://c.example/"]), max_size=3),
    "backchannel_logout_uri": st.sampled_from(["", "https://a.example/logout"]),
    "frontchannel_logout_uri": st.sampled_from(["", "https://b.example/logout?x=1"]),
    "response_types": st.lists(
        st.sampled_from(["code", "id_token", "id_token token", "token id_token", "code code"]),
        max_size=3,
    ),
    "grant_types": st.lists(
        st.sampled_from(["authorization_code", "refresh_token", "client_credentials", "implicit"]), max_size=4
    ),
    "resource_uris": st.lists(st.sampled_from(["https://a.example/", "urn:example:b"]), max_size=2, unique=True),
    "identity_assertion_clients": st.lists(
        st.sampled_from(["0123456789abcdef0123456789abcdef", "abc https://a.example/"]), max_size=2, unique=True
    ),
    "identity_assertion_audiences": st.lists(
        st.sampled_from(["https://login.example here", "https://login.example here urn:example:b"]),
        max_size=2,
        unique=True,
    ),
    "registration_redirect_hosts": st.lists(st.sampled_from(["a.example", "*"]), max_size=2),
    "registration_grant_types": st.lists(st.sampled_from(["authorization_code", "refresh_token"]), max_size=2),
    **{f"registration_{name}": st.sampled_from([1, 7]) for name in ("token_minutes", "limit", "unused_days")},
    "jwks_uri": st.sampled_from(["", "https://a.example/jwks.json"]),
    "token_endpoint_auth_signing_alg": st.sampled_from(["", "ES256"]),
    "request_object_signing_alg": st.sampled_from(["", "PS256"]),
    "tls_client_auth_subject_dn": st.sampled_from(["", "CN=app,O=Example"]),
    "authentication_method": st.sampled_from(["client_secret_basic", "client_secret_post", "none"]),
    "required_sender_constraint": st.sampled_from([None, "dpop"]),
    "security_profile": st.none(),
    "request_uris": st.lists(st.sampled_from(["https://a.example/request.jwt"]), max_size=2),
    "subject_type": st.just("public"),
    "sector_identifier_uri": st.just(""),
    "factors": st.lists(st.sampled_from(["totp", "email_code", "recovery_codes", "passkeys"]), min_size=1, max_size=3),
    "registration_domains": st.lists(st.sampled_from(["acme.example", "other.example"]), min_size=1, max_size=2),
    "password_min_length": st.sampled_from([8, 12]),
    "password_strength": st.sampled_from([0, 3]),
    "free_attempts": st.sampled_from([3, 5]),
    "most_attempts": st.sampled_from([50, 100]),
    "remember_browser": st.sampled_from([0, 30]),
}


def value_of(name: str, annotation: Any) -> st.SearchStrategy[Any] | None:
    """Values of a command's field as in a document; None if the test has no strategy."""
    if name in BY_NAME:
        return BY_NAME[name]
    for part in (annotation, *get_args(annotation)):
        while get_args(part) and not isinstance(part, type):
            part = get_args(part)[0]
        if part is bool:
            return st.booleans()
        if isinstance(part, type) and issubclass(part, Enum):
            return st.sampled_from([member.value for member in part])
        if part is timedelta:
            return st.sampled_from([300, 3600])
    return None


#: Fields that these commands do not describe, or that the test sets itself.
OTHER_FIELDS = {
    *("id", "active", "address", "attributes", "user_name", "type", "key", "roles"),
    *("group_mappings", "attribute_mappings", "jwks"),
    *(f"tls_client_auth_san_{name}" for name in ("dns", "uri", "ip", "email")),
}


def members_of(command: type[Command], *required: str, without: frozenset[str] = frozenset()) -> Any:
    """Document members for the fields of a command: the required ones, and any of the others."""
    strategies = {}
    for name, field in command.model_fields.items():
        strategy = value_of(name, field.annotation)
        if strategy is not None and name not in without:
            strategies[name] = strategy
        assert strategy is not None or name in OTHER_FIELDS, f"nothing is said of {command.__name__}.{name}"
    needed = {name: strategies.pop(name) for name in required}
    return st.fixed_dictionaries(needed, optional=strategies)


#: Definitions by key, and values as users type them.
ATTRIBUTES: Mapping[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "team": ({"key": "team", "label": "Team", "visible_to": "person"}, st.sampled_from(["A", " A ", "", None])),
    "level": (
        {"key": "level", "label": "Level", "type": "number", "in_tokens": True},
        st.sampled_from([3, 3.0, 2.5, None]),
    ),
    "size": (
        {"key": "size", "label": "Size", "type": "choice", "choices": ["S", "M"], "required": False},
        st.sampled_from(["S", "M", None]),
    ),
}

TRUSTING = st.fixed_dictionaries(
    {},
    optional={
        "federated_credentials": st.lists(
            st.sampled_from(["sub = a", "sub = b:c:*"]).map(
                lambda condition: {"name": "CI", "issuer": "https://ci.example", "conditions": [condition]}
            ),
            max_size=2,
            unique_by=str,
        )
    },
)

STATES = st.fixed_dictionaries({}, optional={"active": st.booleans()})


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda members: {name: value for member in members for name, value in member.items()})


def numbered(values: st.SearchStrategy[dict[str, Any]], name: str, prefix: str) -> st.SearchStrategy[Any]:
    """A list of one or no value, with this name."""
    lists = st.lists(values, max_size=1)
    return lists.map(lambda found: [{**item, name: f"{prefix}{number}"} for number, item in enumerate(found)])


@st.composite
def applications(draw: st.DrawFn) -> dict[str, Any]:
    """Mostly valid applications: all types except API have a redirect URI."""
    application: dict[str, Any] = draw(merged(members_of(RegisterApplication, "name"), STATES, TRUSTING))
    application["type"] = draw(st.sampled_from([application_type.value for application_type in ApplicationType]))
    if application["type"] == "api":
        for name in ("redirect_uris", "post_logout_redirect_uris", "response_types", "grant_types"):
            application.pop(name, None)
    else:
        application["redirect_uris"] = application.get("redirect_uris") or ["https://a.example/"]
        if "refresh_token" in application.get("grant_types", ()):
            application["grant_types"] = [*application["grant_types"], "authorization_code"]
    if application["type"] in ("native", "browser"):
        application["authentication_method"] = "none"
    if application.get("authentication_method") == "none":
        application["grant_types"] = [
            item for item in application.get("grant_types", ()) if item != "client_credentials"
        ]
    if not any("id_token" in item for item in application.get("response_types", ())):
        application["grant_types"] = [item for item in application.get("grant_types", ()) if item != "implicit"]
    if application.get("may_manage"):
        application["consent"] = "always"
    return application


#: Ends of roles: none, one that has passed, and one to come.
ENDS = st.sampled_from([None, "2001-01-01T00:00:00Z", "2030-01-01T00:00:00Z"])


@st.composite
def projects(draw: st.DrawFn) -> dict[str, Any]:
    role = members_of(AddProjectRole, "display_name")
    role_lists = st.lists(st.sampled_from(ROLES), max_size=2)
    user_grant = st.fixed_dictionaries(
        {"user": st.just("anna0"), "roles": role_lists}, optional={"active": st.booleans(), "until": ENDS}
    )
    manager = st.fixed_dictionaries(
        {"user": st.just("robot0"), "roles": st.just(["PROJECT_OWNER"])}, optional={"until": ENDS}
    )
    holder_manager = {"user": "robot0@other.example", "roles": ["PROJECT_GRANT_OWNER", "PROJECT_GRANT_OWNER_VIEWER"]}
    grant = st.fixed_dictionaries(
        {"organization": st.sampled_from(["other.example", "Other"]), "roles": st.just([*ROLES])},
        optional={
            "active": st.booleans(),
            "until": ENDS,
            "managers": st.just([holder_manager]),
            "user_grants": st.lists(st.fixed_dictionaries({"user": st.just("anna0"), "roles": role_lists}), max_size=1),
        },
    )
    return {
        **draw(merged(members_of(CreateProject, "name"), STATES)),
        "roles": [{**draw(role), "key": key} for key in ROLES],
        "applications": draw(numbered(applications(), "name", "App ")),
        "grants": draw(st.lists(grant, max_size=1)),
        "user_grants": draw(st.lists(user_grant, max_size=1)),
        "managers": draw(st.lists(manager, max_size=1)),
    }


@st.composite
def organizations(draw: st.DrawFn, domain: str) -> dict[str, Any]:
    person = members_of(ChangeHumanUser, "given_name", "family_name")
    addressed = st.fixed_dictionaries({}, optional={"address": members_of(ChangeAddress)})
    robot = members_of(CreateServiceUser, "display_name")
    keyed = st.fixed_dictionaries({}, optional={"keys": st.just([{"public_key": PEM}])})
    provider = members_of(UpstreamProviderSpec, "name", "client_id", "issuer", without=frozenset({"kind"}))
    webhook = st.fixed_dictionaries(
        {"name": st.just("Receiver"), "url": st.sampled_from(["https://a.example/", "https://b.example/x"])},
        optional={"events": st.sampled_from([["*"], ["user.*", "project.created"]]), "active": st.booleans()},
    )
    people = draw(st.lists(merged(person, addressed), min_size=1, max_size=1))
    robots = draw(st.lists(merged(robot, keyed, TRUSTING), min_size=1, max_size=1))
    branding = st.fixed_dictionaries(
        {},
        optional={
            "display_name": st.sampled_from(["", "Acme"]),
            "accent": st.sampled_from(["", "#2540AD", "#2540ad"]),
            "login_title": st.sampled_from([{}, {"de": "Willkommen", "en": ""}]),
        },
    )
    attributes = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), unique=True))
    for person_members in people:
        known = {key: ATTRIBUTES[key][1] for key in attributes}
        person_members["attributes"] = draw(st.fixed_dictionaries({}, optional=known))
    groups = draw(st.sampled_from([[], [GROUP], [{**GROUP, "active": False, "members": []}]]))
    providers = draw(numbered(provider, "name", "Provider ")) if domain.startswith("acme") else []
    for provider_members in providers:
        to_group = [{"claim": "groups", "value": value, "group": "Sales"} for value in ("sales", "Sales")]
        to_attribute = [{"claim": "realm.team", "attribute": key} for key in attributes]
        if groups:
            provider_members["group_mappings"] = draw(st.lists(st.sampled_from(to_group), max_size=2, unique_by=str))
        provider_members["attribute_mappings"] = draw(st.sampled_from([[], to_attribute]))
    further = {"registration": st.booleans(), "branding": branding, "policy": members_of(ChangePolicy)}
    organization_fields = st.fixed_dictionaries({}, optional=further)
    return {
        "name": draw(st.sampled_from(["Acme", "ACME"])) if domain.startswith("acme") else "Other",
        "primary_domain": domain,
        **(draw(organization_fields) if domain.startswith("acme") else {}),
        "attributes": [ATTRIBUTES[key][0] for key in attributes],
        "users": [{**item, "user_name": f"anna{number}"} for number, item in enumerate(people)],
        "service_users": [{**item, "user_name": f"robot{number}"} for number, item in enumerate(robots)],
        "projects": draw(numbered(projects(), "name", "Project ")) if domain.startswith("acme") else [],
        "groups": groups,
        "upstream_providers": providers,
        "webhooks": draw(numbered(webhook, "name", "Webhook ")) if domain.startswith("acme") else [],
        "managers": draw(st.sampled_from([[], [{"user": "anna0", "roles": ["ORG_OWNER"]}]])),
    }


#: Filled with what every organization has.
GROUP: dict[str, Any] = {
    "name": "Sales",
    "description": "Who sells.",
    "members": [{"user": "anna0"}, {"user": "robot0"}],
    "managers": [{"roles": ["ORG_OWNER_VIEWER"]}],
}
states = st.tuples(organizations("acme.example"), organizations("other.example")).map(
    lambda found: {"version": 1, "organizations": [*found]}
)


@contextmanager
def undone(world: World) -> Iterator[Services]:
    """Services whose changes are rolled back."""

    class Undo(Exception):
        pass

    try:
        with world.transaction_services() as services:
            yield services
            raise Undo
    except Undo:
        pass


def changes(services: Services, state: Mapping[str, Any]) -> list[str]:
    applied = applying.apply_desired_state(services, applying.parse_desired_state(state), principal=Principal.OPERATOR)
    return [f"{state_change.kind} {state_change.name}: {state_change.detail}" for state_change in applied.state_changes]


def exported(services: Services, domain: str) -> dict[str, Any]:
    organization = services.storage.organizations.find_by_domain(domain)
    assert organization is not None
    document: dict[str, Any] = json.loads(
        "".join(OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR))
    )
    described: dict[str, Any] = document["organization"]
    return described


_SETTINGS = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    # Shrinking such a large document would take too long.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.thorough
@_SETTINGS
@given(state=states)
def test_second_apply_changes_nothing(world: World, state: dict[str, Any]) -> None:
    with undone(world) as services:
        try:
            assert changes(services, state)
        except Invalid:
            return
        assert changes(services, state) == []


@pytest.mark.thorough
@_SETTINGS
@given(first=states, second=states)
def test_second_apply_after_change_changes_nothing(world: World, first: dict[str, Any], second: dict[str, Any]) -> None:
    with undone(world) as services:
        try:
            changes(services, first)
            changes(services, second)
        except Invalid:
            return
        assert changes(services, second) == []


@pytest.mark.thorough
@_SETTINGS
@given(state=states)
def test_applying_an_export_changes_nothing(world: World, state: dict[str, Any]) -> None:
    with undone(world) as services:
        try:
            changes(services, state)
        except Invalid:
            return
        found = [exported(services, domain) for domain in ("acme.example", "other.example")]
        assert changes(services, {"version": 1, "organizations": found}) == []
        assert [exported(services, domain) for domain in ("acme.example", "other.example")] == found


def test_all_user_and_policy_fields_are_generated() -> None:
    for command in (ChangeHumanUser, ChangeAddress, ChangePolicy, RegisterApplication, CreateServiceUser):
        members_of(command)
    assert {Profile, Address, Policy}


@pytest.mark.parametrize(
    ("response_types", "grant_types", "expected"),
    [
        (["id_token"], ["authorization_code"], {"authorization_code", "implicit"}),
        (["id_token token"], [], {"implicit"}),
        (["code", "token id_token"], ["authorization_code"], {"authorization_code", "implicit"}),
        (["code"], ["authorization_code"], {"authorization_code"}),
    ],
)
def test_apply_of_id_token_application_is_idempotent(
    world: World, response_types: list[str], grant_types: list[str], expected: set[str]
) -> None:
    application = {
        "name": "Shop",
        "type": "web",
        "response_types": response_types,
        "grant_types": grant_types,
        "redirect_uris": ["https://shop.example/"],
    }
    project = {"name": "Shop", "applications": [application]}
    state = {"version": 1, "organizations": [{"name": "A", "primary_domain": "acme.example", "projects": [project]}]}
    with undone(world) as services:
        changes(services, state)
        assert changes(services, state) == []
        assert set(exported(services, "acme.example")["projects"][0]["applications"][0]["grant_types"]) == expected


def test_immutable_field_change_is_refused(world: World) -> None:
    provider = {"name": "Login", "client_id": "here", "issuer": "https://login.example", "kind": "openid"}
    state = {
        "version": 1,
        "organizations": [{"name": "A", "primary_domain": "acme.example", "upstream_providers": [provider]}],
    }
    with undone(world) as services:
        changes(services, state)
        provider["kind"] = "gitlab"
        with pytest.raises(Invalid) as refused:
            changes(services, state)
    assert set(refused.value.fields) == {"organizations[0].upstream_providers[0].kind"}

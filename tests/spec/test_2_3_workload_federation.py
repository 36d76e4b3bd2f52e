"""Tokens of outside issuers as assertions of service users and applications: GitHub Actions, GitLab, Kubernetes, …"""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from identity.domain.applications import ApplicationType
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.service_users import AddFederatedCredential
from identity.testing.jwt_assertions import OMITTED, no_signature
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import ServiceUserProgram, World
from tests.spec.outside_issuer import GITHUB, MAIN, OutsideIssuer

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
INVALID = "the assertion is not valid"


@pytest.fixture
def robot(world: World) -> ServiceUserProgram:
    return world.make_service_user_program()


@pytest.fixture
def github(world: World) -> OutsideIssuer:
    return OutsideIssuer(world)


def trust(robot: ServiceUserProgram, *conditions: str, **members: Any) -> Any:
    usual = {"name": "Deployment", "issuer": GITHUB, "conditions": conditions or (f"sub = {MAIN}",)}
    command = AddFederatedCredential.build(**{**usual, **members})
    return robot.world.operator_services.federated_credentials.add(robot.id, command)


def ask(robot: ServiceUserProgram, assertion: str, **form: str) -> Any:
    client = robot.world.client
    parameters = {"grant_type": GRANT, "scope": "openid", "client_id": robot.id, "assertion": assertion, **form}
    return client.post(client.discovery["token_endpoint"], {name: text for name, text in parameters.items() if text})


def refused(answer: Any, description: str) -> None:
    check_oauth_error(answer, "invalid_grant")
    assert description in answer.json["error_description"], answer.json


#: By published documentation: kind, issuer, claims, conditions.
SHAPES: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...]]] = {
    "github": (
        "oidc",
        GITHUB,
        {
            "sub": "repo:acme/app:environment:production", "repository": "acme/app", "repository_id": "74",
            "repository_owner": "acme", "repository_owner_id": "65", "ref": "refs/heads/main", "run_id": "1",
            "job_workflow_ref": "acme/app/.github/workflows/deploy.yml@refs/heads/main", "event_name": "push",
        },
        ("sub = repo:acme/app:*", "repository_id = 74"),
    ),
    "gitlab": (
        "oidc",
        "https://gitlab.com",
        {
            "sub": "project_path:acme/app:ref_type:branch:ref:main", "project_id": "22", "namespace_id": "72",
            "project_path": "acme/app", "ref": "main", "ref_type": "branch", "ref_protected": "true", "user_id": "42",
        },
        ("project_id = 22", "ref = main", "ref_protected = true"),
    ),
    "kubernetes": (
        "jwks",
        "https://kubernetes.default.svc.cluster.local",
        {
            "sub": "system:serviceaccount:shop:worker",
            "kubernetes.io": {"namespace": "shop", "serviceaccount": {"name": "worker", "uid": "14"}},
        },
        ("sub = system:serviceaccount:shop:worker",),
    ),
    "spiffe": (
        "spiffe",
        "spiffe://example.org",
        {"iss": OMITTED, "sub": "spiffe://example.org/ns/shop/sa/worker", "jti": OMITTED, "nbf": OMITTED},
        ("sub = spiffe://example.org/ns/shop/*",),
    ),
    "aws": (
        "oidc",
        "https://oidc.eks.eu-central-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE",
        {"sub": "system:serviceaccount:shop:worker", "kubernetes.io": {"namespace": "shop"}},
        ("sub = system:serviceaccount:shop:worker",),
    ),
    "google": (
        "oidc",
        "https://accounts.google.com",
        {
            "sub": "110000000000000000001", "azp": "110000000000000000001", "jti": OMITTED, "nbf": OMITTED,
            "email": "worker@shop.iam.gserviceaccount.com", "email_verified": True,
        },
        ("sub = 110000000000000000001", "email_verified = true"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_token_of_published_shape_is_accepted_once(world: World, robot: ServiceUserProgram, shape: str) -> None:
    kind, issuer, claims, conditions = SHAPES[shape]
    outside = OutsideIssuer(world, issuer, use="jwt-svid" if kind == "spiffe" else "sig")
    members: dict[str, Any] = {"jwks": json.dumps(outside.key_set)} if kind == "jwks" else {}
    if kind == "spiffe":
        members = {"jwks_uri": "https://spire.example.org/bundle"}
        outside.documents = {"https://spire.example.org/bundle": outside.key_set}
    credential = trust(robot, *conditions, kind=kind, issuer=issuer, **members)
    token = outside.token(**claims)
    answer = ask(robot, token)
    check_token_response(answer)
    assert world.client.fetch_userinfo(answer.json["access_token"]).json["sub"] == robot.id
    refused(ask(robot, token), "used before")
    world.identity.background_jobs.flush_last_used()
    assert world.operator_services.federated_credentials.get(robot.id, credential.id).last_used_at


def test_tokens_end_with_the_credential(world: World, robot: ServiceUserProgram, github: OutsideIssuer) -> None:
    credential = trust(robot)
    token = ask(robot, github.token()).json["access_token"]
    world.operator_services.federated_credentials.remove(robot.id, credential.id)
    assert world.client.fetch_userinfo(token).status_int == 401
    refused(ask(robot, github.token()), INVALID)
    events = {event.event for event in world.audit_events(object_id=credential.id)}
    assert events == {"federated_credential.added", "federated_credential.removed"}


def test_failures_up_to_the_signature_look_alike(
    world: World, robot: ServiceUserProgram, github: OutsideIssuer
) -> None:
    trust(robot)
    stranger = world.make_service_user_program()
    for answer in (
        ask(robot, github.token(iss="https://token.example.com")),
        ask(robot, github.token()[:-6] + "AAAAAA"),
        ask(robot, github.token(header={"alg": "none"}, sign=no_signature)),
        ask(robot, github.token(header={"kid": "two"})),
        ask(robot, github.token(header={"jku": "https://evil.example"})),
        ask(robot, github.token(header={"typ": "at+jwt"})),
        ask(robot, github.token(), client_id=stranger.id),
        ask(robot, github.token(), client_id="nobody"),
    ):
        refused(answer, INVALID)
    check_oauth_error(ask(robot, github.token(), client_id=""), "invalid_request")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"aud": "https://github.com/acme"}, "aud must contain"),
        ({"exp": OMITTED}, "exp must be"),
        ({"exp": 10}, "expired"),
        ({"exp": 4102444800}, "exp must be at most"),
        ({"nbf": 4102444800}, "in the future"),
        ({"jti": 7}, "jti must be"),
        ({"sub": "repo:acme/app:ref:refs/heads/dev"}, "claim sub"),
        ({"sub": "repo:acme/app:ref:refs/heads/main2"}, "claim sub"),
        ({"sub": OMITTED}, "claim sub"),
        ({"repository_id": 75}, "claim repository_id"),
        ({"repository_id": ["74"]}, "claim repository_id"),
    ],
)
def test_refusal_after_the_signature_names_the_claim_only(
    robot: ServiceUserProgram, github: OutsideIssuer, changed: dict[str, Any], problem: str
) -> None:
    trust(robot, f"sub = {MAIN}", "repository_id = 74")
    answer = ask(robot, github.token(**{"repository_id": "74", **changed}))
    refused(answer, problem)
    assert "refs/heads" not in answer.json["error_description"], "others get valid tokens of the issuer, too"
    check_token_response(ask(robot, github.token(repository_id=74, aud=["x", robot.world.issuer])))


def test_service_user_with_a_role_at_the_instance_needs_a_marked_credential(
    world: World, github: OutsideIssuer
) -> None:
    robot = world.make_service_user_program()
    plain = trust(robot)
    make_instance_manager(world, robot)
    refused(ask(robot, github.token()), "only instance managers")
    trust(robot, instance_managed=True)
    check_token_response(ask(robot, github.token()))
    assert plain.instance_managed is False


def find_principal(services: Any, user: ServiceUserProgram) -> Principal:
    subject = services.storage.users.find_subject(user.id)
    return Principal(subject, services.storage.managers.list_effective(user.id, services.now))


def make_instance_manager(world: World, robot: ServiceUserProgram) -> None:
    world.assign_manager_role(robot, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)


def test_only_the_instance_marks_credentials(world: World, robot: ServiceUserProgram, github: OutsideIssuer) -> None:
    """And removes marked ones; and no manager adds one to a service user with more rights (security 14.4)."""
    owner = world.make_service_user_program()
    world.assign_manager_role(owner, "ORG_OWNER", resource=Resource.of_organization(robot.organization.id))
    marked = trust(robot, instance_managed=True)
    command = AddFederatedCredential.build(
        name="x", issuer=GITHUB, conditions=(f"sub = {MAIN}",), instance_managed=True
    )
    with world.transaction_services() as services:
        principal = find_principal(services, owner)
        credentials = services.federated_credentials
        with pytest.raises(Denied):
            credentials.add(robot.id, command, principal=principal)
        with pytest.raises(Denied):
            credentials.remove(robot.id, marked.id, principal=principal)
        unmarked = command.model_copy(update={"instance_managed": False})
        added = credentials.add(robot.id, unmarked, principal=principal)
        credentials.remove(robot.id, added.id, principal=principal)
    make_instance_manager(world, robot)
    with world.transaction_services() as services, pytest.raises(Denied):
        services.federated_credentials.add(robot.id, unmarked, principal=find_principal(services, owner))


@pytest.mark.parametrize(
    "members",
    [
        {"issuer": "https://id.example.com"},
        {"issuer": "https://id.example.com/other"},
        {"issuer": "http://token.example.com"},
        {"issuer": "spiffe://example.org"},
        {"kind": "spiffe"},
        {"kind": "jwks"},
        {"jwks_uri": "https://token.example.com/keys"},
        {"conditions": ()},
        {"conditions": ("ref = main",)},
        {"conditions": ("repository_id = 12:*",)},
        {"conditions": ("sub = repo:*",)},
        {"conditions": ("sub = repo:acme/*/main",)},
        {"conditions": ("sub = repo:acme*",)},
        {"conditions": ("sub",)},
    ],
)
def test_credential_that_identifies_no_workload_is_refused(robot: ServiceUserProgram, members: dict[str, Any]) -> None:
    with pytest.raises((Invalid, ValidationError)):
        trust(robot, **members)


def test_number_of_credentials_is_limited(robot: ServiceUserProgram) -> None:
    for _ in range(20):
        trust(robot)
    with pytest.raises(Conflict):
        trust(robot)


def test_discovery_document_of_another_issuer_is_refused(robot: ServiceUserProgram, github: OutsideIssuer) -> None:
    trust(robot)
    github.documents[f"{GITHUB}/.well-known/openid-configuration"]["issuer"] = "https://evil.example"
    refused(ask(robot, github.token()), INVALID)


@dataclass
class FederatedApplication:
    """An application that authenticates with tokens of an outside issuer."""

    world: World
    client_id: str

    @classmethod
    def register(cls, world: World, **members: Any) -> "FederatedApplication":
        application, _ = world.register_application(
            type=ApplicationType.API,
            authentication_method="private_key_jwt",
            grant_types=frozenset({"client_credentials"}),
            **members,
        )
        return cls(world, application.id)

    def trust(self, **members: Any) -> Any:
        usual = {"name": "Cluster", "issuer": GITHUB, "conditions": (f"sub = {MAIN}",)}
        command = AddFederatedCredential.build(**{**usual, **members})
        return self.world.operator_services.federated_credentials.add(self.client_id, command)

    def ask(self, assertion: str, endpoint: str = "token_endpoint", **form: str) -> Any:
        usual = {"grant_type": "client_credentials"} if endpoint == "token_endpoint" else {"token": "unknown"}
        usual |= {"client_id": self.client_id, "client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
        parameters = {name: text for name, text in {**usual, **form}.items() if text}
        return self.world.client.post(self.world.client.discovery[endpoint], parameters, {})


@pytest.fixture
def application(world: World) -> FederatedApplication:
    return FederatedApplication.register(world)


def test_application_authenticates_with_a_token_of_an_outside_issuer(
    world: World, github: OutsideIssuer, application: FederatedApplication
) -> None:
    """At each endpoint, and once per token; what it got for itself ends with the federated credential."""
    credential = application.trust()
    assertion = github.token()
    answer = application.ask(assertion)
    check_token_response(answer)
    check_oauth_error(application.ask(assertion), "invalid_client", status=401)
    assert application.ask(github.token(jti=OMITTED), "introspection_endpoint").json == {"active": False}
    token = answer.json["access_token"]
    [event] = world.audit_events(event="federated_credential.added", object_id=credential.id)
    assert event.detail["application_id"] == application.client_id
    world.identity.background_jobs.flush_last_used()
    credentials = world.operator_services.federated_credentials
    assert credentials.get(application.client_id, credential.id).last_used_at
    assert application.ask(github.token(), "introspection_endpoint", token=token).json["active"]
    another = application.trust()
    credentials.remove(application.client_id, credential.id)
    answer = application.ask(github.token(), "introspection_endpoint", token=token)
    assert answer.json == {"active": False}, "the token ended, while the application still authenticates"
    credentials.remove(application.client_id, another.id)
    check_oauth_error(application.ask(github.token()), "invalid_client", status=401)


def test_outside_tokens_never_choose_their_application(
    world: World, github: OutsideIssuer, application: FederatedApplication
) -> None:
    application.trust()
    stranger = FederatedApplication.register(world)
    with_secret = world.make_application(grant_types=frozenset({"client_credentials"}))
    world.operator_services.federated_credentials.add(
        with_secret.client_id,
        AddFederatedCredential.build(name="x", issuer=GITHUB, conditions=(f"sub = {MAIN}",)),
    )
    ecdsa = FederatedApplication.register(world, token_endpoint_auth_signing_alg="ES256")
    ecdsa.trust()
    answers = [
        application.ask(github.token(), client_id=""),
        application.ask(github.token(), client_id=stranger.client_id),
        application.ask(github.token(), client_id=with_secret.client_id),
        application.ask(github.token(), client_id="nobody"),
        application.ask(github.token(), client_id="x" * 300),
        application.ask(github.token()[:-6] + "AAAAAA"),
        application.ask(github.token(header={"typ": "at+jwt"})),
        application.ask(github.token(header={"alg": "none"}, sign=no_signature)),
        application.ask(github.token(iss=world.issuer)),
        ecdsa.ask(github.token()),
    ]
    for answer in answers:
        check_oauth_error(answer, "invalid_client", status=401)
        assert answer.json["error_description"] == "client authentication failed"
    for changed, problem in (
        ({"aud": "https://github.com/acme"}, "aud must contain"),
        ({"exp": OMITTED}, "exp must be"),
        ({"sub": "repo:acme/app:ref:refs/heads/dev"}, "accepts the claim sub"),
    ):
        answer = application.ask(github.token(**changed))
        check_oauth_error(answer, "invalid_client", status=401)
        assert problem in answer.json["error_description"]
    with world.transaction_services() as services:
        services.applications.deactivate(application.client_id, principal=Principal.OPERATOR)
    check_oauth_error(application.ask(github.token()), "invalid_client", status=401)


def test_application_of_the_instance_needs_a_marked_credential(
    world: World, github: OutsideIssuer, application: FederatedApplication
) -> None:
    """Its own project's and those that may manage; only instance managers change their credentials (security 14.4)."""
    owner = world.make_service_user_program()
    world.assign_manager_role(owner, "ORG_OWNER", resource=Resource.of_organization(owner.organization.id))
    plain = application.trust()
    with world.transaction_services() as services:
        services.applications.change(
            application.client_id, ChangeApplication.build(may_manage=True), principal=Principal.OPERATOR
        )
    answer = application.ask(github.token())
    check_oauth_error(answer, "invalid_client", status=401)
    assert "only instance managers" in answer.json["error_description"]
    application.trust(instance_managed=True)
    check_token_response(application.ask(github.token()))
    with world.transaction_services() as services:
        principal, credentials = find_principal(services, owner), services.federated_credentials
        with pytest.raises(Denied):
            credentials.remove(application.client_id, plain.id, principal=principal)

"""Fixture data: an organization with one entity for each path variable of the management API."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from identity.crypto.signature_keys import PublicKey
from identity.domain.groups import Group
from identity.domain.legal_holds import LegalHoldKind
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.commands.organizations import AddDomain
from identity.services.commands.service_users import AddFederatedCredential, AddPersonalAccessToken
from identity.services.mails import Mail, MailReason
from identity.storage.contract import factories
from identity.testing.jwt_assertions import assertion_claims, sign_assertion
from identity.testing.response_checks import format_response
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import ServiceUserProgram, World
from tests.directories import add_directory

ROLE = "reader"
#: The pending domain of every organization.
DOMAIN = "estate.example"


@dataclass(frozen=True)
class ApiFixtureData:
    """``path_values`` maps path variables to ids; ``managers`` has one manager of each level."""

    organization: Organization
    holder: Organization
    project: Project
    grant: ProjectGrant
    path_values: Mapping[str, str]
    managers: Mapping[str, str]

    def with_manager(self, world: World, home: Organization) -> "ApiFixtureData":
        """A copy with a manager of the project grant from this organization."""
        resource = project_grant_resource(self.grant, self.project)
        manager = world.assign_manager_role(
            world.make_service_user_program(home), "PROJECT_GRANT_OWNER_VIEWER", resource=resource
        )
        return replace(self, managers={**self.managers, "project_grant": manager.id})

    def address(self, path: str) -> str:
        """The path with its variables replaced."""
        return path.format_map(self.path_values)


def make_group(world: World, organization: Organization) -> Group:
    """A new group without members and roles."""
    with world.transaction_services() as services:
        return services.groups.add(organization.id, AddGroup(name="Sales"), principal=Principal.OPERATOR)


def make_fixture_data(world: World) -> ApiFixtureData:
    """New data; the project is granted to another new organization."""
    organization, holder = world.make_organization(), world.make_organization()
    # Held separately: a held organization cannot be deleted.
    held_organization = world.make_organization()
    project = world.make_project(organization, roles=[ROLE])
    grant = world.make_project_grant(project, holder, roles=[ROLE])
    application = world.make_application(project.id)
    robot, person = world.make_service_user_program(organization), world.make_human_user(organization)
    session = world.make_browser_session(person)
    user_grant = world.make_user_grant(person, project, ROLE)
    importer = world.make_human_user(organization)
    world.assign_manager_role(importer, "ORG_OWNER")
    world.make_service_user_secret(robot)
    provider = world.make_upstream_provider(organization)
    webhook = world.make_webhook(organization)
    group = make_group(world, organization)
    parts = (
        factories.group_member(group, person),
        factories.group_grant(group, project, roles=frozenset({ROLE})),
        factories.group_manager(group, roles=frozenset({"ORG_SETTINGS_MANAGER"})),
    )
    mapping, attribute = factories.group_mapping(group, provider), world.make_attribute(organization, "cost_center")
    attribute_mapping = factories.attribute_mapping(attribute, provider)
    viewer = world.make_service_user_program(organization)
    managers = {
        "instance": world.assign_manager_role(viewer, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE).id,
        "organization": world.assign_manager_role(viewer, "ORG_OWNER_VIEWER").id,
        "project": world.assign_manager_role(viewer, "PROJECT_OWNER_VIEWER", resource=project_resource(project)).id,
        "project_grant": world.assign_manager_role(
            viewer, "PROJECT_GRANT_OWNER_VIEWER", resource=project_grant_resource(grant, project)
        ).id,
    }
    with world.transaction_services() as services:
        services.storage.group_members.add(parts[0])
        services.storage.group_grants.add(parts[1])
        services.storage.group_managers.add(parts[2])
        services.storage.group_mappings.add(mapping)
        services.storage.attribute_mappings.add(attribute_mapping)
        command = AddPersonalAccessToken(name="Nightly")
        services.domains.add(organization.id, AddDomain(domain=DOMAIN))
        client = services.applications.find_client(application.client_id)
        services.consents.grant_consent(Subject(person, organization), client, ("openid",))
        hold = services.legal_holds.create(
            CreateLegalHold(kind=LegalHoldKind.ORGANIZATION, held_id=held_organization.id, reason="Case 12/2027")
        )
        services.mails.queue(Mail(to="", subject="", text=""), MailReason.NOTICE)
        credential = services.federated_credentials.add(
            robot.id,
            AddFederatedCredential.build(name="CI", issuer="https://ci.example", conditions=("sub = a",)),
            principal=Principal.OPERATOR,
        )
        application_credential = services.federated_credentials.add(
            application.client_id,
            AddFederatedCredential.build(name="CI", issuer="https://ci.example", conditions=("sub = a",)),
            principal=Principal.OPERATOR,
        )
        token, text = services.service_users.add_personal_access_token(robot.id, command, principal=Principal.OPERATOR)
        user_import = services.user_imports.start(
            organization.id,
            BytesIO(b"user_name,given_name,family_name\nanna,Anna,Ahlers\n"),
            principal=services.access_control.load_principal(Subject(importer, organization)),
        )
    world.client.secrets.add(text)
    with world.read_only_services() as services:
        [client_secret] = services.applications.list_secrets(application.client_id)
        [secret] = services.service_users.list_secrets(robot.id)
        delivery = services.webhooks.page_deliveries(webhook.id).items[0]
        signing_key = services.signing_keys.list_key_states()[0].key
        mail = services.queued_mails.list_newest(principal=Principal.OPERATOR)[0]
    [event] = world.audit_events(event="organization.created", object_id=organization.id)
    path_values = {
        "organization": organization.id,
        "domain": DOMAIN,
        "directory": add_directory(world, organization),
        "project": project.id,
        "role": ROLE,
        "project_grant": grant.id,
        "application": application.client_id,
        "client_secret": client_secret.id,
        "service_user": robot.id,
        "key": robot.key_id,
        "secret": secret.id,
        "token": token.id,
        "credential": credential.id,
        "application_credential": application_credential.id,
        "user": person.id,
        "session": session.id,
        "user_grant": user_grant.id,
        "group": group.id,
        "group_member": parts[0].id,
        "group_grant": parts[1].id,
        "group_manager": parts[2].id,
        "group_mapping": mapping.id,
        "attribute": attribute.id,
        "attribute_mapping": attribute_mapping.id,
        "upstream_provider": provider.id,
        "webhook": webhook.id,
        "plugin": "management",
        "operation": "list_organizations",
        "kind": "invitation",
        "language": "en",
        "delivery": delivery.id,
        "manager": managers["organization"],
        "audit_event": event.id,
        "signing_key": signing_key.id,
        "legal_hold": hold.id,
        "mail": mail.id,
        "user_import": user_import.id,
    }
    return ApiFixtureData(organization, holder, project, grant, path_values, managers)


@dataclass(frozen=True)
class ApiClient:
    """A client of the management API, with the token of one service user."""

    world: World
    token: str

    @classmethod
    def for_user(cls, robot: ServiceUserProgram) -> "ApiClient":
        """A client with a new token of the service user."""
        return cls(robot.world, robot.management_token())

    def ask(
        self,
        method: str,
        path: str,
        members: object = None,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> Any:
        """The response to a request with these members or this body; If_Match="…" is sent as If-Match."""
        if body is None:
            body = b"" if members is None else json.dumps(members).encode()
        sent = bearer_headers(self.token) | {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            sent["Content-Type"] = content_type
        return self._remembered(
            self.world.client.request(method, self.world.client.management_url + path, headers=sent, body=body)
        )

    def get(self, path: str, **headers: str) -> Any:
        return _members(self.ask("GET", path, **headers), 200)

    def list(self, path: str) -> Any:
        """The rows of the first page."""
        return self.get(path)["items"]

    def post(self, path: str, members: object = None, *, status: int = 201, **headers: str) -> Any:
        return _members(self.ask("POST", path, members, **headers), status)

    def patch(self, path: str, members: object, **headers: str) -> Any:
        return _members(self.ask("PATCH", path, members, **headers), 200)

    def delete(self, path: str, **headers: str) -> None:
        answer = self.ask("DELETE", path, **headers)
        assert (answer.status_int, answer.body) == (204, b""), format_response(answer)

    def _remembered(self, answer: Any) -> Any:
        """The response; its secrets are registered with the search of logs and audit trail."""
        if answer.body and answer.content_type == "application/json" and answer.status_int in (200, 201):
            members = answer.json
            secrets = {members.get(name) for name in ("client_secret", "token", "one_time_password", "password_link")}
            secrets.add((members.get("initial") or {}).get("secret"))
            self.world.client.secrets.update(secret for secret in secrets if isinstance(secret, str))
        return answer


def _members(answer: Any, status: int) -> Any:
    assert answer.status_int == status, format_response(answer)
    assert answer.content_type == "application/json", format_response(answer)
    return answer.json


#: Creates the client of a new manager with a role, by default at its own organization.
MakeApi = Callable[..., ApiClient]


def level_of(world: World, estate: ApiFixtureData, role: str) -> Any:
    """The resource of the role's level in this data."""
    level = world.identity.process_state.manager_roles[role].level
    return {
        "instance": Resource.INSTANCE,
        "organization": Resource.of_organization(estate.organization.id),
        "project": project_resource(estate.project),
        "project_grant": project_grant_resource(estate.grant, estate.project),
    }[level]


def make_public_key(world: World) -> str:
    """The public half of an arbitrary key, as PEM."""
    return PublicKey(world.key_pool.next().public_key()).to_pem()


def token_with(world: World, key_file: Mapping[str, str]) -> Any:
    """The token response for a key file."""
    key = load_pem_private_key(key_file["key"].encode(), None)
    assert isinstance(key, RSAPrivateKey)
    claims = assertion_claims(key_file["userId"], world.issuer, world.clock.seconds)
    return world.client.exchange_assertion(
        sign_assertion(claims, key, key_id=key_file["keyId"]), f"openid {world.audience_scope()}"
    )

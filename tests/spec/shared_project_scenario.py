"""A shared project, organizations in every relation to it, and the access that a token gives."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from identity.domain.applications import ConsentRule
from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant
from identity.domain.users import HumanUser, TokenFormat
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.service_test_client import Credentials
from identity.testing.world import CredentialsOrClientId, World

ROLES = "urn:service:iam:org:projects:roles"
OWN_BY_ALIAS = "urn:service:iam:org:project:id:service:aud"
#: The roles of the shared project, those of the user, and those that a project grant passes on.
EVERY = frozenset({"reader", "writer", "auditor"})
OF_USER = frozenset({"reader", "writer"})
GRANTED = {"user": frozenset({"reader", "writer"}), "client": frozenset({"writer", "auditor"})}
APPLICATION = {
    "response_types": frozenset({"code", "id_token token"}),
    "redirect_uris": ("https://app.example/callback",),
}


GRANTS = frozenset({"authorization_code", "refresh_token", "client_credentials"})


@dataclass(frozen=True)
class AccessRight:
    """The roles a party may have in the shared project, and whether it may access the instance's project."""

    roles: frozenset[str] | None
    own_project: bool

    def __and__(self, access_right: "AccessRight") -> "AccessRight":
        shared = None if self.roles is None or access_right.roles is None else self.roles & access_right.roles
        return AccessRight(shared, self.own_project and access_right.own_project)


@dataclass(frozen=True)
class TokenAccess:
    """The access that a token gives."""

    shared: bool
    own_project: bool
    manages: bool
    roles: frozenset[str]
    projects: frozenset[str]


@dataclass
class SharedProjectScenario:
    """The shared project, and organizations in every relation to it."""

    world: World
    shared: Project = field(init=False)
    api: Credentials = field(init=False)
    organizations: dict[tuple[str, str], Organization] = field(default_factory=dict)
    grants: dict[str, ProjectGrant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owner = self.world.make_organization()
        self.shared = self.world.make_project(owner, roles=EVERY)
        self.api = self.world.make_application(self.shared.id)
        for party in ("user", "client"):
            holder = self.world.make_organization()
            self.organizations |= {(party, "owner"): owner, (party, "holder"): holder}
            self.organizations[party, "foreign"] = self.world.make_organization()
            self.grants[party] = self.world.make_project_grant(self.shared, holder, roles=GRANTED[party])

    def right(self, party: str, relation: str, *, own_project: bool) -> AccessRight:
        """The party's access, derived from its organization's relation to the project."""
        return AccessRight({"owner": EVERY, "holder": GRANTED[party], "foreign": None}[relation], own_project)

    def make_manager(self, relation: str) -> HumanUser:
        """A manager with roles in the shared project where the organization can grant them."""
        person = self.world.make_human_user(self.organizations["user", relation])
        self.give_roles(person, relation)
        return person

    def give_roles(self, user: Any, relation: str) -> None:
        grant = self.grants["user"] if relation == "holder" else None
        self.world.make_user_grant(user, self.shared, *OF_USER, grant=grant)
        self.world.assign_manager_role(user, "ORG_OWNER")

    def project_for(self, relation: str, person: HumanUser | None) -> str:
        """The project of the application for this relation."""
        if relation == "of the instance":
            return self.world.instance.project_id
        if relation == "of the user":
            assert person is not None
            with self.world.read_only_services() as services:
                return self.world.make_project(services.organizations.get(person.organization_id)).id
        return self.world.make_project(self.organizations["client", relation]).id

    def scope(self, audiences: str) -> str:
        """A scope with the audience scopes of these projects."""
        scopes = {
            "shared": self.world.audience_scope(self.shared.id),
            "own": self.world.audience_scope(),
            "alias": OWN_BY_ALIAS,
        }
        return " ".join(["openid", ROLES, *(scopes[item] for item in audiences.split())])

    def opened(self, token: str, asking: Credentials | None) -> "TokenAccess":
        """What introspection, userinfo, the management API and the token itself return."""
        client = self.world.client
        claim = f"urn:service:iam:org:project:{self.shared.id}:roles"
        introspections = [
            client.introspect(token, self.api).json,
            client.introspect(token, self.world.introspector).json,
        ]
        answers = [*introspections] if asking is None else [*introspections, client.introspect(token, asking).json]
        userinfo = client.fetch_userinfo(token)
        claim_sets = [answer for answer in answers if answer["active"]] + (
            [userinfo.json] if userinfo.status_int == 200 else []
        )
        format = TokenFormat.JWT if token.count(".") == 2 else TokenFormat.OPAQUE
        if format is TokenFormat.JWT:
            claim_sets.append(decode_jwt_unverified(token)[1])
        audiences = [frozenset(item["aud"]) for item in claim_sets if "aud" in item]
        return TokenAccess(
            shared=introspections[0]["active"],
            own_project=introspections[1]["active"],
            manages=client.call_management_api("/me", token).status_int != 401,
            roles=frozenset(role for item in claim_sets for role in item.get(claim, {})),
            projects=frozenset(
                item for audience in audiences for item in audience & {self.shared.id, self.world.instance.project_id}
            ),
        )


def make_application(world: World, project_id: str, members: dict[str, Any]) -> CredentialsOrClientId:
    """The credentials of an application, or the id of a public one."""
    members = {"consent": ConsentRule.WHEN_FOREIGN} | members
    if members.get("authentication_method") == "none":
        return world.make_public_application(project_id, **members)
    return world.make_application(project_id, **members)


def agree(world: World, person: HumanUser, client: CredentialsOrClientId, scopes: Iterable[str]) -> None:
    """Stores the user's consent to the scopes; consent grants no access by itself."""
    granted = tuple(dict.fromkeys(item for scope in scopes for item in (*scope.split(), "offline_access")))
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        application_client = services.applications.find_client(client if isinstance(client, str) else client.client_id)
        assert subject is not None
        assert application_client is not None
        services.consents.grant_consent(subject, application_client, granted)

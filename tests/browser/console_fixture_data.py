"""Fixture data of console pages, created once for all of them."""

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from io import BytesIO

from identity.crypto.secrets import new_token
from identity.domain.applications import ApplicationType, ConsentRule
from identity.domain.attempts import MAX_ATTEMPTS
from identity.domain.domains import DomainProof
from identity.domain.legal_holds import LegalHoldKind
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser
from identity.domain.webhooks import DeliveryProblem
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.attributes import AddAttributeMapping, CreateAttribute
from identity.services.commands.groups import AddGroup, AddGroupGrant, AddGroupManager, AddGroupMapping, AddGroupMember
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import ChangeProject
from identity.services.commands.service_users import AddFederatedCredential, AddPersonalAccessToken, ChangeServiceUser
from identity.services.commands.upstream_providers import CreateUpstreamProvider
from identity.services.commands.webhooks import CreateWebhook, RotateWebhookSecret
from identity.services.policies import INSTANCE_OWNER_ID as OF_ALL
from identity.services.webhooks import AttemptResult
from identity.testing.world import ServiceUserProgram
from tests.browser.example_company import CompanyUser, ExampleCompany
from tests.browser.page_scenarios import LONG, LONG_WORD
from tests.directories import add_directory

DOMAIN = f"{'-'.join(['a-rather-long-name'] * 3)}.example"
CALLBACK = "https://invoices.example/signed-in/by/the/identity/service/callback"


@dataclass(frozen=True)
class ConsoleFixtureData:
    """An organization with resources of every kind, and an instance manager."""

    organization: Organization
    manager: CompanyUser
    owner: Manager
    person: HumanUser
    robot: ServiceUserProgram
    project: Project
    application_id: str
    project_grant: ProjectGrant
    user_grant: UserGrant
    #: Ids of resources that only one page's URL contains.
    ids: dict[str, str]
    #: An organization without resources.
    empty: Organization


@cache
def estate(site: ExampleCompany, long: bool) -> ConsoleFixtureData:
    """Created once, because scenarios only read it or submit invalid forms; ``long`` uses the longest names."""
    world = site.world
    name, project_name, person_name = (
        (LONG, LONG_WORD, (LONG, LONG_WORD)) if long else ("Northwind Traders", "Invoices", ())
    )
    organization, partner, empty = (world.make_organization() for _ in range(3))
    user_names = (f"{LONG_WORD[:190]}{number}" if long else "" for number in range(10))
    manager, owner, person = (
        site.make_user(*(person_name or names), organization=organization, user_name=next(user_names))
        for names in (("Anna", "Berg"), ("Otto", "Sommer"), ("Grace", "Hopper"))
    )
    project = world.make_project(organization, roles=("reader", "editor", "owner"), assert_roles=True)
    granted = world.make_project(partner, roles=("driver",))
    robot = world.make_service_user_program(
        organization, display_name=LONG if long else "CI runner", expires_at=world.clock() + timedelta(days=5, hours=1)
    )
    world.add_service_user_key(robot)
    agent = world.make_agent(person.user)
    with world.transaction_services() as services:
        for renamed, called in ((organization, name), (partner, f"Partner {name}"[:200]), (empty, "Seedlings")):
            services.organizations.change(renamed.id, ChangeOrganization(name=called))
        for project_id, called in ((project.id, project_name), (granted.id, f"Fleet {name}"[:200])):
            services.projects.change(project_id, ChangeProject(name=called), principal=Principal.OPERATOR)
        proven, asserted = (f"{item}-{organization.id}.example" for item in ("proven", "asserted"))
        for domain in (DOMAIN, proven, asserted):
            services.domains.add(organization.id, AddDomain(domain=domain))
        services.domains.verify(services.domains.get(organization.id, proven), DomainProof.DNS)
        services.domains.assert_domain(organization.id, asserted, principal=Principal.OPERATOR)
        web = RegisterApplication(name=project_name, type=ApplicationType.WEB, redirect_uris=(CALLBACK,))
        application, _ = services.applications.register_with_secret(project.id, web, principal=Principal.OPERATOR)
        reports = RegisterApplication(name="Reports", type=ApplicationType.API, authentication_method="private_key_jwt")
        keyless = services.applications.register(project.id, reports, principal=Principal.OPERATOR)
        described = ChangeServiceUser(description="Deploys the shop each night.")
        services.service_users.change(robot.id, described, principal=Principal.OPERATOR)
        add_personal_access_token = AddPersonalAccessToken(
            name=project_name, expires_at=world.clock() + timedelta(days=90)
        )
        token, _ = services.service_users.add_personal_access_token(
            robot.id, add_personal_access_token, principal=Principal.OPERATOR
        )
        trusted = AddFederatedCredential.build(
            name=project_name,
            issuer="https://token.actions.githubusercontent.com",
            conditions=("sub = repo:acme/shop:ref:refs/heads/main", "repository_id = 74"),
        )
        federated_credential, application_credential = (
            services.federated_credentials.add(owner_id, trusted, principal=Principal.OPERATOR)
            for owner_id in (robot.id, keyless.id)
        )
        secret, _ = services.service_users.add_secret(robot.id, principal=Principal.OPERATOR)
        provider = CreateUpstreamProvider.build(
            name=project_name, issuer="https://login.elsewhere.example", client_id="identity", client_secret=new_token()
        )
        ids = {
            "provider": services.upstream_providers.create(organization.id, provider, principal=Principal.OPERATOR).id,
            "proven": proven,
            "asserted": asserted,
            "agent": agent.id,
            "token": token.id,
            "federated_credential": federated_credential.id,
            "keyless_application": keyless.id,
            "application_federated_credential": application_credential.id,
            "secret": secret.id,
            "application_secret": services.applications.list_secrets(application.id)[0].id,
            "signing_key": services.signing_keys.list_key_states()[-1].key.id,
        }
    ids |= _attributes(site, organization, long)
    # Changed like every account that is shown.
    person = replace(
        person, user=world.set_attributes(person.user, department="Sales", hired_on="2024-02-01", remote=True)
    )
    world.assign_manager_role(manager.user, "IAM_OWNER", resource=Resource.INSTANCE)
    world.assign_manager_role(robot, "ORG_OWNER")
    owner_manager = world.assign_manager_role(
        owner.user, "ORG_OWNER", resource=Resource.of_organization(organization.id)
    )
    world.make_user_grant(robot.user, project, "reader")
    world.make_project_grant(granted, organization, roles=("driver",))
    ids["session"] = world.make_browser_session(person.user).id
    with world.transaction_services() as services:
        holder = services.storage.users.find_subject(person.user.id)
        assert holder is not None
        services.factors.enrol(holder, "totp", {"secret": "A" * 32, "step": 0}, name=name if long else "Phone")
        services.factors.enrol(holder, "recovery_codes", {"codes": {}})
    ids["locked"] = _a_locked_person(site, organization, next(user_names)).id
    ids["leaving"] = _a_leaving_person(site, organization, next(user_names)).id
    ids |= _a_held_person(site, organization, partner, next(user_names))
    ids["connected"] = _connected(site, person, name if long else "Parcels")
    ids |= _webhooks(site, organization, name if long else "Shop")
    ids |= _groups(site, organization, person.user.id, project, name if long else "Sales")
    ids |= _idle(site, organization, partner)
    ids["import"] = _user_import(site, organization, manager)
    # A refused action.
    robot.request_token(iat=world.clock.seconds - 7200)
    return ConsoleFixtureData(
        organization=organization,
        manager=manager,
        owner=owner_manager,
        person=person.user,
        robot=robot,
        project=project,
        application_id=application.id,
        project_grant=world.make_project_grant(project, partner, roles=("reader",)),
        user_grant=world.make_user_grant(person.user, project, "reader", "editor"),
        ids=ids,
        empty=empty,
    )


def _attributes(site: ExampleCompany, organization: Organization, long: bool) -> dict[str, str]:
    """One attribute of each type; two are the person's own to see, one to change."""
    make, label = site.world.make_attribute, LONG if long else "Department"
    department = make(
        organization, "department", label=label, hint="As in the contract", visible_to="person", in_tokens=True
    )
    make(organization, "hired_on", label="Hired on", type="date", visible_to="person")
    make(organization, "remote", label="Works remotely", type="boolean", visible_to="person", editable_by="person")
    make(organization, "shirt", label="Shirt size", type="choice", choices=("S", "M", "L"))
    make(organization, "staff_number", label="Staff number", type="number", confidential=True)
    return {"attribute": department.id}


def _a_locked_person(site: ExampleCompany, organization: Organization, user_name: str) -> HumanUser:
    """A user locked by wrong passwords."""
    person = site.make_user("Lukas", "Weber", organization=organization, user_name=user_name)
    site.try_passwords(person, MAX_ATTEMPTS)
    site.world.clock.reset()
    return person.user


def _a_leaving_person(site: ExampleCompany, organization: Organization, user_name: str) -> HumanUser:
    """A user with pending account deletion."""
    person = site.make_user("Lea", "Weber", organization=organization, user_name=user_name)
    with site.world.transaction_services() as services:
        services.policies.change(OF_ALL, ChangePolicy(account_deletion=True))
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        services.account_deletions.schedule(subject)
    return person.user


def _a_held_person(
    site: ExampleCompany, organization: Organization, partner: Organization, user_name: str
) -> dict[str, str]:
    """A user under legal hold, and another organization under legal hold."""
    person = site.make_user("Hanna", "Kraus", organization=organization, user_name=user_name)
    reason = "Case 12/2027 before the regional court: keep until the lawyers say otherwise."
    with site.world.transaction_services() as services:
        create_hold = services.legal_holds.create
        hold = create_hold(CreateLegalHold(kind=LegalHoldKind.USER, held_id=person.user.id, reason=reason))
        create_hold(CreateLegalHold(kind=LegalHoldKind.ORGANIZATION, held_id=partner.id, reason="Tax audit"))
    return {"held": person.user.id, "hold": hold.id}


def _connected(site: ExampleCompany, person: CompanyUser, name: str) -> str:
    """The client id of a third-party application with the user's consent."""
    party = site.make_application(name, site.world.make_organization(), consent=ConsentRule.WHEN_FOREIGN)
    with site.world.transaction_services() as services:
        subject, client = (
            services.storage.users.find_subject(person.user.id),
            services.applications.find_client(party.client_id),
        )
        assert subject is not None
        assert client is not None
        services.consents.grant_consent(subject, client, ("openid", "email"))
    return party.client_id


def _webhooks(site: ExampleCompany, organization: Organization, name: str) -> dict[str, str]:
    """A webhook with two secrets and a delivery that was refused, a deactivated one, and one of the instance."""
    with site.world.transaction_services() as services:
        url = "https://hooks.example.com/identity"
        create, operator = services.webhooks.create_with_new_secret, Principal.OPERATOR
        command = CreateWebhook.build(name=name, url=url, events=("webhook.tested",))
        webhook, _ = create(organization.id, command, principal=operator)
        idle, _ = create(organization.id, CreateWebhook.build(name="Old receiver", url=url), principal=operator)
        create(None, CreateWebhook.build(name=name, url=url, events=("backup.*",)), principal=operator)
        services.webhooks.rotate_secret(webhook.id, RotateWebhookSecret(), principal=operator)
        services.webhooks.deactivate(idle.id, principal=operator)
        services.webhooks.send_test(webhook.id, principal=operator)
        [delivery] = services.webhooks.page_deliveries(webhook.id)
        message = services.webhooks.begin_attempt(delivery)
        assert message is not None
        result = AttemptResult(311, 500, DeliveryProblem.STATUS, '{"error": "the queue is full", "retry": true}')
        services.webhooks.finish_attempt(message.delivery, result)
    return {"webhook": webhook.id, "idle_webhook": idle.id, "delivery": delivery.id}


def _user_import(site: ExampleCompany, organization: Organization, manager: CompanyUser) -> str:
    """A checked file of people, one of whom has no name."""
    world = site.world
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(manager.user.id)
        assert subject is not None
        file = BytesIO(b"user_name,given_name,family_name\nlise,Lise,Meitner\nemmy,,Noether\n")
        principal = services.access_control.load_principal(subject)
        user_import = services.user_imports.start(organization.id, file, principal=principal)
    world.identity.background_jobs.user_importer.run()
    return user_import.id


def _groups(
    site: ExampleCompany, organization: Organization, member_id: str, project: Project, name: str
) -> dict[str, str]:
    """A group with a member, project roles and manager roles that end, and a deactivated one."""
    operator, provider = Principal.OPERATOR, site.world.make_upstream_provider(organization, name="Company login")
    with site.world.transaction_services() as services:
        until = services.now + timedelta(days=30)
        group = services.groups.add(organization.id, AddGroup(name=name, description="Sells."), principal=operator)
        member = AddGroupMember(user_id=member_id, until=until)
        grant = AddGroupGrant(project_id=project.id, roles=frozenset({"reader"}), until=until)
        manager = AddGroupManager.build(
            level="project", resource_id=project.id, roles=["PROJECT_OWNER_VIEWER"], until=until
        )
        ids = {
            "group": group.id,
            "group_member": services.group_members.add(group.id, member, principal=operator).id,
            "group_grant": services.group_grants.add(group.id, grant, principal=operator).id,
            "group_manager": services.group_managers.add(group.id, manager, principal=operator).id,
        }
        mapping = AddGroupMapping(claim="realm_access.roles", value="sales", group_id=group.id)
        ids["group_mapping"] = services.group_mappings.add(provider, mapping, principal=operator).id
        ids["mapped_provider"] = provider.id
        attribute = services.attributes.create(
            organization.id, CreateAttribute(key="office", label="Office"), principal=operator
        )
        office = AddAttributeMapping(claim="office", attribute_id=attribute.id)
        directory = services.directories.get(organization.id, add_directory(site.world, organization))
        sales = AddGroupMapping(claim="memberOf", value="cn=sales,ou=groups,dc=example", group_id=group.id)
        services.group_mappings.add(directory, sales, principal=operator)
        services.attribute_mappings.add(directory, office, principal=operator)
        ids["attribute_mapping"] = services.attribute_mappings.add(provider, office, principal=operator).id
        idle = services.groups.add(organization.id, AddGroup(name="Old team"), principal=operator)
        services.groups.deactivate(idle.id, principal=operator)
    return {**ids, "idle_group": idle.id}


def _idle(site: ExampleCompany, organization: Organization, partner: Organization) -> dict[str, str]:
    """One deactivated resource of each kind."""
    world = site.world
    robot = world.make_service_user_program(organization, display_name="Old importer")
    person = site.make_user("Vera", "Lang", organization=organization)
    project, closed = world.make_project(organization), world.make_organization()
    grant, provider = world.make_project_grant(project, partner), world.make_upstream_provider(organization)
    with world.transaction_services() as services:
        command = RegisterApplication(name="Old shop", type=ApplicationType.API)
        application, _ = services.applications.register_with_secret(project.id, command, principal=Principal.OPERATOR)
        services.service_users.deactivate(robot.id, principal=Principal.OPERATOR)
        services.users.deactivate(person.user.id, principal=Principal.OPERATOR)
        services.applications.deactivate(application.id, principal=Principal.OPERATOR)
        services.project_grants.deactivate(grant.id, principal=Principal.OPERATOR)
        services.projects.deactivate(project.id, principal=Principal.OPERATOR)
        services.upstream_providers.deactivate(provider.id, principal=Principal.OPERATOR)
        services.organizations.deactivate(closed.id, principal=Principal.OPERATOR)
    return {
        "idle_robot": robot.id,
        "idle_person": person.user.id,
        "idle_application": application.id,
        "idle_grant": grant.id,
        "idle_project": project.id,
        "idle_provider": provider.id,
        "idle_organization": closed.id,
    }

"""Estate: what the pages of the console show, made once for all of them."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from identity.crypto.secrets import new_token
from identity.domain.applications import ApplicationType, ConsentRule
from identity.domain.attempts import MOST_ATTEMPTS
from identity.domain.domains import Proof
from identity.domain.legal_holds import Held
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser
from identity.services.access import THE_OPERATOR
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.legal_holds import PlaceLegalHold
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import ChangeProject
from identity.services.commands.service_users import AddPersonalAccessToken, ChangeServiceUser
from identity.services.commands.upstream_providers import CreateUpstreamProvider
from identity.services.policies import INSTANCE as OF_ALL
from identity.testing.world import Robot
from tests.browser.acme import Acme, Person
from tests.browser.scene import LONG, LONG_WORD

DOMAIN = f"{'-'.join(['a-rather-long-name'] * 3)}.example"
CALLBACK = "https://invoices.example/signed-in/by/the/identity/service/callback"


@dataclass(frozen=True)
class Estate:
    """An organization in which there is something of everything, and a manager of the instance."""

    organization: Organization
    manager: Person
    owner: Manager
    person: HumanUser
    robot: Robot
    project: Project
    application_id: str
    project_grant: ProjectGrant
    user_grant: UserGrant
    #: What only the address of one page names.
    ids: dict[str, str]
    #: An organization that has nothing yet.
    empty: Organization


@cache
def estate(site: Acme, long: bool) -> Estate:
    """Made once for all scenes, which only look at it or try what is not taken; ``long`` with the longest names."""
    world = site.world
    name, word, person_name = (LONG, LONG_WORD, (LONG, LONG_WORD)) if long else ("Northwind Traders", "Invoices", ())
    organization, partner, empty = (world.an_organization() for _ in range(3))
    user_names = (f"{LONG_WORD[:190]}{number}" if long else "" for number in range(10))
    manager, owner, person = (
        site.a_person(*(person_name or names), organization=organization, user_name=next(user_names))
        for names in (("Anna", "Berg"), ("Otto", "Sommer"), ("Grace", "Hopper"))
    )
    project = world.a_project(organization, roles=("reader", "editor", "owner"), assert_roles=True)
    granted = world.a_project(partner, roles=("driver",))
    robot = world.a_robot(
        organization, display_name=LONG if long else "CI runner", expires_at=world.clock() + timedelta(days=5, hours=1)
    )
    world.another_key(robot)
    with world.transaction() as services:
        for one, called in ((organization, name), (partner, f"Partner {name}"[:200]), (empty, "Seedlings")):
            services.organizations.change(one.id, ChangeOrganization(name=called))
        for project_id, called in ((project.id, word), (granted.id, f"Fleet {name}"[:200])):
            services.projects.change(project_id, ChangeProject(name=called), by=THE_OPERATOR)
        proven, asserted = (f"{one}-{organization.id}.example" for one in ("proven", "asserted"))
        for domain in (DOMAIN, proven, asserted):
            services.domains.ask(organization.id, AddDomain(domain=domain))
        services.domains.verify(services.domains.get(organization.id, proven), Proof.DNS)
        services.domains.assert_domain(organization.id, asserted, by=THE_OPERATOR)
        web = RegisterApplication(name=word, type=ApplicationType.WEB, redirect_uris=(CALLBACK,))
        application, _ = services.applications.register(project.id, web, by=THE_OPERATOR)
        services.applications.register(
            project.id, RegisterApplication(name="Reports", type=ApplicationType.API), by=THE_OPERATOR
        )
        described = ChangeServiceUser(description="Deploys the shop each night.")
        services.service_users.change(robot.id, described, by=THE_OPERATOR)
        asked = AddPersonalAccessToken(name=word, expires_at=world.clock() + timedelta(days=90))
        token, _ = services.service_users.add_token(robot.id, asked, by=THE_OPERATOR)
        secret, _ = services.service_users.add_secret(robot.id, by=THE_OPERATOR)
        provider = CreateUpstreamProvider.of(
            name=word, issuer="https://login.elsewhere.example", client_id="identity", client_secret=new_token()
        )
        ids = {
            "provider": services.upstream_providers.create(organization.id, provider, by=THE_OPERATOR).id,
            "proven": proven,
            "asserted": asserted,
            "token": token.id,
            "secret": secret.id,
            "application_secret": services.applications.secrets(application.id)[0].id,
            "signing_key": services.signing_keys.states()[-1].key.id,
        }
    world.make_manager(manager.user, "IAM_OWNER", resource=INSTANCE)
    world.make_manager(robot, "ORG_OWNER")
    owner_manager = world.make_manager(owner.user, "ORG_OWNER", resource=organization_resource(organization.id))
    world.a_user_grant(robot.user, project, "reader")
    world.a_grant(granted, organization, roles=("driver",))
    ids["session"] = world.a_session(person.user).id
    with world.transaction() as services:
        holder = services.storage.users.find_subject(person.user.id)
        assert holder is not None
        services.factors.add(holder, "totp", {"secret": "A" * 32, "step": 0}, name=word)
        services.factors.add(holder, "recovery_codes", {"codes": {}})
    ids["locked"] = _a_locked_person(site, organization, next(user_names)).id
    ids["leaving"] = _a_leaving_person(site, organization, next(user_names)).id
    ids |= _a_held_person(site, organization, partner, next(user_names))
    ids["connected"] = _connected(site, person, name if long else "Parcels")
    ids |= _idle(site, organization, partner)
    # Something that was refused.
    robot.token(iat=world.clock.seconds - 7200)
    return Estate(
        organization=organization,
        manager=manager,
        owner=owner_manager,
        person=person.user,
        robot=robot,
        project=project,
        application_id=application.id,
        project_grant=world.a_grant(project, partner, roles=("reader",)),
        user_grant=world.a_user_grant(person.user, project, "reader", "editor"),
        ids=ids,
        empty=empty,
    )


def _a_locked_person(site: Acme, organization: Organization, user_name: str) -> HumanUser:
    """Whose password a stranger guessed at until it counted no longer."""
    person = site.a_person("Lukas", "Weber", organization=organization, user_name=user_name)
    site.try_passwords(person, MOST_ATTEMPTS)
    site.world.clock.reset()
    return person.user


def _a_leaving_person(site: Acme, organization: Organization, user_name: str) -> HumanUser:
    """Who has asked for the account to be deleted."""
    person = site.a_person("Lea", "Weber", organization=organization, user_name=user_name)
    with site.world.transaction() as services:
        services.policies.change(OF_ALL, ChangePolicy(account_deletion=True))
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        services.deletions.ask(subject)
    return person.user


def _a_held_person(site: Acme, organization: Organization, partner: Organization, user_name: str) -> dict[str, str]:
    """Who is under a legal hold, as is the whole of another organization."""
    person = site.a_person("Hanna", "Kraus", organization=organization, user_name=user_name)
    reason = "Case 12/2027 before the regional court: keep until the lawyers say otherwise."
    with site.world.transaction() as services:
        place = services.legal_holds.place
        hold = place(PlaceLegalHold(kind=Held.USER, held_id=person.user.id, reason=reason))
        place(PlaceLegalHold(kind=Held.ORGANIZATION, held_id=partner.id, reason="Tax audit"))
    return {"held": person.user.id, "hold": hold.id}


def _connected(site: Acme, person: Person, name: str) -> str:
    """The client id of an application of others, which the person lets have something."""
    party = site.an_application(name, site.world.an_organization(), consent=ConsentRule.WHEN_FOREIGN)
    with site.world.transaction() as services:
        subject, client = (
            services.storage.users.find_subject(person.user.id),
            services.applications.find_client(party.client_id),
        )
        assert subject is not None
        assert client is not None
        services.consents.give(subject, client, ("openid", "email"))
    return party.client_id


def _idle(site: Acme, organization: Organization, partner: Organization) -> dict[str, str]:
    """Of each kind one that is deactivated."""
    world = site.world
    robot = world.a_robot(organization, display_name="Old importer")
    person = site.a_person("Vera", "Lang", organization=organization)
    project, closed = world.a_project(organization), world.an_organization()
    grant, provider = world.a_grant(project, partner), world.an_upstream_provider(organization)
    with world.transaction() as services:
        command = RegisterApplication(name="Old shop", type=ApplicationType.API)
        application, _ = services.applications.register(project.id, command, by=THE_OPERATOR)
        services.service_users.deactivate(robot.id, by=THE_OPERATOR)
        services.users.deactivate(person.user.id, by=THE_OPERATOR)
        services.applications.deactivate(application.id, by=THE_OPERATOR)
        services.project_grants.deactivate(grant.id, by=THE_OPERATOR)
        services.projects.deactivate(project.id, by=THE_OPERATOR)
        services.upstream_providers.deactivate(provider.id, by=THE_OPERATOR)
        services.organizations.deactivate(closed.id, by=THE_OPERATOR)
    return {
        "idle_robot": robot.id,
        "idle_person": person.user.id,
        "idle_application": application.id,
        "idle_grant": grant.id,
        "idle_project": project.id,
        "idle_provider": provider.id,
        "idle_organization": closed.id,
    }

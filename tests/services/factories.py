"""Creates organizations and users for tests, and a principal with a manager role."""

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser, ServiceUser, Subject, User
from identity.services.access_control import Principal
from identity.services.commands.managers import AddManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.service_users import CreateServiceUser
from identity.services.commands.users import CreateHumanUser
from identity.services.container import Services


def make_organization(services: Services, name: str = "Acme", domain: str | None = None) -> Organization:
    command = (
        CreateOrganization.build(name=name) if domain is None else CreateOrganization(name=name, primary_domain=domain)
    )
    return services.organizations.create(command, principal=Principal.OPERATOR)


def make_human_user(services: Services, organization: Organization, name: str = "anna", email: str = "") -> HumanUser:
    command = CreateHumanUser(user_name=name, given_name=name.title(), family_name="B", email=email)
    return services.users.create(organization.id, command)


def make_service_user(services: Services, organization: Organization, name: str = "robot") -> ServiceUser:
    command = CreateServiceUser(user_name=name, display_name=name.title())
    return services.service_users.create(organization.id, command)


def subject_of(services: Services, user: User) -> Subject:
    subject = services.storage.users.find_subject(user.id)
    assert subject is not None
    return subject


def holding(services: Services, user: User, role: str) -> Principal:
    """The user as a principal with this role, at their organization or at the instance."""
    resource = Resource.INSTANCE if role.startswith("IAM") else Resource.of_organization(user.organization_id)
    command = AddManager(user_id=user.id, roles=frozenset({role}))
    services.managers.add(resource, command, principal=Principal.OPERATOR, allow_without_sign_in_method=True)
    return services.access_control.load_principal(subject_of(services, user))

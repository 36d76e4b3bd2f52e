"""Bootstrap: the instance's own organization and project, its first owner, key, service user and application.

Everything is idempotent: what exists stays, what is missing is created.
"""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.applications import Application, ApplicationType
from identity.domain.errors import Invalid
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.users import HumanUser, ServiceUser
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.projects import CreateProject
from identity.services.commands.service_users import AddServiceUserKey, CreateServiceUser
from identity.services.commands.users import ChangeProfile, CreateHumanUser
from identity.services.container import Services
from identity.services.managers import INSTANCE_OWNER_ROLE
from identity.storage.errors import DuplicateValue
from identity.storage.paging import iterate_rows

OWNER_USER_NAME = "admin"
INTROSPECTION_APPLICATION_NAME = "Token introspection"


@dataclass(frozen=True, slots=True)
class InitialOwner:
    """The first IAM_OWNER, and the password that is printed once."""

    user: HumanUser
    login_name: str
    password: str

    def __repr__(self) -> str:
        return f"NewOwner(login_name={self.login_name!r})"


def ensure_instance(services: Services, *, registration: bool, email: str = "") -> tuple[Instance, InitialOwner | None]:
    """The instance, and its owner with a one-time password if this call created them; ``registration`` says whether
    users may register in its own organization, ``email`` is the owner's address. Of two racing calls one creates
    everything; the other's transaction fails with Duplicate and finds it on retry."""
    instance = services.storage.organizations.find_instance()
    if instance is not None:
        services.signing_keys.add_first()
        return instance, None
    try:
        create_organization = CreateOrganization.decode({"name": "Identity", "registration": registration})
        organization = services.organizations.create(create_organization)
    except Invalid:
        # Only the other call can have taken the domain: not the operator's mistake.
        raise DuplicateValue("instance") from None
    command = CreateProject.decode({"name": "Identity"})
    project = services.projects.create(organization.id, command, principal=Principal.OPERATOR)
    instance = Instance(organization_id=organization.id, project_id=project.id, created_at=services.now)
    services.storage.organizations.add_instance(instance)
    services.audit.record(
        "instance.bootstrapped",
        kind="instance",
        id=None,
        organization_id=organization.id,
        detail={"organization_id": organization.id, "project_id": project.id},
    )
    services.signing_keys.add_first()
    owner = services.users.create(
        organization.id,
        CreateHumanUser.decode({"user_name": OWNER_USER_NAME, "given_name": "First", "family_name": "Owner"}),
    )
    if email:
        owner = services.users.set_verified_email(owner.id, ChangeProfile.decode({"email": email}))
    password = services.passwords.set_one_time_password(owner.id)
    ensure_roles(
        services, owner.id, Resource.INSTANCE, frozenset({INSTANCE_OWNER_ROLE}), allow_without_sign_in_method=True
    )
    return instance, InitialOwner(owner, f"{owner.user_name}@{organization.primary_domain}", password)


def ensure_service_user(services: Services, organization_id: str, user_name: str) -> ServiceUser:
    """The organization's service user of this name, created if missing. Raises Invalid if a human user has the name."""
    user = services.storage.users.find_by_name(organization_id, user_name)
    if user is None:
        command = CreateServiceUser.decode({"user_name": user_name, "display_name": user_name})
        return services.service_users.create(organization_id, command)
    if not isinstance(user, ServiceUser):
        raise Invalid({"service_user": f"{user_name} is the user name of a person."})
    return user


def ensure_key(services: Services, user: ServiceUser, existing: KeyFile | None) -> KeyFile:
    """``existing`` if it is still a live key of the user; otherwise the file of a new key."""
    if existing is not None and existing.user_id == user.id:
        stored = services.storage.credentials.find(ServiceUserKey, existing.key_id, user.id)
        if stored is not None and stored.is_live(services.now):
            return existing
    return services.service_users.add_key(user.id, AddServiceUserKey(), principal=Principal.OPERATOR)


def ensure_roles(
    services: Services,
    user_id: str,
    resource: Resource,
    roles: frozenset[str],
    *,
    until: datetime | None = None,
    allow_without_sign_in_method: bool = False,
) -> Manager:
    """Make the user a manager of the resource with at least these roles, all with this end. Raises Invalid for unknown
    roles, and for a user who could not sign in with them and is not being recovered."""
    manager = next(
        (manager for manager in services.storage.managers.list_for_user(user_id) if manager.resource == resource.key),
        None,
    )
    if manager is not None and manager.has_ended(services.now):
        services.managers.remove(manager.id, principal=Principal.OPERATOR)
        manager = None
    if manager is None:
        added = AddManager.decode({"user_id": user_id, "roles": roles, "until": until})
        return services.managers.add(
            resource, added, principal=Principal.OPERATOR, allow_without_sign_in_method=allow_without_sign_in_method
        )
    if roles <= manager.roles and manager.until == until:
        return manager
    command = ChangeManager(roles=manager.roles | roles, until=until)
    return services.managers.change(manager.id, command, principal=Principal.OPERATOR)


def resolve_role_resource(services: Services, role: str, organization_id: str) -> Resource:
    """The resource of the CLI's ``--role``: the instance, or the organization. Raises Invalid."""
    known = services.managers.get_role(role)
    if known.level is ManagerLevel.INSTANCE:
        return Resource.INSTANCE
    if known.level is ManagerLevel.ORGANIZATION:
        return Resource.of_organization(organization_id)
    raise Invalid({"role": f"{role} is held at a project. Give it with `identity add-manager --project ID`."})


def ensure_introspection_client(
    services: Services, instance: Instance, existing: str | None
) -> tuple[Application, str | None]:
    """The API application of the own project, and its secret if this call created one. ``existing`` is the client id of
    the operator's credentials; a secret is created if it is not this application's."""
    rows = iterate_rows(lambda request: services.storage.applications.page(instance.project_id, request))
    application = next(
        (application for application in rows if application.name == INTROSPECTION_APPLICATION_NAME), None
    )
    if application is None:
        command = RegisterApplication.decode({"name": INTROSPECTION_APPLICATION_NAME, "type": ApplicationType.API})
        return services.applications.register_with_secret(instance.project_id, command, principal=Principal.OPERATOR)
    if existing == application.id:
        return application, None
    return application, services.applications.replace_oldest_secret(application.id, principal=Principal.OPERATOR)

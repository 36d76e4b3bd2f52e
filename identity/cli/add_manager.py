"""identity add-manager: grant manager roles."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING

from identity.cli.command_context import CommandError, add_ini_arguments, open_application
from identity.domain.names import full_login_name
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.domain.managers import Manager
    from identity.domain.permissions import Resource
    from identity.domain.users import Subject
    from identity.services.container import Services

_LEVEL_HINTS = {
    "instance": "the instance: leave --organization, --project and --project-grant out",
    "organization": "an organization: add --organization ID or DOMAIN",
    "project": "a project: add --project ID",
    "project_grant": "a project grant: add --project-grant ID",
}


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--user", metavar="USER", required=True, help="a user's or service user's login name or id")
    parser.add_argument(
        "--role", metavar="ROLE", required=True, action="append", help="for example ORG_OWNER; may be repeated"
    )
    parser.add_argument(
        "--until",
        metavar="DATE",
        type=_end,
        help="the last day on which the roles count, in UTC, for example 2027-12-31; without it they have no end, and"
        " neither have those that the user already holds there",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--organization", metavar="ID|DOMAIN", help="the organization, for organization roles")
    where.add_argument("--project", metavar="ID", help="the project, for project roles")
    where.add_argument("--project-grant", metavar="ID", help="the project grant, for project grant roles")


def _end(text: str) -> datetime:
    """The end of the day. Raises ArgumentTypeError."""
    try:
        return datetime.combine(date.fromisoformat(text), time(23, 59, 59), UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date such as 2027-12-31") from None


def run(arguments: Namespace) -> int:
    """Add the roles to those that the user already holds there."""
    with open_application(arguments) as identity, identity.transaction() as services:
        resource = _find_resource(services, arguments)
        subject = find_user(services, arguments.user, resource.organization_id)
        manager = assign_manager_roles(services, subject, resource, frozenset(arguments.role), until=arguments.until)
    where = "the instance" if resource.organization_id is None else f"the {resource.key.level} {resource.key.id}"
    end = "" if arguments.until is None else f" until the end of {arguments.until:%Y-%m-%d}"
    print(f"{subject.login_name} ({subject.user.id}) holds {', '.join(sorted(manager.roles))} at {where}{end}.")
    return 0


def find_user(services: "Services", name: str, organization_id: str | None = None) -> "Subject":
    """The user or service user with this login name or id; a bare name belongs to the organization, by default the
    instance's. Raises CommandError.
    """
    users, domain = services.storage.users, _primary_domain(services, organization_id)
    subject = users.find_by_login_name(full_login_name(name, domain)) or users.find_subject(name)
    if subject is None:
        raise CommandError(f"There is no user {name}. Give a login name such as admin@{domain}, or an id.")
    return subject


def assign_manager_roles(
    services: "Services",
    subject: "Subject",
    resource: "Resource",
    roles: frozenset[str],
    *,
    until: datetime | None = None,
    is_recovery: bool = False,
) -> "Manager":
    """The manager entry with at least these roles. Raises CommandError if a role belongs to another level; Invalid."""
    from identity.services import instance_bootstrap

    for role in sorted(roles):
        level = services.managers.get_role(role).level
        if level is not resource.key.level:
            raise CommandError(f"{role} is held at {_LEVEL_HINTS[level]}.")
    if until is not None:
        for manager in services.storage.managers.list_effective(subject.user.id, services.now):
            if manager.resource == resource.key and (manager.until is None or manager.until > until):
                raise CommandError(
                    f"{subject.login_name} already holds roles there that end later or have no end. All roles of a user"
                    " in one place end together: leave --until out, or change the end in the console."
                )
    return instance_bootstrap.ensure_roles(
        services, subject.user.id, resource, roles, until=until, allow_without_sign_in_method=is_recovery
    )


def _find_resource(services: "Services", arguments: Namespace) -> "Resource":
    from identity.domain.permissions import INSTANCE_KEY, ManagerLevel, ResourceKey

    if arguments.organization is not None:
        organization = services.storage.organizations.find_by_domain(arguments.organization)
        key = ResourceKey(
            ManagerLevel.ORGANIZATION, arguments.organization if organization is None else organization.id
        )
    elif arguments.project is not None:
        key = ResourceKey(ManagerLevel.PROJECT, arguments.project)
    elif arguments.project_grant is not None:
        key = ResourceKey(ManagerLevel.PROJECT_GRANT, arguments.project_grant)
    else:
        key = INSTANCE_KEY
    return services.access_control.get_resource(key)


def _primary_domain(services: "Services", organization_id: str | None) -> str:
    instance = services.storage.organizations.find_instance()
    organization_id = organization_id or (None if instance is None else instance.organization_id)
    organization = None if organization_id is None else services.storage.organizations.find(organization_id)
    return "example.com" if organization is None else organization.primary_domain


COMMAND = CliCommand("add-manager", "grant manager roles to a user or service user", add_arguments, run)

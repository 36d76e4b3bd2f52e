"""identity revoke-access: end all sessions and tokens of an account, an application or an organization."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from identity.cli.add_manager import find_user
from identity.cli.command_context import (
    add_ini_arguments,
    find_organization,
    open_application,
    print_field,
)
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.domain.access_revocations import RevokedAccess
    from identity.services.container import Services


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--user", metavar="ID|LOGIN_NAME", help="a user or service user")
    target.add_argument("--application", metavar="ID", help="an application, by its client id")
    target.add_argument("--organization", metavar="ID|DOMAIN", help="the users and applications of an organization")


def run(arguments: Namespace) -> int:
    """Passwords, keys and secrets stay valid: deactivate what must not get in again."""
    with open_application(arguments) as identity, identity.transaction() as services:
        revoked = _revoke(services, arguments)
    print_field("sessions", f"{revoked.sessions} ended")
    print_field("tokens", f"{revoked.tokens} revoked")
    return 0


def _revoke(services: "Services", arguments: Namespace) -> "RevokedAccess":
    from identity.domain.users import HumanUser
    from identity.services.access_control import Principal

    revocations, operator = services.access_revocations, Principal.OPERATOR
    if arguments.application:
        return revocations.revoke_application(arguments.application, principal=operator)
    if arguments.organization:
        organization = find_organization(services, arguments.organization)
        return revocations.revoke_organization(organization.id, principal=operator)
    user = find_user(services, arguments.user).user
    revoke = revocations.revoke_user if isinstance(user, HumanUser) else revocations.revoke_service_user
    return revoke(user.id, principal=operator)


COMMAND = CliCommand("revoke-access", "end all sessions and tokens of an account or application", add_arguments, run)

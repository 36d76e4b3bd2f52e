"""identity registration: allow or forbid self-registration in an organization."""

from argparse import ArgumentParser, Namespace

from identity.cli.command_context import add_ini_arguments, find_organization, open_application
from identity.extension_points import CliCommand


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--organization", metavar="ID|DOMAIN", required=True, help="the organization")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--on", dest="registration", action="store_true", help="allow registration")
    choice.add_argument("--off", dest="registration", action="store_false", help="forbid registration")


def run(arguments: Namespace) -> int:
    with open_application(arguments) as identity:
        from identity.services.commands.organizations import ChangeOrganization

        with identity.transaction() as services:
            found = find_organization(services, arguments.organization)
            command = ChangeOrganization.build(registration=arguments.registration)
            organization = services.organizations.change(found.id, command)
            kept_closed = organization.registration and not services.registration.is_open(organization)
    may = "may" if organization.registration else "may not"
    print(f"People {may} register with {organization.name} ({organization.primary_domain}).")
    if kept_closed:
        print("Registration is closed for now: check its sign-in policy, the mail settings, and whether it is active.")
    return 0


COMMAND = CliCommand("registration", "allow or forbid self-registration in an organization", add_arguments, run)

"""identity password-link: create a link with which a user sets a new password."""

from argparse import ArgumentParser, Namespace

from identity.cli.add_manager import find_user
from identity.cli.command_context import CommandError, add_ini_arguments, open_application, print_field
from identity.extension_points import CliCommand


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--user", metavar="LOGIN_NAME", required=True, help="the user's login name or id")


def run(arguments: Namespace) -> int:
    """Print a new link once; earlier links stop working. Password, sessions and tokens stay until it is used."""
    with open_application(arguments) as identity:
        from identity.domain.users import HumanUser

        with identity.transaction() as services:
            subject = find_user(services, arguments.user)
            if not isinstance(subject.user, HumanUser):
                raise CommandError(f"{subject.login_name} is a service user. Name a person.")
            if not subject.is_active:
                raise CommandError(f"{subject.login_name} is deactivated, so nobody could sign in with a new password.")
            ends_at = services.now + services.passwords.reset_link_lifetime(subject.user.id)
            link = services.passwords.issue_reset_link(subject.user.id)
    print_field("user", subject.login_name)
    print_field("link", f"{link}   (works once; shown only now)")
    print_field("until", f"{ends_at:%Y-%m-%d %H:%M} UTC")
    return 0


COMMAND = CliCommand("password-link", "print a link with which a user sets a new password", add_arguments, run)

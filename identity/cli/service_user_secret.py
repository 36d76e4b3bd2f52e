"""identity service-user-secret: manage secrets of programs that cannot sign assertions."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from identity.cli.add_manager import find_user
from identity.cli.command_context import CommandError, add_ini_arguments, open_application, print_field
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.domain.service_user_secrets import ServiceUserSecret


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--user", metavar="LOGIN_NAME", required=True, help="the service user's login name or id")
    parser.add_argument(
        "--remove", metavar="ID", help="revoke the secret with this id and its tokens instead of creating one"
    )


def run(arguments: Namespace) -> int:
    """Print a new secret once, beside the current one; or revoke one."""
    with open_application(arguments) as identity:
        from identity.domain.applications import MAX_LIVE_SECRETS
        from identity.domain.users import ServiceUser
        from identity.services.access_control import Principal

        with identity.transaction() as services:
            subject = find_user(services, arguments.user)
            if not isinstance(subject.user, ServiceUser):
                raise CommandError(f"{subject.login_name} is a person. Name a service user.")
            user_id, service_users = subject.user.id, services.service_users
            if arguments.remove is not None:
                service_users.remove_secret(user_id, arguments.remove, principal=Principal.OPERATOR)
            else:
                live = service_users.list_secrets(user_id)
                if len(live) >= MAX_LIVE_SECRETS:
                    raise CommandError(f"Two secrets are live: {_secret_list(live)}. End one with --remove ID.")
                _, secret = service_users.add_secret(user_id, principal=Principal.OPERATOR)
            live = service_users.list_secrets(user_id)
    print_field("user", subject.login_name)
    print_field("client id", user_id)
    if arguments.remove is None:
        print_field("secret", f"{secret}   (shown only now)")
    print_field("live secrets", _secret_list(live) or "none")
    return 0


def _secret_list(secrets: "Sequence[ServiceUserSecret]") -> str:
    """Ids and creation times, oldest first."""
    return ", ".join(f"{secret.id} ({secret.created_at:%Y-%m-%d %H:%M} UTC)" for secret in secrets)


COMMAND = CliCommand("service-user-secret", "create a secret for a service user, or revoke one", add_arguments, run)

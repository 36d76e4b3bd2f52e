"""identity bootstrap: create the instance, its first owner and first credentials; safe to repeat."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identity.cli.command_context import add_ini_arguments, open_application, print_field
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.bootstrap import BootstrapResult


class _OptionRules:
    """Options that require other options."""

    def __init__(self, parser: ArgumentParser) -> None:
        self._parser = parser

    def check(self, arguments: Namespace) -> None:
        """Exit with status 2 if an option lacks the one that it requires."""
        for option in ("role", "key_out"):
            if getattr(arguments, option) is not None and arguments.service_user is None:
                self._parser.error(f"--{option.replace('_', '-')} needs --service-user NAME")


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument(
        "--owner-email", metavar="ADDRESS", default="", help="the first owner's email address; it counts as verified"
    )
    parser.add_argument(
        "--service-user", metavar="NAME", help="also create this service user in the instance's organization"
    )
    parser.add_argument("--role", metavar="ROLE", help="grant it this manager role, for example IAM_OWNER")
    parser.add_argument("--key-out", metavar="FILE", type=Path, help="write its key file there, mode 0600")
    parser.add_argument(
        "--client-out",
        metavar="FILE",
        type=Path,
        help="write id and secret of a client that may introspect tokens to this file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(usage=_OptionRules(parser))


def run(arguments: Namespace) -> int:
    """Create what is missing, all or nothing, and print what exists. Passwords and files are created once."""
    arguments.usage.check(arguments)
    with open_application(arguments, create_missing_key=True) as identity:
        from identity import bootstrap

        if identity.settings.development:
            identity.backend.migrate()
        outcome = bootstrap.run_bootstrap(
            identity,
            user_name=arguments.service_user,
            role=arguments.role,
            key_out=arguments.key_out,
            client_out=arguments.client_out,
            owner_email=arguments.owner_email,
        )
    if arguments.json:
        print(json.dumps(_json_members(outcome, arguments.role), indent=2))
    else:
        _print_result(outcome, arguments.role)
    return 0


def _json_members(outcome: "BootstrapResult", role: str | None) -> dict[str, Any]:
    owner, user = outcome.owner, outcome.service_user
    return {
        "organization_id": outcome.organization_id,
        "project_id": outcome.project_id,
        "owner": None if owner is None else {"login_name": owner.login_name, "password": owner.password},
        "service_user": None if user is None else {"id": user.id, "user_name": user.user_name, "role": role},
        "key_file": _existing_file(outcome, outcome.key_file),
        "client_file": _existing_file(outcome, outcome.client_file),
    }


def _existing_file(outcome: "BootstrapResult", path: Path | None) -> dict[str, Any] | None:
    return None if path is None else {"path": str(path), "written": path in outcome.written_paths}


def _print_result(outcome: "BootstrapResult", role: str | None) -> None:
    print_field("organization", outcome.organization_id)
    print_field("own project", outcome.project_id)
    if outcome.owner is None:
        print_field("first owner", "there already")
    else:
        print_field("first owner", outcome.owner.login_name)
        print_field("password", f"{outcome.owner.password}   (one-time; shown only now)")
    if outcome.service_user is not None:
        user = outcome.service_user
        print_field("service user", f"{user.user_name} ({user.id}){'' if role is None else f', {role}'}")
    for label, path in (("key file", outcome.key_file), ("client file", outcome.client_file)):
        if path is not None:
            print_field(label, f"{path}   ({'written' if path in outcome.written_paths else 'in place'})")


COMMAND = CliCommand(
    "bootstrap", "create the instance, its first owner, a service user and its key", add_arguments, run
)

"""identity import-users: import people from a CSV file into an organization."""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from identity.cli.add_manager import find_user
from identity.cli.command_context import add_ini_arguments, find_organization, open_application, open_document
from identity.cli.progress import ProgressReporter
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.services.user_imports import UserImport

_POLL_SECONDS = 0.2


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("-f", "--file", metavar="FILE", required=True, help="the CSV file, as the console takes it")
    parser.add_argument("--organization", metavar="ID|DOMAIN", required=True, help="where the people are created")
    parser.add_argument(
        "--as", dest="starter", metavar="LOGIN_NAME", required=True, help="the manager whose rights the import has"
    )
    parser.add_argument("--dry-run", action="store_true", help="only check the lines")
    parser.add_argument("--invite", action="store_true", help="mail links to people whose line does not say")
    parser.add_argument("--role", metavar="PROJECT:ROLE", action="append", default=[], help="a role for everyone")
    parser.add_argument("--group", metavar="NAME", action="append", default=[], help="a group for everyone")


def run(arguments: Namespace) -> int:
    """Print the report; 1 if a line is refused. An interrupted import goes on while the service runs."""
    with (
        open_application(arguments) as identity,
        open_document(arguments.file) as file,
        ProgressReporter() as progress,
    ):
        from identity.domain.user_imports import ImportDefaults

        defaults = ImportDefaults(invite=arguments.invite, roles=tuple(arguments.role), groups=tuple(arguments.group))
        with identity.transaction() as services:
            organization = find_organization(services, arguments.organization)
            starter = find_user(services, arguments.starter, organization.id)
            started = services.user_imports.start(
                organization.id,
                file,
                principal=services.access_control.load_principal(starter),
                defaults=defaults,
                is_dry_run=arguments.dry_run,
            )
        ended = _wait(identity, started, progress)
        with identity.read_session() as services:
            sys.stdout.writelines(services.user_imports.write_report(ended))
    verb = "would be created" if arguments.dry_run else "created"
    print(f"{ended.created} {verb}, {ended.existing} exist already, {ended.refused} refused.", file=sys.stderr)
    if ended.problem:
        print(ended.problem, file=sys.stderr)
    return 1 if ended.refused or ended.problem else 0


def _wait(identity: "IdentityApplication", started: "UserImport", progress: ProgressReporter) -> "UserImport":
    """The import when nothing is left to do. A thread of this process works on it, or another process of the
    service."""
    while True:
        with identity.read_session() as services:
            found = services.user_imports.get(started.id, started.organization_id)
        if not found.is_pending:
            return found
        progress.report(f"{found.position:,} of {found.line_count:,} lines")
        time.sleep(_POLL_SECONDS)


COMMAND = CliCommand("import-users", "import people from a CSV file into an organization", add_arguments, run)

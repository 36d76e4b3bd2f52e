"""identity migrate: upgrade the storage's schema to this version."""

from argparse import ArgumentParser, Namespace

from identity.cli.command_context import add_ini_arguments, open_application
from identity.extension_points import CliCommand


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only show the statements that would run, and which nodes can keep running",
    )


def run(arguments: Namespace) -> int:
    with open_application(arguments) as identity:
        lines = identity.backend.migrate(dry_run=arguments.dry_run)
        plan = identity.backend.migration_sql() if arguments.dry_run and lines else ()
    for line in lines:
        print(f"{'would apply' if arguments.dry_run else 'applied'}  {line}")
    for line in plan:
        print(line)
    if not lines:
        print("The schema is up to date.")
    return 0


COMMAND = CliCommand("migrate", "create the storage's schema, or upgrade it to this version", add_arguments, run)

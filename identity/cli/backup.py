"""identity backup: write everything in the storage to one file."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from identity import __version__
from identity.cli.command_context import add_ini_arguments, open_application
from identity.cli.output_file import open_output_file
from identity.cli.progress import ProgressReporter
from identity.extension_points import CliCommand
from identity.storage.errors import StorageError

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.services.backups import BackupManifest


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="a new file, mode 0600")


def run(arguments: Namespace) -> int:
    """Write everything committed so far, while the service runs; then record an audit event."""
    with open_application(arguments) as identity:
        with open_output_file(arguments.output) as file, ProgressReporter() as progress:
            from identity.services.backups import write_backup

            with identity.backend.dump() as dump:
                manifest = write_backup(
                    file,
                    dump,
                    identity.process_state.sealer,
                    created_at=identity.clock(),
                    program_version=__version__,
                    progress=lambda more: progress.add(more, "{:,} rows written"),
                )
        _record_audit_event(identity, manifest)
    keys = ", ".join(identity.process_state.sealer.ids)
    print(f"{manifest.rows:,} rows of {len(manifest.tables)} tables are in {arguments.output}.")
    print(f"A restore needs the master keys {keys}, which are not in it. Keep them somewhere else.")
    return 0


def _record_audit_event(identity: "IdentityApplication", manifest: "BackupManifest") -> None:
    # The backup is good without the event: the schema may be outdated or the database read-only.
    try:
        with identity.transaction() as services:
            manifest.record_event(services.audit, "backup.made")
    except StorageError as problem:
        print(f"No audit event tells of it. {' '.join(str(problem).split())}", file=sys.stderr)


COMMAND = CliCommand("backup", "write everything to one file while the service runs", add_arguments, run)

"""identity backup: everything that the storage holds in one file."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from identity import __version__
from identity.cli.new_file import new_file
from identity.cli.program import add_ini_arguments, opened
from identity.cli.progress import Progress
from identity.operations import Command
from identity.storage.errors import StorageError

if TYPE_CHECKING:
    from identity.process import Identity
    from identity.services.backups import Manifest


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --output."""
    add_ini_arguments(parser)
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="a new file, mode 0600")


def run(arguments: Namespace) -> int:
    """Write what is committed now, while requests go on; then tell the audit trail."""
    with opened(arguments) as identity:
        with new_file(arguments.output) as file, Progress() as progress:
            from identity.services.backups import write_backup

            with identity.backend.dump() as dump:
                manifest = write_backup(
                    file,
                    dump,
                    identity.process.sealer,
                    at=identity.clock(),
                    by=__version__,
                    say=lambda more: progress.add(more, "{:,} rows written"),
                )
        _tell(identity, manifest)
    keys = ", ".join(identity.process.sealer.ids)
    print(f"{manifest.rows:,} rows of {len(manifest.tables)} tables are in {arguments.output}.")
    print(f"A restore needs the master keys {keys}, which are not in it. Keep them somewhere else.")
    return 0


def _tell(identity: "Identity", manifest: "Manifest") -> None:
    # A backup is good without it: the schema may be about to be migrated, the database one that is only read.
    try:
        with identity.transaction() as services:
            manifest.record(services.audit, "backup.made")
    except StorageError as problem:
        print(f"No audit event tells of it. {' '.join(str(problem).split())}", file=sys.stderr)


COMMAND = Command("backup", "write everything into one file, while the service runs", add_arguments, run)

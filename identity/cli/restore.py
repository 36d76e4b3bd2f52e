"""identity restore: restore a backup into an empty database."""

from argparse import ArgumentParser, Namespace
from contextlib import closing
from pathlib import Path

from identity.cli.command_context import add_ini_arguments, open_application
from identity.cli.progress import ProgressReporter
from identity.extension_points import CliCommand


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("-f", "--file", metavar="FILE", type=Path, required=True, help="the backup")
    parser.add_argument("--check", action="store_true", help="only verify that the backup is complete")


def run(arguments: Namespace) -> int:
    """Read and check the whole file before anything is written; then write it in one transaction and record an audit
    event.
    """
    with open_application(arguments) as identity, ProgressReporter() as progress:
        from identity.services.backups import BackupReader

        with closing(BackupReader(arguments.file, identity.process_state.sealer)) as backup:
            manifest = backup.manifest
            backup.verify(lambda more: progress.add(more, "{:,} rows checked"))
            if not arguments.check:
                with ProgressReporter() as writing:
                    identity.backend.restore(backup.read_dump(lambda more: writing.add(more, "{:,} rows restored")))
                with identity.transaction() as services:
                    manifest.record_event(services.audit, "backup.restored")
    done = "would be restored" if arguments.check else "were restored"
    print(f"{manifest.rows:,} rows of {len(manifest.tables)} tables {done}, as of {manifest.made_at}.")
    if not arguments.check:
        print("What was revoked or removed after that moment is live again: see the page on backups.")
    return 0


COMMAND = CliCommand("restore", "restore a backup into an empty database of any kind", add_arguments, run)

"""identity backup: everything that the storage holds in one file."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from identity import __version__
from identity.cli.new_file import new_file
from identity.cli.program import add_ini_arguments, opened
from identity.cli.progress import Progress
from identity.operations import Command


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --output."""
    add_ini_arguments(parser)
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="a new file, mode 0600")


def run(arguments: Namespace) -> int:
    """Write what is committed now, while requests go on."""
    with opened(arguments) as identity, new_file(arguments.output) as file, Progress() as progress:
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
    keys = ", ".join(identity.process.sealer.ids)
    print(f"{manifest.rows:,} rows of {len(manifest.tables)} tables are in {arguments.output}.")
    print(f"A restore needs the master keys {keys}, which are not in it. Keep them somewhere else.")
    return 0


COMMAND = Command("backup", "write everything into one file, while the service runs", add_arguments, run)

"""identity master-key: create a file with a new master key."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from identity.cli.command_context import CommandError
from identity.extension_points import CliCommand


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="the new file, mode 0600; never overwritten")


def run(arguments: Namespace) -> int:
    from identity.crypto.sealing import create_master_key_file

    path: Path = arguments.file
    if not path.parent.is_dir():
        raise CommandError(f"There is no folder {path.parent}.")
    try:
        create_master_key_file(path)
    except FileExistsError:
        raise CommandError(f"{path} exists already and is left alone.") from None
    except OSError as problem:
        raise CommandError(f"{path} cannot be written: {problem.strerror}") from None
    print(f"{path} holds a new master key; only you can read it. Name it in the ini file:")
    print(f"  identity.master_keys = 1:{path.absolute()}")
    print("Keep a copy, but not beside the database's backups: without it, what is sealed there cannot be opened.")
    return 0


COMMAND = CliCommand("master-key", "create a file with a new master key", add_arguments, run)

"""identity export: an organization as one document."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING

from identity.cli.new_file import new_file
from identity.cli.program import Failed, add_ini_arguments, opened
from identity.cli.progress import Progress
from identity.operations import Command

if TYPE_CHECKING:
    from identity.process import Identity


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --organization, --output."""
    add_ini_arguments(parser)
    parser.add_argument("--organization", metavar="ID|DOMAIN", required=True, help="the organization")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="a new file, mode 0600; without it the document is printed"
    )


def run(arguments: Namespace) -> int:
    """Write the document while it is read; a file is there when it is whole."""
    with opened(arguments) as identity, _output(arguments.output) as file, Progress() as progress:
        for piece in _document(identity, arguments.organization):
            file.write(piece)
            progress.add(len(piece), "{:,} characters written")
        file.write("\n")
    return 0


def _document(identity: "Identity", name: str) -> Iterator[str]:
    from identity.services.access import THE_OPERATOR
    from identity.services.transfer import Transfer

    with identity.transaction() as services:
        organizations = services.storage.organizations
        found = organizations.find_by_domain(name) or organizations.find(name)
        if found is None:
            raise Failed(f"There is no organization {name}. Give its id or its primary domain.")
        Transfer(services).begin_export(found.id, by=THE_OPERATOR)
    with identity.snapshot() as services:
        yield from Transfer(services).document(found.id, by=THE_OPERATOR)


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    """Where the document goes. Nothing is left of a file that did not become whole. Raises Failed."""
    if path is None:
        yield sys.stdout
        return
    with new_file(path) as binary:
        text = TextIOWrapper(binary, encoding="utf-8")
        yield text
        text.detach()


COMMAND = Command("export", "write an organization with all that is in it as one document", add_arguments, run)

"""identity export: write an organization as one document."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING

from identity.cli.command_context import add_ini_arguments, find_organization, open_application
from identity.cli.output_file import open_output_file
from identity.cli.progress import ProgressReporter
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--organization", metavar="ID|DOMAIN", required=True, help="the organization")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="a new file, mode 0600; without it the document is printed"
    )


def run(arguments: Namespace) -> int:
    """Stream the document; a file appears only when it is complete."""
    with (
        open_application(arguments) as identity,
        _open_output(arguments.output) as file,
        ProgressReporter() as progress,
    ):
        for piece in _export_document(identity, arguments.organization):
            file.write(piece)
            progress.add(len(piece), "{:,} characters written")
        file.write("\n")
    return 0


def _export_document(identity: "IdentityApplication", name: str) -> Iterator[str]:
    from identity.services.access_control import Principal
    from identity.services.organization_transfer import OrganizationTransfer

    with identity.transaction() as services:
        organization = find_organization(services, name)
        OrganizationTransfer(services).begin_export(organization.id, principal=Principal.OPERATOR)
    with identity.snapshot() as services:
        yield from OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR)


@contextmanager
def _open_output(path: Path | None) -> Iterator[IO[str]]:
    """The output stream. An incomplete file is removed. Raises CommandError."""
    if path is None:
        yield sys.stdout
        return
    with open_output_file(path) as binary:
        text = TextIOWrapper(binary, encoding="utf-8")
        yield text
        text.detach()


COMMAND = CliCommand("export", "write an organization and everything in it as one document", add_arguments, run)

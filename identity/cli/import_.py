"""identity import: create an organization from a document."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING

from identity.cli.command_context import CommandError, add_ini_arguments, open_application, open_document
from identity.cli.progress import ProgressReporter
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.services.commands.desired_state import OrganizationDocument
    from identity.services.organization_transfer import StreamedOrganizationImport

#: Up to this size the document is read again to find the line numbers of errors.
_MAX_LOCATED_BYTES = 32 * 2**20


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("-f", "--file", metavar="FILE", type=Path, required=True, help="the document")
    ids = parser.add_mutually_exclusive_group()
    ids.add_argument(
        "--keep-ids",
        dest="keep_ids",
        action="store_true",
        default=None,
        help="keep the ids of the document; the default if it comes from this instance",
    )
    ids.add_argument("--new-ids", dest="keep_ids", action="store_false", help="assign new ids, as for a copy")


def run(arguments: Namespace) -> int:
    """Read and check all of it, then create the organization in one transaction."""
    with (
        open_application(arguments) as identity,
        open_document(arguments.file) as file,
        ProgressReporter() as progress,
    ):
        from identity.domain.errors import Invalid
        from identity.http.error_views import MalformedRequest
        from identity.services.organization_transfer import StreamedOrganizationImport

        try:
            with StreamedOrganizationImport() as incoming:
                _import_organization(
                    identity, incoming, _read_document(incoming, file, progress), arguments.keep_ids, progress
                )
        except MalformedRequest as problem:
            raise CommandError(f"{arguments.file}: {problem}") from None
        except Invalid as problem:
            lines = _line_numbers(arguments.file, problem.fields)
            for path, sentence in problem.fields.items():
                print(f"{path}{lines.get(path, '')}: {sentence}", file=sys.stderr)
            raise CommandError(f"{arguments.file} was not imported; nothing is changed.") from None
    return 0


def _line_numbers(path: Path, paths: Collection[str]) -> dict[str, str]:
    """The line of each path, or of the object that lacks it; empty for large documents, where that takes too long."""
    from identity.cli.json_line_numbers import find_line_numbers

    try:
        if path.stat().st_size > _MAX_LOCATED_BYTES:
            return {}
        return {path_: f" (line {line})" for path_, line in find_line_numbers(path.read_text("utf-8"), paths).items()}
    except (OSError, UnicodeError):
        return {}


def _read_document(
    incoming: "StreamedOrganizationImport", file: IO[bytes], progress: ProgressReporter
) -> "OrganizationDocument":
    from identity.http.json_stream import parse_json_stream

    size = file.seek(0, 2)
    values = parse_json_stream(
        file, incoming.list_consumers, lambda read: progress.report(f"{read * 100 // size} % read")
    )
    return incoming.document(values)


def _import_organization(
    identity: "IdentityApplication",
    incoming: "StreamedOrganizationImport",
    document: "OrganizationDocument",
    keep_ids: bool | None,
    progress: ProgressReporter,
) -> None:
    from identity.services.access_control import Principal
    from identity.services.organization_transfer import OrganizationTransfer

    template = f"{{:,}} of {incoming.user_count:,} users written"
    with identity.transaction() as services:
        organization = OrganizationTransfer(services).import_document(
            document,
            principal=Principal.OPERATOR,
            keep_ids=keep_ids,
            progress=lambda more: progress.add(more, template),
        )
    print(f"{organization.name} ({organization.primary_domain}) is there, with the id {organization.id}.")


COMMAND = CliCommand("import", "create an organization from an exported document", add_arguments, run)

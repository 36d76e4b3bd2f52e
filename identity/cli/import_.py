"""identity import: a new organization of a document."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING

from identity.cli.program import Failed, add_ini_arguments, opened
from identity.cli.progress import Progress
from identity.operations import Command

if TYPE_CHECKING:
    from identity.process import Identity
    from identity.services.commands.descriptions import OrganizationDocument
    from identity.services.transfer import Incoming

#: So many bytes are read once more for the lines of what is wrong.
_LARGE = 32 * 2**20


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --file, --keep-ids or --new-ids."""
    add_ini_arguments(parser)
    parser.add_argument("-f", "--file", metavar="FILE", type=Path, required=True, help="the document")
    ids = parser.add_mutually_exclusive_group()
    ids.add_argument(
        "--keep-ids",
        dest="keep_ids",
        action="store_true",
        default=None,
        help="with the ids of the document; said by itself if it comes from this very instance",
    )
    ids.add_argument("--new-ids", dest="keep_ids", action="store_false", help="with new ids, as for a copy")


def run(arguments: Namespace) -> int:
    """Read and check all of it, then make the organization in one transaction."""
    with opened(arguments) as identity, _opened(arguments.file) as file, Progress() as progress:
        from identity.domain.errors import Invalid
        from identity.http.errors import Malformed
        from identity.services.transfer import Incoming

        try:
            with Incoming() as incoming:
                _import(identity, incoming, _read(incoming, file, progress), arguments.keep_ids, progress)
        except Malformed as problem:
            raise Failed(f"{arguments.file}: {problem}") from None
        except Invalid as problem:
            lines = _lines(arguments.file, problem.fields)
            for path, sentence in problem.fields.items():
                print(f"{path}{lines.get(path, '')}: {sentence}", file=sys.stderr)
            raise Failed(f"{arguments.file} was not imported; nothing is changed.") from None
    return 0


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise Failed(f"There is no file {path}.") from None
    except OSError as problem:
        raise Failed(f"{path} cannot be read: {problem.strerror}.") from None


def _lines(path: Path, places: Collection[str]) -> dict[str, str]:
    """Where in the file each place is, or what lacks it; of a large document nothing, as that would take too long."""
    from identity.cli.json_lines import lines_of

    try:
        if path.stat().st_size > _LARGE:
            return {}
        return {place: f" (line {line})" for place, line in lines_of(path.read_text("utf-8"), places).items()}
    except (OSError, UnicodeError):
        return {}


def _read(incoming: "Incoming", file: IO[bytes], progress: Progress) -> "OrganizationDocument":
    from identity.http.json_stream import read_stream

    size = file.seek(0, 2)
    values = read_stream(file, incoming.takers, lambda read: progress.say(f"{read * 100 // size} % read"))
    return incoming.document(values)


def _import(
    identity: "Identity",
    incoming: "Incoming",
    document: "OrganizationDocument",
    keep_ids: bool | None,
    progress: Progress,
) -> None:
    from identity.services.access import THE_OPERATOR
    from identity.services.transfer import Transfer

    words = f"{{:,}} of {incoming.people:,} users written"
    with identity.transaction() as services:
        organization = Transfer(services).import_(
            document, by=THE_OPERATOR, keep_ids=keep_ids, progress=lambda more: progress.add(more, words)
        )
    print(f"{organization.name} ({organization.primary_domain}) is there, with the id {organization.id}.")


COMMAND = Command("import", "make a new organization of an exported document, or nothing", add_arguments, run)

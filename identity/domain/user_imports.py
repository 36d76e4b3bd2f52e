"""CSV files of people: reading them line by line, and writing cells that spreadsheets do not run as formulas."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key

MAX_IMPORTED_PEOPLE = 100_000
#: Maximum size of a line's values.
MAX_LINE_LENGTH = 8 * 1024
_MAX_HEADER_LENGTH = 16 * 1024

_REQUIRED = ("user_name", "given_name", "family_name")
IMPORT_COLUMNS = (
    *_REQUIRED,
    *("email", "phone", "preferred_language", "roles", "groups", "password_hash", "invite"),
)
ATTRIBUTE_COLUMN_PREFIX = "attribute."
_ALIASES = {"username": "user_name", "login": "user_name", "locale": "preferred_language", "e_mail": "email"}
_DELIMITERS = ",;\t"
#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class UserImportState(StrEnum):
    """CHECKING reads every line without changing anything; CHECKED waits for its starter."""

    CHECKING = "checking"
    CHECKED = "checked"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportDefaults:
    """What the lines of a file get besides their own values. A column ``invite`` wins over ``invite``; ``roles`` and
    ``groups`` are added to those of the line."""

    invite: bool = False
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def apply(self, values: Mapping[str, str]) -> Mapping[str, str]:
        """The values of a line with the defaults."""
        added = {"roles": "|".join(self.roles), "groups": "|".join(self.groups)}
        joined = {name: "|".join(filter(None, (values.get(name), text))) for name, text in added.items() if text}
        return {"invite": "yes" if self.invite else "no", **values, **joined}


class LineOutcome(StrEnum):
    """What happened to a line, or would happen."""

    CREATED = "created"
    EXISTS = "exists"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, repr=False)
class ImportLine:
    """One person of a file; ``problem`` is why the line cannot be read, if it cannot."""

    number: int
    values: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def escape_cell(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def unescape_cell(text: str) -> str:
    """The inverse of ``escape_cell``."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA_STARTS) else text


def format_csv_row(cells: Iterator[str] | list[str]) -> str:
    """A line of a CSV file (RFC 4180), with escaped cells."""
    file = io.StringIO()
    csv.writer(file).writerow([escape_cell(cell) for cell in cells])
    return file.getvalue()


def read_import_lines(file: IO[bytes]) -> Iterator[ImportLine]:
    """The lines of a CSV file in UTF-8, separated by commas, semicolons or tabs; the first names the columns in any
    order. Empty lines are skipped. Raises Invalid for ``file`` if the file as a whole cannot be read; lines before that
    have been returned by then."""
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        yield from _read_lines(text)
    except UnicodeDecodeError:
        raise _refusal(gettext_lazy("The file is not UTF-8. Save it as “CSV UTF-8”.")) from None
    finally:
        # The file belongs to the caller.
        text.detach()


def _read_lines(text: io.TextIOWrapper) -> Iterator[ImportLine]:
    header = text.readline(_MAX_HEADER_LENGTH)
    delimiter = max(_DELIMITERS, key=header.count)
    columns = _read_header(header, delimiter)
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    first_lines: dict[str, int] = {}
    number = 2
    while True:
        try:
            cells = next(reader, None)
        except csv.Error:
            raise _refusal(
                gettext_lazy("Line {n} cannot be read: a quotation mark is missing or misplaced.", n=number)
            ) from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            line = _read_line(number, columns, cells, first_lines)
            if len(first_lines) > MAX_IMPORTED_PEOPLE:
                raise _refusal(gettext_lazy("A file can have {n} lines. Split it.", n=MAX_IMPORTED_PEOPLE))
            yield line
        number = reader.line_num + 2


def _read_header(header: str, delimiter: str) -> tuple[str, ...]:
    try:
        names = next(csv.reader([header], delimiter=delimiter, strict=True), [])
    except csv.Error:
        raise _refusal(gettext_lazy("The first line has to name the columns.")) from None
    columns = tuple(_column(name) for name in names)
    known = {*IMPORT_COLUMNS, ""}
    unknown = [name for name in columns if name not in known and not name.startswith(ATTRIBUTE_COLUMN_PREFIX)]
    missing = [name for name in _REQUIRED if name not in columns]
    named = [name for name in columns if name]
    if missing:
        raise _refusal(
            gettext_lazy(
                "The first line has to name the columns; these are missing: {names}.", names=", ".join(missing)
            )
        )
    if unknown:
        names_text = ", ".join(name[:60] for name in unknown[:5])
        raise _refusal(gettext_lazy("These columns are not known: {names}.", names=names_text))
    if len(set(named)) < len(named):
        raise _refusal(gettext_lazy("A column is there twice."))
    return columns


def _column(name: str) -> str:
    name = name.strip()
    if name.casefold().startswith(ATTRIBUTE_COLUMN_PREFIX):
        return ATTRIBUTE_COLUMN_PREFIX + name[len(ATTRIBUTE_COLUMN_PREFIX) :]
    name = name.casefold().replace(" ", "_").replace("-", "_")
    return _ALIASES.get(name, name)


def _read_line(number: int, columns: tuple[str, ...], cells: list[str], first_lines: dict[str, int]) -> ImportLine:
    values = {
        column: value
        for column, cell in zip(columns, cells, strict=False)
        if column and (value := unescape_cell(cell.strip()))
    }
    if sum(map(len, cells)) > MAX_LINE_LENGTH:
        first_lines[f"\0{number}"] = number
        short = {name: value[:100] for name, value in values.items() if name == "user_name"}
        return ImportLine(number, short, gettext_lazy("This line is too long."))
    first = first_lines.setdefault(name_key(values.get("user_name", "")) or f"\0{number}", number)
    if first != number:
        return ImportLine(number, values, gettext_lazy("Line {n} has this user name already.", n=first))
    if any("\0" in cell for cell in cells):
        return ImportLine(number, {}, gettext_lazy("This line contains characters that no text has."))
    if any(cell.strip() for cell in cells[len(columns) :]):
        return ImportLine(number, values, gettext_lazy("This line has more cells than the first."))
    return ImportLine(number, values)


def _refusal(sentence: str) -> Invalid:
    return Invalid({"file": sentence})

"""CSV files of people: notations, positions of problems, bounds, and cells that are no formulas."""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.errors import Invalid
from identity.domain.user_imports import (
    MAX_IMPORTED_PEOPLE,
    MAX_LINE_LENGTH,
    ImportLine,
    escape_cell,
    format_csv_row,
    read_import_lines,
    unescape_cell,
)

HEADER = "user_name,given_name,family_name,email\n"
CELLS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


def read(text: str | bytes) -> list[ImportLine]:
    return list(read_import_lines(io.BytesIO(text.encode() if isinstance(text, str) else text)))


def refusal(text: str | bytes) -> str:
    with pytest.raises(Invalid) as refused:
        read(text)
    [(field, sentence)] = refused.value.fields.items()
    assert field == "file"
    return sentence


@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8), delimiter=st.sampled_from(",;\t"), crlf=st.booleans())
def test_every_quoted_text_is_read_as_it_was_written(
    rows: list[tuple[str, str, str]], delimiter: str, crlf: bool
) -> None:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\r\n" if crlf else "\n")
    writer.writerow(["family_name", "USER NAME", "Given-Name", "email"])
    for number, row in enumerate(rows):
        writer.writerow([*(escape_cell(cell.strip()) for cell in row[:1]), f"u{number}", row[1], row[2]])
    lines = read(b"\xef\xbb\xbf" + file.getvalue().encode())
    assert [line.values["user_name"] for line in lines] == [f"u{number}" for number in range(len(rows))]
    assert [line.values.get("family_name", "") for line in lines] == [row[0].strip() for row in rows]


@given(st.binary(max_size=400))
def test_any_file_is_read_or_refused_with_a_sentence(content: bytes) -> None:
    with suppress(Invalid):
        assert all(line.number > 1 for line in read(content))


@given(st.text("=+-@\t\r\n'a1,\"", max_size=6))
def test_no_written_cell_is_a_formula(text: str) -> None:
    [[cell]] = list(csv.reader(io.StringIO(format_csv_row([text]), newline=""))) or [[""]]
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unescape_cell(escape_cell(text)) in (text, unescape_cell(text))


def test_line_numbers_count_lines_inside_of_quotation_marks() -> None:
    lines = read(HEADER + '\n"a","two\nlines",x,\n\nb,B,B,\n')
    assert [line.number for line in lines] == [3, 6]


def test_problems_of_single_lines() -> None:
    lines = read(HEADER + f"a,A,A,\nA,A,A,\nb\0,B,B,\nc,C,C,c@example.org,more\nd,{'x' * MAX_LINE_LENGTH},D,\ne,E\n")
    assert [bool(line.problem) for line in lines] == [False, True, True, True, True, False]
    assert "Line 2" in lines[1].problem


def test_files_that_cannot_be_read() -> None:
    assert "UTF-8" in refusal(HEADER.encode() + b"\xe4,A,A,\n")
    assert "missing: family_name" in refusal("user_name,given_name\n")
    assert "not known: surname" in refusal("user_name,given_name,family_name,surname\n")
    assert "twice" in refusal("user_name,given_name,family_name,User Name\n")
    assert "Line 2" in refusal(HEADER + 'a,"A"x,A,\n')
    refusal("")


def test_long_files_are_streamed_and_bounded() -> None:
    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self._lines: Iterator[bytes] = iter(f"u{number},G,F,\n".encode() for number in count())
            self._rest = HEADER.encode()

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            while len(self._rest) < len(buffer):
                self._rest += b"".join(islice(self._lines, 500))
            buffer[:], self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
            return len(buffer)

    lines = read_import_lines(io.BufferedReader(Endless()))  # type: ignore[type-var]
    assert sum(1 for _ in islice(lines, MAX_IMPORTED_PEOPLE)) == MAX_IMPORTED_PEOPLE
    with pytest.raises(Invalid):
        next(lines)

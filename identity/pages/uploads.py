"""Forms with file uploads (RFC 7578)."""

from typing import IO
from urllib.parse import urlencode

from multipart import MultipartError, MultipartParser, MultipartPart, parse_options_header
from pyramid.request import Request

from identity.pages.forms import Form
from identity.provider.errors import InvalidRequest

MULTIPART_TYPE = "multipart/form-data"

_MAX_PARTS = 32
_MAX_TEXT_LENGTH = 64 * 1024


def parse_multipart_form(request: Request, body: IO[bytes]) -> tuple[Form, dict[str, IO[bytes]]]:
    """The form's fields, parsed as strictly as without files, and the non-empty files by field.

    The files are closed at the end of the request. Raises InvalidRequest.
    """
    _, options = parse_options_header(request.headers.get("Content-Type", ""))
    parser = MultipartParser(
        body,
        options.get("boundary", ""),
        content_length=request.content_length or 0,
        part_limit=_MAX_PARTS,
        spool_limit=_MAX_TEXT_LENGTH,
    )
    fields: list[tuple[str, bytes]] = []
    files: dict[str, IO[bytes]] = {}
    try:
        for part in parser:
            request.add_finished_callback(lambda _, part=part: part.close())
            _collect_part(part, fields, files)
    except MultipartError as problem:
        raise InvalidRequest(f"the form cannot be read: {problem}") from None
    return Form.parse(urlencode(fields).encode()), files


def _collect_part(part: MultipartPart, fields: list[tuple[str, bytes]], files: dict[str, IO[bytes]]) -> None:
    if part.filename is None:
        if not part.is_buffered():
            raise InvalidRequest("a field is too long")
        fields.append((part.name, part.raw))
    elif part.name in files:
        raise InvalidRequest("a file is given twice")
    elif part.size and part.file is not None:
        files[part.name] = part.file

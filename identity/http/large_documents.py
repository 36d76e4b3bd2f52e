"""Documents that are too large to be built, sent or read at once."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity import password_hashing
from identity.domain.audit import Actor
from identity.http.environ_keys import UNREAD_BODY_KEY
from identity.http.error_views import BodyTooLarge
from identity.services.access_control import Principal
from identity.services.container import Services
from identity.services.organization_transfer import OrganizationTransfer

if TYPE_CHECKING:
    from identity.application import IdentityApplication

_MIB = 2**20
#: The approximate size of the chunks sent.
_CHUNK_SIZE = 64 * 1024


def organization_export_response(request: Request, organization_id: str, *, principal: Principal) -> Response:
    """The organization as a file, read while it is sent. The export is recorded and committed before the first byte. A
    later failure ends the connection early. Raises NotFound, Denied, StorageUnavailable."""
    organization = OrganizationTransfer(request.services).begin_export(organization_id, principal=principal)
    name = f"{organization.primary_domain}.json"
    return json_file_response(
        request,
        name,
        lambda services: OrganizationTransfer(services).export_document(organization_id, principal=principal),
    )


def json_file_response(request: Request, name: str, generate: Callable[[Services], Iterator[str]]) -> Response:
    """A JSON file, generated from stored data while it is sent. Commits the transaction before the first byte. A later
    failure ends the connection early. Raises whatever the first chunk raises."""
    actor = request.services.audit.actor
    request.commit()
    content = _stream_content(request.registry.application, actor, generate)
    # Errors at the start still get an error response.
    answer = Response(app_iter=_StreamedBody(next(content), content), content_type="application/json", charset=None)
    answer.content_disposition = f'attachment; filename="{name}"'
    answer.cache_control = "no-store"
    return answer


class BodyNotBuffered(Exception):
    """The view needs a body that is not read yet: it is called again with it."""


def read_uploaded_document(request: Request, *, max_bytes: int | None = None) -> IO[bytes]:
    """The body as a file, from its start; ``max_bytes`` replaces the limit of documents. Call it only in views, after
    the permission is checked. Raises BodyTooLarge, BodyNotBuffered."""
    identity: IdentityApplication = request.registry.application
    max_bytes = identity.settings.import_limit * _MIB if max_bytes is None else max_bytes
    length = request.content_length or 0
    if length > max_bytes:
        raise BodyTooLarge(f"The body is larger than {max_bytes} bytes.")
    if UNREAD_BODY_KEY in request.environ:
        request.environ[UNREAD_BODY_KEY] = max_bytes
        raise BodyNotBuffered
    stream: IO[bytes] = request.environ["wsgi.input"]
    if getattr(stream, "seekable", bool)():
        stream.seek(0)
        return stream
    copy: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the request
    request.add_finished_callback(lambda _: copy.close())
    while length and (piece := stream.read(min(length, _CHUNK_SIZE))):
        copy.write(piece)
        length -= len(piece)
    copy.seek(0)
    return copy


def body_not_buffered_view(error: BodyNotBuffered, request: Request) -> Response:
    """A placeholder that is not sent."""
    return Response(status=100)


class _StreamedBody:
    """An iterator of chunks that the server always closes."""

    def __init__(self, first: bytes, rest: Iterator[bytes]) -> None:
        self._rest = rest
        self._all = chain((first,), rest)

    def __iter__(self) -> Iterator[bytes]:
        return self._all

    def close(self) -> None:
        self._rest.close()  # type: ignore[attr-defined]


def _stream_content(
    identity: "IdentityApplication", actor: Actor, make: Callable[[Services], Iterator[str]]
) -> Iterator[bytes]:
    # Takes as long as the client reads.
    with password_hashing.acquire_document_slot(), identity.snapshot(actor) as services:
        size, found = 0, []
        for piece in make(services):
            found.append(piece.encode())
            size += len(found[-1])
            if size > _CHUNK_SIZE:
                yield b"".join(found)
                size, found = 0, []
        yield b"".join((*found, b"\n"))


def includeme(config: Configurator) -> None:
    """The view for BodyNotBuffered aborts what the view did before."""
    config.add_exception_view(body_not_buffered_view, context=BodyNotBuffered)

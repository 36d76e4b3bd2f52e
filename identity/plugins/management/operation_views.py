"""Routes and views of operations, with the rules that all requests share."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any
from urllib.parse import quote

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.audiences import AudienceScope
from identity.domain.errors import Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.names import is_printable
from identity.http.endpoint_routes import build_protocol_request
from identity.http.error_views import (
    BodyTooLarge,
    MalformedRequest,
    PreconditionFailed,
    UnsupportedMediaType,
    api_error_response,
)
from identity.http.json_stream import parse_json_stream
from identity.http.large_documents import read_uploaded_document
from identity.http.list_parameters import ListParameters
from identity.http.route_contexts import RouteContext
from identity.http.strict_json import parse_json_object
from identity.plugins.management import conditional_requests
from identity.plugins.management.json_body import decode_command, find_type_errors
from identity.plugins.management.operation import (
    CSV_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    EmptyCommand,
    Operation,
    OperationCall,
    one_time_members,
    readable_representations,
)
from identity.plugins.management.representation import Representation
from identity.provider.errors import RequestTooLarge
from identity.services.organization_transfer import StreamedOrganizationImport
from identity.storage.paging import FIRST_PAGE, ResultPage

ROUTE_NAME_PREFIX = "management."

_SEND_JSON = f"Send the body as {JSON_MEDIA_TYPE}."
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")
_PATH_VARIABLE = re.compile(r"\{(\w+)\}")
_ALREADY_CREATED_MESSAGE = (
    "This was made already, and what it showed is shown once. If that was lost, ask again with another Idempotency-Key."
)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response that can be stored and replayed."""

    status: int
    body: str = ""
    tag: str | None = None
    location: str | None = None

    def __repr__(self) -> str:
        return f"ApiResponse(status={self.status!r})"

    def to_bytes(self) -> bytes:
        """Everything but the status."""
        return json.dumps([self.body, self.tag, self.location]).encode()

    @classmethod
    def from_bytes(cls, status: int, stored: bytes) -> "ApiResponse":
        """The inverse of ``to_bytes``."""
        body, tag, location = json.loads(stored)
        return cls(status, body, tag, location)

    def to_response(self) -> Response:
        headers = {"ETag": self.tag, "Location": self.location}
        response = Response(status=self.status, content_type=JSON_MEDIA_TYPE if self.body else None, charset=None)
        response.body = self.body.encode()
        response.headers.update({name: value for name, value in headers.items() if value is not None})
        return response


class OperationView:
    """The view of one operation. ``reader`` is the operation that reads the same entity, if there is one. ``once``
    names the response members that are shown once, so must not be stored.
    """

    def __init__(self, operation: Operation, reader: Operation | None, once: Collection[str]) -> None:
        self.operation, self._reader, self._once = operation, reader, once
        self._filters = () if operation.filters is None else tuple(operation.filters.model_fields)
        self._parameters: dict[str, Mapping[str, object]] = {name: {} for name in self._filters} | {
            parameter.name: parameter.schema for parameter in operation.parameters
        }

    def __call__(self, context: RouteContext, request: Request) -> Response:
        """Raises DomainError and MalformedRequest."""
        self._validate_query(request)
        if self.operation.accepts_stream:
            return self._import(context, request)
        if self.operation.file_handler is not None and request.content_type == CSV_MEDIA_TYPE:
            return self._upload(context, request, self.operation.file_handler)
        body = _read_body(request)
        call = self._build_call(context, request)
        if self.operation.method == "GET":
            return self._read(call)
        key = _idempotency_key(request) if self.operation.method == "POST" else None
        stored = self._replay(call, key, body)
        if stored is not None:
            return stored
        members = parse_json_object(body) if body and self.operation.method != "DELETE" else {}
        call = self._bind_version(call)
        command = decode_command(self.operation.command, members)
        if not self.operation.is_streamed:
            return self._create_once(call, command, key)
        if key is not None:
            # Too large to store, and sent after the transaction.
            status = self.operation.status
            call.services.idempotency.store_response(status, ApiResponse(status).to_bytes())
        return self.operation.handler(call, command)

    def _import(self, context: RouteContext, request: Request) -> Response:
        """The response to a streamed document, which is read and checked before it takes a lock."""
        key = _idempotency_key(request)
        body = read_uploaded_document(request)
        if request.content_length and request.content_type.lower() != JSON_MEDIA_TYPE:
            raise UnsupportedMediaType(_SEND_JSON)
        call = self._build_call(context, request)
        with StreamedOrganizationImport(find_type_errors) as incoming:
            document = incoming.document(
                parse_json_stream(body, incoming.list_consumers) if request.content_length else {}
            )
            digest = _body_digest(body)
            return self._replay(call, key, digest) or self._create_once(call, document, key)

    def _upload(
        self, context: RouteContext, request: Request, handler: Callable[[OperationCall[Any], IO[bytes]], object]
    ) -> Response:
        """The response to a file, which the handler reads as a stream."""
        key, body = _idempotency_key(request), read_uploaded_document(request)
        call = self._build_call(context, request)
        stored = self._replay(call, key, _body_digest(body))
        body.seek(0)
        return stored or self._create_once(call, body, key, lambda call, file: handler(call, file))

    def _create_once(
        self,
        call: OperationCall[object],
        sent: Any,
        key: str | None,
        handler: Callable[[OperationCall[Any], Any], object] | None = None,
    ) -> Response:
        answer = self._to_api_response(call, (handler or self.operation.handler)(call, sent))
        if key is not None:
            again = replace(answer, body="") if self._has_one_time_secret(answer) else answer
            # The services of the current transaction: the operation may have committed meanwhile.
            call.request.services.idempotency.store_response(answer.status, again.to_bytes())
        return answer.to_response()

    def _replay(self, call: OperationCall[object], key: str | None, body: bytes) -> Response | None:
        """The response to the request that had this idempotency key before."""
        if key is None:
            return None
        fingerprint = b"\n".join((call.request.method.encode(), call.request.path_qs.encode(), body))
        stored = call.services.idempotency.claim_key(call.principal.id or "", key, fingerprint)
        if stored is None:
            return None
        answer = ApiResponse.from_bytes(stored.status, stored.body)
        if self.operation.representation is None or (answer.body and not self._has_one_time_secret(answer)):
            return answer.to_response()
        refusal = api_error_response(call.request, 409, "conflict", _ALREADY_CREATED_MESSAGE)
        if answer.location is not None:
            refusal.headers["Location"] = answer.location
        return refusal

    def _has_one_time_secret(self, answer: ApiResponse) -> bool:
        members = json.loads(answer.body) if self._once and answer.body else {}
        return any(members[name] is not None for name in self._once if name in members)

    def _build_call(self, context: RouteContext, request: Request) -> OperationCall[object]:
        operation = self.operation
        if context.resource is None:
            raise Denied("Nobody may.")
        page = ListParameters.read(request, orders=operation.orders) if operation.is_paged else FIRST_PAGE
        filter_values = {name: request.GET[name] for name in self._filters if name in request.GET}
        return OperationCall(
            request=request,
            services=request.services,
            principal=request.identity,
            entity=context.entity,
            resource=context.resource,
            page=page,
            filters=None if operation.filters is None else operation.filters.decode(filter_values),
        )

    def _read(self, call: OperationCall[object]) -> Response:
        result = self.operation.handler(call, EmptyCommand())
        if isinstance(result, Response):
            return result
        answer = self._to_api_response(call, result)
        known, representation = call.request.environ.get("HTTP_IF_NONE_MATCH"), self.operation.representation
        if known is None or answer.tag is None or not conditional_requests.matches_if_none_match(known, answer.tag):
            return answer.to_response()
        if not self.operation.returns_list and representation is not None and representation.has_volatile_members:
            return answer.to_response()
        return ApiResponse(304, tag=answer.tag).to_response()

    def _bind_version(self, call: OperationCall[object]) -> OperationCall[object]:
        """The call with the version from If-Match. Raises PreconditionFailed."""
        if_match = call.request.environ.get("HTTP_IF_MATCH")
        if if_match is None:
            return call
        present = None if self._reader is None else self._reader.handler(call, EmptyCommand())
        tag = conditional_requests.representation_etag(present) if isinstance(present, Representation) else ""
        if not conditional_requests.matches_if_match(if_match, tag):
            raise PreconditionFailed("This was changed in the meantime. Read it again, then repeat your request.")
        return replace(call, expected_version=getattr(present, "version", None))

    def _to_api_response(self, call: OperationCall[object], result: object) -> ApiResponse:
        operation = self.operation
        if isinstance(result, ResultPage):
            items = [item.model_dump(mode="json") for item in result]
            total = ListParameters.total(call.request, result)
            body = {
                "items": items,
                "next_cursor": ListParameters.next_cursor(call.request, result.next_cursor)
                if operation.is_paged
                else None,
                "total": total and total.count,
                "total_is_exact": total is not None and total.is_exact,
            }
            # The cursor's text differs each time.
            tag = conditional_requests.text_etag(json.dumps([items, result.next_cursor and result.next_cursor.id]))
            return ApiResponse(operation.status, json.dumps(body), tag)
        if not isinstance(result, Representation):
            return ApiResponse(operation.status)
        # Responses to changes may contain a one-time secret, which must not go into a tag.
        is_read = operation.method == "GET"
        tag_of = conditional_requests.representation_etag if is_read else conditional_requests.version_etag
        location = None if operation.location is None else self._location_url(call.request, result)
        return ApiResponse(operation.status, result.model_dump_json(), tag_of(result), location)

    def _location_url(self, request: Request, representation: Representation) -> str:
        """The URL of the created entity; the pattern's names are its members or path variables of the request."""

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            return quote(str(request.matchdict.get(name) or getattr(representation, name)), safe="")

        identity = request.registry.application
        return f"{identity.settings.base_url}{PATH_PREFIX}{_PATH_VARIABLE.sub(fill, self.operation.location or '')}"

    def _validate_query(self, request: Request) -> None:
        problems = {}
        for name, value in request.GET.items():
            if name not in self._parameters:
                problems[name] = gettext_lazy("This is not known here.")
            elif len(request.GET.getall(name)) > 1:
                problems[name] = gettext_lazy("Give this only once.")
            elif not value and "enum" in self._parameters[name]:
                problems[name] = gettext_lazy("Choose one of the values offered.")
            elif not is_printable(value):
                problems[name] = gettext_lazy("Use printable characters only.")
        if problems:
            raise Invalid(problems)


#: The API's path on the base host.
PATH_PREFIX = AudienceScope.MANAGEMENT_PATH


def create_operation_views(operations: Iterable[Operation]) -> Sequence[OperationView]:
    """One view for each operation. Raises ValueError for a duplicate name or path."""
    table = tuple(operations)
    readable = readable_representations(table)
    readers = {
        operation.path: operation for operation in table if operation.method == "GET" and not operation.returns_list
    }
    if len({operation.name for operation in table}) != len(table) or len(
        {(operation.method, operation.path) for operation in table}
    ) != len(table):
        raise ValueError("two operations have the same name, or the same method and address")
    return [
        OperationView(operation, readers.get(operation.entity_path), one_time_members(operation, readable))
        for operation in table
    ]


def add_operation_routes(config: Configurator, views: Iterable[OperationView]) -> None:
    for view in views:
        operation = view.operation
        name = ROUTE_NAME_PREFIX + operation.name
        config.add_route(
            name,
            PATH_PREFIX + operation.path,
            host="base",
            authenticate="bearer",
            request_method=operation.method,
            factory=operation.context_factory,
        )
        config.add_view(view, route_name=name, permission=operation.permission)


def _body_digest(body: IO[bytes]) -> bytes:
    """By which a repeated request is recognized; the whole body is too large to compare."""
    body.seek(0)
    return hashlib.file_digest(body, "sha256").digest()  # type: ignore[arg-type]


def _read_body(request: Request) -> bytes:
    """Raises BodyTooLarge, UnsupportedMediaType."""
    try:
        sent = build_protocol_request(request)
    except RequestTooLarge as refused:
        raise BodyTooLarge(f"{str(refused.description).capitalize()}.") from None
    if sent.body and request.method in ("POST", "PATCH") and sent.content_type != JSON_MEDIA_TYPE:
        raise UnsupportedMediaType(_SEND_JSON)
    return sent.body


def _idempotency_key(request: Request) -> str | None:
    key: str | None = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and not _IDEMPOTENCY_KEY.match(key):
        raise MalformedRequest("Idempotency-Key must be 1 to 255 printable ASCII characters without spaces.")
    return key

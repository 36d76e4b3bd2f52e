"""Routes and views of operations, with the rules that all requests share."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

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
    EmptyCommand,
    Operation,
    OperationCall,
    one_time_members,
    readable_representations,
)
from identity.plugins.management.representation import Representation
from identity.provider.errors import RequestTooLarge
from identity.provider.protocol_request import ProtocolRequest
from identity.services.commands import Command, decode
from identity.services.organization_transfer import StreamedOrganizationImport
from identity.storage.paging import FIRST_PAGE, ResultPage

ROUTE_NAME_PREFIX = "management."
JSON_MEDIA_TYPE = "application/json"

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
        self._operation = operation
        self._reader = reader
        self._once = once
        self._known: dict[str, Mapping[str, object]] = {name: {} for name in _filter_names(operation)} | {
            parameter.name: parameter.schema for parameter in operation.parameters
        }
        self._moves = (
            not operation.returns_list
            and operation.representation is not None
            and operation.representation.has_volatile_members
        )

    def __call__(self, context: RouteContext, request: Request) -> Response:
        """Raises DomainError and MalformedRequest."""
        self._validate_query(request)
        if self._operation.accepts_stream:
            return self._handle_stream(context, request)
        sent = _read_body(request)
        call = self._build_call(context, request)
        if self._operation.method == "GET":
            return self._find_representation(call, request)
        key = _idempotency_key(request) if self._operation.method == "POST" else None
        stored = self._find_stored_response(call, request, key, sent.body)
        if stored is not None:
            return stored
        members = parse_json_object(sent.body) if sent.body and self._operation.method != "DELETE" else {}
        call = self._bind_version(call, request)
        command = decode_command(self._operation.command, members)
        if self._operation.is_streamed:
            if key is not None:
                # Too large to store, and sent after the transaction.
                call.services.idempotency.store_response(
                    self._operation.status, ApiResponse(self._operation.status).to_bytes()
                )
            return self._operation.handler(call, command)
        return self._create_once(call, command, key)

    def _handle_stream(self, context: RouteContext, request: Request) -> Response:
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
            # A repeated request is recognized by its digest; the whole body is too large to compare.
            body.seek(0)
            stored = self._find_stored_response(call, request, key, hashlib.file_digest(body, "sha256").digest())  # type: ignore[arg-type]
            return stored or self._create_once(call, document, key)

    def _create_once(self, call: OperationCall[object], command: Command, key: str | None) -> Response:
        answer = self._build_response(call, command)
        if key is not None:
            again = replace(answer, body="") if self._has_one_time_secret(answer) else answer
            # The services of the current transaction: the operation may have committed meanwhile.
            call.request.services.idempotency.store_response(answer.status, again.to_bytes())
        return answer.to_response()

    def _find_stored_response(
        self, call: OperationCall[object], request: Request, key: str | None, body: bytes
    ) -> Response | None:
        """The response stored under this idempotency key."""
        if key is None:
            return None
        fingerprint = b"\n".join((request.method.encode(), request.path_qs.encode(), body))
        stored_response = call.services.idempotency.claim_key(call.principal.id or "", key, fingerprint)
        return (
            None
            if stored_response is None
            else self._replay_response(ApiResponse.from_bytes(stored_response.status, stored_response.body), request)
        )

    def _replay_response(self, answer: ApiResponse, request: Request) -> Response:
        """The stored response, to a repeated request."""
        if self._operation.representation is None or (answer.body and not self._has_one_time_secret(answer)):
            return answer.to_response()
        refusal = api_error_response(request, 409, "conflict", _ALREADY_CREATED_MESSAGE)
        if answer.location is not None:
            refusal.headers["Location"] = answer.location
        return refusal

    def _has_one_time_secret(self, answer: ApiResponse) -> bool:
        """True if the response has members that are shown once."""
        members = json.loads(answer.body) if self._once and answer.body else {}
        return any(members[name] is not None for name in self._once if name in members)

    def _build_call(self, context: RouteContext, request: Request) -> OperationCall[object]:
        operation, names = self._operation, _filter_names(self._operation)
        if context.resource is None:
            raise Denied("Nobody may.")
        return OperationCall(
            request=request,
            services=request.services,
            principal=request.identity,
            entity=context.entity,
            resource=context.resource,
            page=ListParameters.read(request, orders=operation.orders) if operation.is_paged else FIRST_PAGE,
            filters=None
            if operation.filters is None
            else decode(operation.filters, {name: request.GET[name] for name in names if name in request.GET}),
        )

    def _find_representation(self, call: OperationCall[object], request: Request) -> Response:
        answer = self._build_response(call, EmptyCommand())
        known = request.environ.get("HTTP_IF_NONE_MATCH")
        if (
            known is None
            or answer.tag is None
            or not conditional_requests.matches_if_none_match(known, answer.tag)
            or self._moves
        ):
            return answer.to_response()
        return ApiResponse(304, tag=answer.tag).to_response()

    def _bind_version(self, call: OperationCall[object], request: Request) -> OperationCall[object]:
        """The call with the version from If-Match. Raises PreconditionFailed."""
        if_match = request.environ.get("HTTP_IF_MATCH")
        if if_match is None:
            return call
        present = None if self._reader is None else self._reader.handler(call, EmptyCommand())
        tag = conditional_requests.representation_etag(present) if isinstance(present, Representation) else ""
        if not conditional_requests.matches_if_match(if_match, tag):
            raise PreconditionFailed("This was changed by somebody else meanwhile. Read it again, then repeat.")
        return replace(call, expected_version=getattr(present, "version", None))

    def _build_response(self, call: OperationCall[object], command: Command) -> ApiResponse:
        request, result = call.request, self._operation.handler(call, command)
        if isinstance(result, ResultPage):
            cursor = ListParameters.next_cursor(request, result.next_cursor) if self._operation.is_paged else None
            items = [item.model_dump(mode="json") for item in result]
            # The cursor's text differs each time.
            tag = conditional_requests.text_etag(json.dumps([items, result.next_cursor and result.next_cursor.id]))
            total = ListParameters.total(request, result)
            body = {
                "items": items,
                "next_cursor": cursor,
                "total": total and total.count,
                "total_is_exact": total is not None and total.is_exact,
            }
            return ApiResponse(self._operation.status, json.dumps(body), tag)
        if not isinstance(result, Representation):
            return ApiResponse(self._operation.status)
        location = None if self._operation.location is None else self._location_url(request, result)
        # Responses to changes may contain a one-time secret, which must not go into a tag.
        tag_of = (
            conditional_requests.representation_etag
            if self._operation.method == "GET"
            else conditional_requests.version_etag
        )
        return ApiResponse(self._operation.status, result.model_dump_json(), tag_of(result), location)

    def _location_url(self, request: Request, representation: Representation) -> str:
        """The URL of the created entity; the pattern's names are its members or path variables of the request."""

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            return quote(str(request.matchdict.get(name) or getattr(representation, name)), safe="")

        identity = request.registry.application
        return f"{identity.settings.base_url}{PATH_PREFIX}{_PATH_VARIABLE.sub(fill, self._operation.location or '')}"

    def _validate_query(self, request: Request) -> None:
        problems = {}
        for name, value in request.GET.items():
            if name not in self._known:
                problems[name] = gettext_lazy("This is not known here.")
            elif len(request.GET.getall(name)) > 1:
                problems[name] = gettext_lazy("Give this once.")
            elif not value and "enum" in self._known[name]:
                problems[name] = gettext_lazy("Choose one of the values offered.")
            elif not is_printable(value):
                problems[name] = gettext_lazy("Use printable characters only.")
        if problems:
            raise Invalid(problems)


#: The API's path on the base host.
PATH_PREFIX = "/management/v1"


def add_operations(config: Configurator, operations: Iterable[Operation]) -> None:
    """Add route and view of each operation. Raises ValueError for a duplicate name or path."""
    table = tuple(operations)
    readable = readable_representations(table)
    readers = {
        operation.path: operation for operation in table if operation.method == "GET" and not operation.returns_list
    }
    if len({operation.name for operation in table}) != len(table) or len(
        {(operation.method, operation.path) for operation in table}
    ) != len(table):
        raise ValueError("two operations have the same name, or the same method and address")
    for operation in table:
        name = ROUTE_NAME_PREFIX + operation.name
        config.add_route(
            name,
            PATH_PREFIX + operation.path,
            host="base",
            authenticate="bearer",
            request_method=operation.method,
            factory=operation.context_factory,
        )
        view = OperationView(operation, readers.get(operation.entity_path), one_time_members(operation, readable))
        config.add_view(_as_function(view), route_name=name, permission=operation.permission)


def _as_function(view: OperationView) -> Callable[[RouteContext, Request], Response]:
    return lambda context, request: view(context, request)


def _filter_names(operation: Operation) -> Iterable[str]:
    return () if operation.filters is None else operation.filters.model_fields


def _read_body(request: Request) -> ProtocolRequest:
    """The request with its body. Raises BodyTooLarge, UnsupportedMediaType."""
    try:
        sent = build_protocol_request(request)
    except RequestTooLarge as refused:
        raise BodyTooLarge(f"{str(refused.description).capitalize()}.") from None
    if sent.body and request.method in ("POST", "PATCH") and sent.content_type != JSON_MEDIA_TYPE:
        raise UnsupportedMediaType(_SEND_JSON)
    return sent


def _idempotency_key(request: Request) -> str | None:
    key: str | None = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and not _IDEMPOTENCY_KEY.match(key):
        raise MalformedRequest("Idempotency-Key must be 1 to 255 printable ASCII characters without spaces.")
    return key

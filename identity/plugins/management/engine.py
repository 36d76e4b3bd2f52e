"""The engine: makes routes and views of operations. What every request to the API has in common stands here, once."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import quote

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import Denied, Invalid
from identity.domain.names import is_printable
from identity.domain.words import say
from identity.http.documents import sent_document
from identity.http.endpoints import context_of, protocol_request
from identity.http.errors import Malformed, PreconditionFailed, TooLarge, Unsupported, api_error
from identity.http.json_object import read_object
from identity.http.json_stream import read_stream
from identity.http.lists import asked_page, next_cursor, total_of
from identity.http.targets import Target
from identity.plugins.management import conditions
from identity.plugins.management.json_body import Nothing, decoded, wrong_types
from identity.plugins.management.operation import Call, Operation, readable, shown_once
from identity.plugins.management.representation import Representation
from identity.provider.errors import RequestTooLarge
from identity.provider.request import ProtocolRequest
from identity.services.commands import decode
from identity.services.transfer import Incoming
from identity.storage.paging import FIRST_PAGE, Page

ROUTE = "management."
JSON = "application/json"

_SEND_JSON = f"Send the body as {JSON}."
_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")
_MEMBER = re.compile(r"\{(\w+)\}")
_MADE_ALREADY = (
    "This was made already, and what it showed is shown once. If that was lost, ask again with another Idempotency-Key."
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered, in a form that can be kept and given again."""

    status: int
    body: str = ""
    tag: str | None = None
    location: str | None = None

    def __repr__(self) -> str:
        return f"Answer(status={self.status!r})"

    def kept(self) -> bytes:
        """All of it but the status, as bytes."""
        return json.dumps([self.body, self.tag, self.location]).encode()

    @classmethod
    def of_kept(cls, status: int, kept: bytes) -> "Answer":
        """The inverse of ``kept``."""
        body, tag, location = json.loads(kept)
        return cls(status, body, tag, location)

    def response(self) -> Response:
        """The answer to a request."""
        headers = {"ETag": self.tag, "Location": self.location}
        response = Response(status=self.status, content_type=JSON if self.body else None, charset=None)
        response.body = self.body.encode()
        response.headers.update({name: value for name, value in headers.items() if value is not None})
        return response


class View:
    """The view of one operation. ``reader`` shows what the operation is about, where there is such an operation.

    ``once`` names the members of the answer that are shown once, and so are not kept.
    """

    def __init__(self, operation: Operation, reader: Operation | None, once: Collection[str]) -> None:
        self._operation = operation
        self._reader = reader
        self._once = once
        self._known: dict[str, Mapping[str, Any]] = {name: {} for name in _names(operation)} | {
            one.name: one.schema for one in operation.parameters
        }
        self._moves = not operation.many and operation.answers is not None and operation.answers.moves

    def __call__(self, context: Target, request: Request) -> Response:
        """The answer. Raises DomainError and Malformed, which the rim answers."""
        self._check_query(request)
        if self._operation.large:
            return self._large(context, request)
        sent = _read(request)
        call = self._call(context, request)
        if self._operation.method == "GET":
            return self._shown(call, request)
        key = _idempotency_key(request) if self._operation.method == "POST" else None
        kept = self._kept(call, request, key, sent.body)
        if kept is not None:
            return kept
        members = read_object(sent.body) if sent.body and self._operation.method != "DELETE" else {}
        call = replace(self._expecting(call, request), command=decoded(self._operation.command or Nothing, members))
        if self._operation.streams:
            if key is not None:
                # Too large to be kept, and sent when the transaction is over.
                call.services.idempotency.keep(self._operation.status, Answer(self._operation.status).kept())
            streamed: Response = self._operation.handle(call)
            return streamed
        return self._made(call, request, key)

    def _large(self, context: Target, request: Request) -> Response:
        """The same for a document that comes as a stream: it is read and checked before anybody has to wait for it."""
        key = _idempotency_key(request)
        body = sent_document(request)
        if request.content_length and request.content_type.lower() != JSON:
            raise Unsupported(_SEND_JSON)
        call = self._call(context, request)
        with Incoming(wrong_types) as incoming:
            document = incoming.document(read_stream(body, incoming.takers) if request.content_length else {})
            # Whoever has sent it before is told by its digest: all of it would be too much to compare.
            body.seek(0)
            kept = self._kept(call, request, key, hashlib.file_digest(body, "sha256").digest())  # type: ignore[arg-type]
            return kept or self._made(replace(call, command=document), request, key)

    def _made(self, call: Call, request: Request, key: str | None) -> Response:
        answer = self._answer(call, request)
        if key is not None:
            again = replace(answer, body="") if self._shows_once(answer) else answer
            # Of other services than before, if the operation has committed in between.
            request.services.idempotency.keep(answer.status, again.kept())
        return answer.response()

    def _kept(self, call: Call, request: Request, key: str | None, body: bytes) -> Response | None:
        """The answer that was given under this key."""
        if key is None:
            return None
        fingerprint = b"\n".join((request.method.encode(), request.path_qs.encode(), body))
        kept = call.services.idempotency.begin(call.by.id or "", key, fingerprint)
        return None if kept is None else self._again(Answer.of_kept(kept.status, kept.body), request)

    def _again(self, answer: Answer, request: Request) -> Response:
        """The answer to a request that was answered before."""
        if self._operation.answers is None or (answer.body and not self._shows_once(answer)):
            return answer.response()
        refusal = api_error(request, 409, "conflict", _MADE_ALREADY)
        if answer.location is not None:
            refusal.headers["Location"] = answer.location
        return refusal

    def _shows_once(self, answer: Answer) -> bool:
        """True if the answer holds what is shown once."""
        members = json.loads(answer.body) if self._once and answer.body else {}
        return any(members[name] is not None for name in self._once if name in members)

    def _call(self, context: Target, request: Request) -> Call:
        identity = request.registry.identity
        filters = self._operation.filters
        if context.resource is None:
            raise Denied("Nobody may.")
        return Call(
            services=request.services,
            settings=identity.settings,
            roles=identity.process.roles,
            by=request.identity,
            value=context.value,
            resource=context.resource,
            names=request.matchdict,
            context=partial(context_of, request),
            request=request,
            page=asked_page(request, orders=self._operation.orders) if self._operation.paged else FIRST_PAGE,
            filters=None if filters is None else decode(filters, _given(request, _names(self._operation))),
        )

    def _shown(self, call: Call, request: Request) -> Response:
        answer = self._answer(call, request)
        known = request.environ.get("HTTP_IF_NONE_MATCH")
        if known is None or answer.tag is None or not conditions.is_known(known, answer.tag) or self._moves:
            return answer.response()
        return Answer(304, tag=answer.tag).response()

    def _expecting(self, call: Call, request: Request) -> Call:
        """The call, bound to the version that the client has seen, if it names one. Raises PreconditionFailed."""
        wanted = request.environ.get("HTTP_IF_MATCH")
        if wanted is None:
            return call
        present = None if self._reader is None else self._reader.handle(call)
        tag = conditions.tag_of(present) if isinstance(present, Representation) else ""
        if not conditions.may_change(wanted, tag):
            raise PreconditionFailed("This was changed by somebody else meanwhile. Read it again, then repeat.")
        return replace(call, expected_version=getattr(present, "version", None))

    def _answer(self, call: Call, request: Request) -> Answer:
        made = self._operation.handle(call)
        if made is None:
            return Answer(self._operation.status)
        if isinstance(made, Page):
            cursor = next_cursor(request, made.next) if self._operation.paged else None
            items = [one.model_dump(mode="json") for one in made]
            # The cursor's text is another one each time.
            tag = conditions.tag_of_text(json.dumps([items, made.next and made.next.id]))
            total = total_of(request, made)
            said = {
                "items": items,
                "next_cursor": cursor,
                "total": total and total.count,
                "total_is_exact": total is not None and total.exact,
            }
            return Answer(self._operation.status, json.dumps(said), tag)
        location = None if self._operation.location is None else self._location(request, made)
        # What is made or changed may show a secret this once, which no tag is to be made of.
        tag_of = conditions.tag_of if self._operation.method == "GET" else conditions.tag_of_version
        return Answer(self._operation.status, made.model_dump_json(), tag_of(made), location)

    def _location(self, request: Request, made: Representation) -> str:
        """The address of what was made: names in the pattern are members of it, or stand in this address."""

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            return quote(str(request.matchdict.get(name) or getattr(made, name)), safe="")

        identity = request.registry.identity
        return f"{identity.settings.base_url}{PREFIX}{_MEMBER.sub(fill, self._operation.location or '')}"

    def _check_query(self, request: Request) -> None:
        problems = {}
        for name, value in request.GET.items():
            if name not in self._known:
                problems[name] = say("This is not known here.")
            elif len(request.GET.getall(name)) > 1:
                problems[name] = say("Give this once.")
            elif not value and "enum" in self._known[name]:
                problems[name] = say("Choose one of the values offered.")
            elif not is_printable(value):
                problems[name] = say("Use printable characters only.")
        if problems:
            raise Invalid(problems)


#: Where the API lives on the base host.
PREFIX = "/management/v1"


def add_operations(config: Configurator, operations: Iterable[Operation]) -> None:
    """Route and view of every operation. Raises ValueError for a name or an address that stands twice."""
    table = tuple(operations)
    shown = readable(table)
    readers = {one.path: one for one in table if one.method == "GET" and not one.many}
    if len({one.name for one in table}) != len(table) or len({(one.method, one.path) for one in table}) != len(table):
        raise ValueError("two operations have the same name, or the same method and address")
    for operation in table:
        name = ROUTE + operation.name
        config.add_route(
            name,
            PREFIX + operation.path,
            host="base",
            authenticate="bearer",
            request_method=operation.method,
            factory=operation.target,
        )
        view = View(operation, readers.get(operation.subject), shown_once(operation, shown))
        config.add_view(_plain(view), route_name=name, permission=operation.permission)


def _plain(view: View) -> Callable[[Target, Request], Response]:
    return lambda context, request: view(context, request)


def _names(operation: Operation) -> Iterable[str]:
    return () if operation.filters is None else operation.filters.model_fields


def _given(request: Request, names: Iterable[str]) -> Mapping[str, str]:
    return {name: request.GET[name] for name in names if name in request.GET}


def _read(request: Request) -> ProtocolRequest:
    """The request with its body. Raises TooLarge, Unsupported."""
    try:
        sent = protocol_request(request)
    except RequestTooLarge as refused:
        raise TooLarge(f"{str(refused.description).capitalize()}.") from None
    if sent.body and request.method in ("POST", "PATCH") and sent.content_type != JSON:
        raise Unsupported(_SEND_JSON)
    return sent


def _idempotency_key(request: Request) -> str | None:
    key: str | None = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and not _KEY.match(key):
        raise Malformed("Idempotency-Key must be 1 to 255 printable ASCII characters without spaces.")
    return key

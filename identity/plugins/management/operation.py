"""Operation: one method at one path, as data. Routes, views and the OpenAPI document are derived from it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Generic, Literal, TypeVar

from pyramid.request import Request

from identity.domain.errors import NotFound
from identity.domain.permissions import Resource
from identity.http.list_parameters import (
    DEFAULT_PAGE_SIZE,
    LIMIT_PARAM,
    MAX_PAGE_SIZE,
    MAX_QUERY_LENGTH,
    QUERY_PARAM,
    SORT_PARAM,
    STATE_PARAM,
    ListParameters,
    sort_values,
)
from identity.http.route_contexts import RouteContext
from identity.plugins.management.representation import Representation
from identity.services.access_control import Principal, VisibleEntityT
from identity.services.commands import Command
from identity.services.container import Services
from identity.storage.paging import PageRequest, ResultPage

JSON_MEDIA_TYPE, CSV_MEDIA_TYPE = "application/json", "text/csv"

ChildT = TypeVar("ChildT")
EntityT = TypeVar("EntityT")
FiltersT = TypeVar("FiltersT", bound=Command)

_STATE_CHANGES = frozenset({"deactivate", "reactivate", "verify", "assert"})


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """``schema`` is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, object]


_PAGE_PARAMETERS = (
    QueryParameter(
        LIMIT_PARAM,
        f"The maximum number of rows in the response, {DEFAULT_PAGE_SIZE} by default.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE},
    ),
    QueryParameter(ListParameters.CURSOR, "The `next_cursor` of the previous page.", {"type": "string"}),
)
_SEARCH_PARAMETER = QueryParameter(
    QUERY_PARAM,
    "Words that are each part of the name, ignoring case and accents; or the start of the id.",
    {"type": "string", "maxLength": MAX_QUERY_LENGTH},
)
_STATE_PARAMETER = QueryParameter(
    STATE_PARAM, "Only rows in this state.", {"type": "string", "enum": ["active", "deactivated"]}
)


class EmptyCommand(Command):
    """The command of operations without members."""


@dataclass(frozen=True)
class EntityPath(Generic[EntityT]):
    """A path that names an entity, and the factory that loads it with the resource of its permissions."""

    template: str
    context_factory: Callable[[Request], RouteContext]

    def __truediv__(self, path: str) -> "EntityPath[EntityT]":
        """A path below this one; variables in it name parts of the entity."""
        return EntityPath(f"{self.template}/{path}", self.context_factory)


@dataclass(frozen=True, kw_only=True)
class OperationCall(Generic[EntityT]):
    """A decoded and authorized request to an operation.

    ``entity`` is the entity in the path, ``resource`` the one on which permissions are checked, ``filters`` are the
    query parameters. ``expected_version`` comes from If-Match. After a commit, a handler gets the services of the
    next transaction from ``request``.
    """

    request: Request
    services: Services
    principal: Principal
    entity: EntityT
    resource: Resource
    page: PageRequest
    filters: Command | None = None
    expected_version: int | None = None

    @property
    def child_id(self) -> str:
        """The value of the last variable in the path."""
        *_, identifier = self.request.matchdict.values()
        return str(identifier)

    def find_child(self, kind: str, children: Iterable[ChildT], identify: Callable[[ChildT], str]) -> ChildT:
        """The child that the path names. Raises NotFound."""
        identifier = self.child_id
        for child in children:
            if identify(child) == identifier:
                return child
        raise NotFound(kind, identifier)

    def filters_as(self, model: type[FiltersT]) -> FiltersT:
        """The query parameters of an operation whose ``filters`` are this model."""
        if not isinstance(self.filters, model):
            raise TypeError(f"{self.request.path} has no {model.__name__}")
        return self.filters

    def filter_page(self, page: ResultPage[VisibleEntityT]) -> ResultPage[VisibleEntityT]:
        """The page without rows that plugins deny to the caller."""
        return self.services.access_control.filter_page(self.principal, page)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: handler, permission, request and response models.

    ``name`` is the operationId, ``summary`` its title. ``context_factory`` loads the entity and the resource on
    which ``permission`` is checked. ``command`` is the model of the body; problems of a Document have paths.
    ``filters`` is the model of the query parameters. ``handler`` returns a representation, a page of them if it
    ``returns_list``, None for an empty response, or the response itself if it ``is_streamed``. A list can be
    ``is_paged``, ``has_states`` to choose from, and be searched and sorted by ``orders``, the default first.
    ``location`` is the path of the created entity, with member names in braces. If it ``accepts_stream``, the body
    is read as a stream into an organization's document. ``file_handler`` takes a body of CSV_MEDIA_TYPE instead of the
    command, as a file. ``media_type`` is that of a streamed response. If it ``is_read_only``, it is safe to repeat.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    summary: str
    permission: str
    context_factory: Callable[[Request], RouteContext]
    handler: Callable[[OperationCall[Any], Any], object]
    representation: type[Representation] | None = None
    returns_list: bool = False
    is_paged: bool = False
    has_states: bool = False
    orders: Collection[str] = ()
    is_streamed: bool = False
    accepts_stream: bool = False
    file_handler: Callable[[OperationCall[Any], IO[bytes]], object] | None = None
    media_type: str = JSON_MEDIA_TYPE
    command: type[Command] = EmptyCommand
    filters: type[Command] | None = None
    location: str | None = None
    description: str = ""
    is_read_only: bool = False

    @property
    def status(self) -> int:
        """The status of a success response."""
        if self.media_type != JSON_MEDIA_TYPE:
            return 200
        if self.representation is None:
            return 204
        return 200 if self.location is None else 201

    @property
    def parameters(self) -> tuple[QueryParameter, ...]:
        """Query parameters besides those of ``filters``: paging, search, state and order of lists."""
        parameters: tuple[QueryParameter, ...] = _PAGE_PARAMETERS if self.is_paged else ()
        parameters += (_SEARCH_PARAMETER,) if self.orders else ()
        parameters += (_STATE_PARAMETER,) if self.has_states else ()
        if self.orders:
            usual, *_ = self.orders
            text = f"The sort key, `{usual}` by default; a leading `-` reverses the order."
            schema = {"type": "string", "enum": sort_values(self.orders)}
            parameters += (QueryParameter(SORT_PARAM, text, schema),)
        return parameters

    @property
    def entity_path(self) -> str:
        """The path of the entity, also for state changes."""
        subject, _, last = self.path.rpartition("/")
        return subject if last in _STATE_CHANGES else self.path


@dataclass(frozen=True, slots=True)
class OperationGroup:
    """Operations on one kind of resource: a tag of the document, with its description."""

    tag: str
    description: str
    operations: tuple[Operation, ...]


def readable_representations(operations: Iterable[Operation]) -> frozenset[type[Representation]]:
    """The representations that these operations return to any reader."""
    return frozenset(
        operation.representation
        for operation in operations
        if operation.method == "GET" and operation.representation is not None
    )


def one_time_members(operation: Operation, readable: Collection[type[Representation]]) -> frozenset[str]:
    """The members of a response that appear in no readable representation, so can never be read again. They count as
    secrets, also in a representation that is new.
    """
    if operation.representation is None or operation.is_read_only:
        return frozenset()
    again = next((kind.model_fields for kind in readable if kind in operation.representation.__mro__), {})
    return frozenset(operation.representation.model_fields.keys() - again)

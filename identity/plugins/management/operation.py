"""Operation: one method at one path, as data. Routes, views and the OpenAPI document are derived from it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyramid.request import Request

from identity.api.plugins import Settings
from identity.domain.managers import ManagerRole
from identity.domain.permissions import Resource
from identity.http.list_parameters import (
    DEFAULT_PAGE_SIZE,
    DESCENDING_PREFIX,
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
from identity.provider.context import Context
from identity.services.access_control import Principal
from identity.services.commands import Command
from identity.services.container import Services
from identity.storage.paging import PageRequest, ResultPage


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """``schema`` is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]


#: Parameters of lists: paging for all, search, state and order for some.
PAGE_PARAMETERS = (
    QueryParameter(
        LIMIT_PARAM,
        f"How many rows the answer has at most, {DEFAULT_PAGE_SIZE} unless given.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE},
    ),
    QueryParameter(ListParameters.CURSOR, "The `next_cursor` of the page before this one.", {"type": "string"}),
)
SEARCH_PARAMETER = QueryParameter(
    QUERY_PARAM,
    "Words of which each is any part of the name, whatever the case and the accents; or the start of the id.",
    {"type": "string", "maxLength": MAX_QUERY_LENGTH},
)
STATE_PARAMETER = QueryParameter(
    STATE_PARAM, "Rows in this state alone.", {"type": "string", "enum": ["active", "deactivated"]}
)

_STATE_CHANGES = frozenset({"deactivate", "reactivate", "verify", "assert"})


def sort_parameter(orders: Collection[str]) -> QueryParameter:
    """The order of a list that has several, the default first."""
    usual, *_ = orders
    description = f"What the list is sorted by, `{usual}` unless given; with `-` before it, the other way round."
    return QueryParameter(SORT_PARAM, description, {"type": "string", "enum": sort_values(orders)})


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCall:
    """One decoded and authorized request to an operation.

    ``entity`` is what the path names, ``resource`` where permissions are checked, ``path_values`` the path
    variables. ``context`` builds a protocol context. ``expected_version`` comes from If-Match. ``request`` is for
    handlers that commit before they call another service.
    """

    services: Services
    settings: Settings
    roles: Mapping[str, ManagerRole]
    principal: Principal
    entity: Any
    resource: Resource
    path_values: Mapping[str, str]
    page: PageRequest
    context: Callable[[], Context]
    request: Request
    filters: Any = None
    command: Any = None
    expected_version: int | None = None

    def filter_page(self, page: ResultPage[Any]) -> ResultPage[Any]:
        """The page without rows that plugins deny to the caller."""
        return self.services.access_control.filter_page(self.principal, page)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: handler, permission, request and response models.

    ``name`` is the operationId, ``summary`` its title. ``context_factory`` loads the entity and the resource on
    which ``permission`` is checked. ``command`` is the model of the body; problems of a Document have paths.
    ``filters`` is the model of the query parameters. ``handler`` returns a value for ``representation``, a page of
    them if it ``returns_list``, None for an empty response, or the response itself if it ``is_streamed``.
    ``location`` is the path of the created entity, with member names in braces. If it ``accepts_stream``, the body
    is read as a stream into an organization's document. If it ``is_read_only``, it is safe to repeat.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    summary: str
    permission: str
    context_factory: Callable[[Request], RouteContext]
    handler: Callable[[OperationCall], Any]
    representation: type[Representation] | None = None
    returns_list: bool = False
    is_streamed: bool = False
    accepts_stream: bool = False
    command: type[Command] | None = None
    filters: type[Command] | None = None
    parameters: tuple[QueryParameter, ...] = ()
    location: str | None = None
    description: str = ""
    is_read_only: bool = False

    @property
    def status(self) -> int:
        """The status of a success response."""
        if self.representation is None:
            return 204
        return 200 if self.location is None else 201

    @property
    def orders(self) -> tuple[str, ...]:
        """The sort keys of the list."""
        values = next((parameter.schema["enum"] for parameter in self.parameters if parameter.name == SORT_PARAM), ())
        return tuple(item for item in values if not item.startswith(DESCENDING_PREFIX))

    @property
    def is_paged(self) -> bool:
        return any(parameter.name == LIMIT_PARAM for parameter in self.parameters)

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

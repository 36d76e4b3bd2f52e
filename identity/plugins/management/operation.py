"""Operation: one method at one address of the API, as data. Routes, views and the OpenAPI document are made from it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyramid.request import Request

from identity.domain.managers import ManagerRole
from identity.domain.permissions import Resource
from identity.http.list_parameters import (
    CURSOR_PARAM,
    DEFAULT_PAGE_SIZE,
    DESCENDING_PREFIX,
    LIMIT_PARAM,
    MAX_PAGE_SIZE,
    MAX_QUERY_LENGTH,
    QUERY_PARAM,
    SORT_PARAM,
    STATE_PARAM,
    sort_values,
)
from identity.http.route_contexts import RouteContext
from identity.plugins.management.representation import Representation
from identity.provider.context import Context
from identity.services.access_control import Principal
from identity.services.commands import Command
from identity.services.container import Services
from identity.settings import Settings
from identity.storage.paging import PageRequest, ResultPage


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter; ``schema`` is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]


#: What lists understand: pages of all of them, and of some a search, states and orders.
PAGE_PARAMETERS = (
    QueryParameter(
        LIMIT_PARAM,
        f"How many rows the answer has at most, {DEFAULT_PAGE_SIZE} unless given.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE},
    ),
    QueryParameter(CURSOR_PARAM, "The `next_cursor` of the page before this one.", {"type": "string"}),
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
    """The order of a list that has several, the usual one first."""
    usual, *_ = orders
    description = f"What the list is sorted by, `{usual}` unless given; with `-` before it, the other way round."
    return QueryParameter(SORT_PARAM, description, {"type": "string", "enum": sort_values(orders)})


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCall:
    """One request to an operation, read and checked.

    ``entity`` is what the address names and ``resource`` where permissions on it are judged, ``path_values`` the texts
    that stand in the address. ``context`` makes what the protocol works with. ``expected_version`` is set if the
    request says which version it is about (If-Match). ``request`` is for what has to commit before it asks others.
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
        """The page without rows that a plugin denies to the caller."""
        return self.services.access_control.filter_page(self.principal, page)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is done, who may, and what goes in and out.

    ``name`` is the operationId of the document, ``summary`` its reference. ``context_factory`` finds what the address
    names and where ``permission`` is judged. ``command`` is what the body is decoded into; a Document holds others, and
    problems are told by their place in it. ``filters`` is what an operation's own query parameters are. ``handler``
    returns a ``representation``, a page of them where it ``returns_list``, or None for an answer without content; where
    it ``is_streamed`` the answer itself, which is made while it is sent. ``location`` is the address of what was made,
    with the names of members in braces. Where it ``accepts_stream`` the body is read as it comes, into an
    organization's document. One that ``is_read_only`` answers a question, which can be asked again.
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
        """The status of a good answer."""
        if self.representation is None:
            return 204
        return 200 if self.location is None else 201

    @property
    def orders(self) -> tuple[str, ...]:
        """What the list can be sorted by."""
        values = next((parameter.schema["enum"] for parameter in self.parameters if parameter.name == SORT_PARAM), ())
        return tuple(item for item in values if not item.startswith(DESCENDING_PREFIX))

    @property
    def is_paged(self) -> bool:
        """True for lists that come in pages."""
        return any(parameter.name == LIMIT_PARAM for parameter in self.parameters)

    @property
    def entity_path(self) -> str:
        """The address of what the operation is about: for a state change, of what changes its state."""
        subject, _, last = self.path.rpartition("/")
        return subject if last in _STATE_CHANGES else self.path


def readable_representations(operations: Iterable[Operation]) -> frozenset[type[Representation]]:
    """The kinds of representations that some of these operations show whoever asks."""
    return frozenset(
        operation.representation
        for operation in operations
        if operation.method == "GET" and operation.representation is not None
    )


def one_time_members(operation: Operation, readable: Collection[type[Representation]]) -> frozenset[str]:
    """The members of an answer that can never be read again: all that stand in no readable kind.

    They are secrets unless the opposite is shown: a kind that nobody thought of is taken for one.
    """
    if operation.representation is None or operation.is_read_only:
        return frozenset()
    again = next((kind.model_fields for kind in readable if kind in operation.representation.__mro__), {})
    return frozenset(operation.representation.model_fields.keys() - again)

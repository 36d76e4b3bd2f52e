"""Operation: one method at one address of the API, as data. Routes, views and the OpenAPI document are made from it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyramid.request import Request

from identity.domain.managers import Role
from identity.domain.permissions import Resource
from identity.http.lists import CURSOR, DESCENDING, LIMIT, LONGEST_QUERY, MOST, QUERY, SORT, STATE, USUAL, sorts
from identity.http.targets import Target
from identity.plugins.management.representation import Representation
from identity.provider.context import Context
from identity.services.access import Principal
from identity.services.bundle import Services
from identity.services.commands import Command
from identity.settings import Settings
from identity.storage.paging import Page, PageRequest


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter; ``schema`` is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]


#: What lists understand: pages of all of them, and of some a search, states and orders.
PAGED = (
    Parameter(
        LIMIT,
        f"How many rows the answer has at most, {USUAL} unless given.",
        {"type": "integer", "minimum": 1, "maximum": MOST},
    ),
    Parameter(CURSOR, "The `next_cursor` of the page before this one.", {"type": "string"}),
)
SEARCH = Parameter(
    QUERY,
    "Words of which each is any part of the name, whatever the case and the accents; or the start of the id.",
    {"type": "string", "maxLength": LONGEST_QUERY},
)
STATES = Parameter(STATE, "Rows in this state alone.", {"type": "string", "enum": ["active", "deactivated"]})

_STATE_CHANGES = frozenset({"deactivate", "reactivate", "verify", "assert"})


def sorted_by(orders: Collection[str]) -> Parameter:
    """The order of a list that has several, the usual one first."""
    usual, *_ = orders
    told = f"What the list is sorted by, `{usual}` unless given; with `-` before it, the other way round."
    return Parameter(SORT, told, {"type": "string", "enum": sorts(orders)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to an operation, read and checked.

    ``value`` is what the address names and ``resource`` where permissions on it are judged, ``names`` the texts that
    stand in the address. ``context`` makes what the protocol works with. ``expected_version`` is set if the request
    says which version it is about (If-Match). ``request`` is for what has to commit before it asks others.
    """

    services: Services
    settings: Settings
    roles: Mapping[str, Role]
    by: Principal
    value: Any
    resource: Resource
    names: Mapping[str, str]
    page: PageRequest
    context: Callable[[], Context]
    request: Request
    filters: Any = None
    command: Any = None
    expected_version: int | None = None

    def listed(self, found: Page[Any]) -> Page[Any]:
        """The page without rows that a plugin denies to the caller."""
        return self.services.access.page_of(self.by, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is done, who may, and what goes in and out.

    ``name`` is the operationId of the document, ``summary`` its reference. ``target`` finds what the address names and
    where ``permission`` is judged. ``command`` is what the body is decoded into; a Document holds others, and
    problems are told by their place in it. ``filters`` is what an operation's own query parameters are. ``handle``
    returns a representation, a page of them if ``answers`` is the kind of a list's ``many`` members, or None for an
    answer without content; where it ``streams`` the answer itself, which is made while it is sent. ``location`` is the
    address of what was made, with the names of members in braces. A ``large`` body is read as it comes, into an
    organization's document. One that ``changes_nothing`` answers a question, which can be asked again.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    summary: str
    permission: str
    target: Callable[[Request], Target]
    handle: Callable[[Call], Any]
    answers: type[Representation] | None = None
    many: bool = False
    streams: bool = False
    large: bool = False
    command: type[Command] | None = None
    filters: type[Command] | None = None
    parameters: tuple[Parameter, ...] = ()
    location: str | None = None
    description: str = ""
    changes_nothing: bool = False

    @property
    def status(self) -> int:
        """The status of a good answer."""
        if self.answers is None:
            return 204
        return 200 if self.location is None else 201

    @property
    def orders(self) -> tuple[str, ...]:
        """What the list can be sorted by."""
        given = next((one.schema["enum"] for one in self.parameters if one.name == SORT), ())
        return tuple(one for one in given if not one.startswith(DESCENDING))

    @property
    def paged(self) -> bool:
        """True for lists that come in pages."""
        return any(one.name == LIMIT for one in self.parameters)

    @property
    def subject(self) -> str:
        """The address of what the operation is about: for a state change, of what changes its state."""
        subject, _, last = self.path.rpartition("/")
        return subject if last in _STATE_CHANGES else self.path


def readable(operations: Iterable[Operation]) -> frozenset[type[Representation]]:
    """The kinds of representations that some of these operations show whoever asks."""
    return frozenset(one.answers for one in operations if one.method == "GET" and one.answers is not None)


def shown_once(operation: Operation, readable: Collection[type[Representation]]) -> frozenset[str]:
    """The members of an answer that can never be read again: all that stand in no readable kind.

    They are secrets unless the opposite is shown: a kind that nobody thought of is taken for one.
    """
    if operation.answers is None or operation.changes_nothing:
        return frozenset()
    again = next((kind.model_fields for kind in readable if kind in operation.answers.__mro__), {})
    return frozenset(operation.answers.model_fields.keys() - again)

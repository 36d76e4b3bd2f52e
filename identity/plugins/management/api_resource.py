"""ApiResource derives the operations of one kind of resource from what they have in common."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pyramid.request import Request

from identity.domain.errors import NotFound
from identity.http.route_contexts import RouteContext
from identity.plugins.management.operation import (
    PAGE_PARAMETERS,
    SEARCH_PARAMETER,
    STATE_PARAMETER,
    Operation,
    OperationCall,
    QueryParameter,
    sort_parameter,
)
from identity.plugins.management.representation import Representation
from identity.services.commands import Command
from identity.storage.paging import ResultPage

RepresentFunction = Callable[[OperationCall, Any], Representation]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResource:
    """Builds the operations on one kind of resource. ``path`` is that of an entity, ``list_path`` that of the list
    (default: one segment up).

    ``context_factory`` loads the entity that a path names, ``parent_context_factory`` the owner of a list. For a
    child of an entity ``context_factory`` loads the owner, and the last path variable names the child. ``service``
    is the name of the service. ``represent`` builds a representation that needs more than the entity. Permissions
    are those on the kind, or on ``permission_subject`` if the kind is part of it.
    """

    kind: str
    representation: type[Representation]
    path: str
    context_factory: Callable[[Request], RouteContext]
    parent_context_factory: Callable[[Request], RouteContext] | None = None
    list_path: str = ""
    service: str = ""
    permission_subject: str = ""
    represent: RepresentFunction | None = None
    delete_permission: str = "delete"

    def list_operation(
        self,
        summary: str,
        fetch: Callable[[OperationCall], ResultPage[Any] | Iterable[Any]],
        *,
        name: str = "",
        path: str = "",
        owner: Callable[[Request], RouteContext] | None = None,
        orders: Collection[str] = (),
        paged: bool = True,
        states: bool = True,
        **more: Any,
    ) -> Operation:
        """A list; ``orders`` make it searchable and sortable."""
        parameters: tuple[QueryParameter, ...] = PAGE_PARAMETERS if paged else ()
        parameters += (SEARCH_PARAMETER,) if orders else ()
        parameters += (STATE_PARAMETER,) if paged and states else ()
        parameters += (sort_parameter(orders),) if orders else ()
        return Operation(
            name=name or f"list_{self.kind}s",
            method="GET",
            path=path or self._list_path,
            summary=summary,
            handler=lambda call: self._represent_all(call, fetch(call)),
            representation=self.representation,
            returns_list=True,
            parameters=parameters,
            context_factory=owner or self.parent_context_factory or self.context_factory,
            **_merge_options({"permission": f"{self.permission_subject or self.kind}.read"}, more),
        )

    def create_operation(
        self,
        verb: str,
        summary: str,
        command: type[Command] | None,
        make: Callable[[OperationCall], Any],
        *,
        name: str = "",
        path: str = "",
        owner: Callable[[Request], RouteContext] | None = None,
        location: str = "",
        **more: Any,
    ) -> Operation:
        """``make`` returns the entity, or the representation where that has further members."""
        return Operation(
            name=name or f"{verb}_{self.kind}",
            method="POST",
            path=path or self._list_path,
            summary=summary,
            handler=lambda call: self._represent(call, make(call)),
            command=command,
            location=location or self.path.rpartition("/")[0] + "/{id}",
            context_factory=owner or self.parent_context_factory or self.context_factory,
            **_merge_options(
                {"permission": f"{self.permission_subject or self.kind}.write", "representation": self.representation},
                more,
            ),
        )

    def get_operation(
        self, summary: str, find: Callable[[OperationCall], Any] = lambda call: call.entity, **more: Any
    ) -> Operation:
        usual = {"name": f"show_{self.kind}", "permission": f"{self.permission_subject or self.kind}.read"}
        return Operation(
            method="GET",
            path=self.path,
            summary=summary,
            handler=lambda call: self._represent(call, find(call)),
            representation=self.representation,
            context_factory=self.context_factory,
            **_merge_options(usual, more),
        )

    def update_operation(self, summary: str, command: type[Command], **more: Any) -> Operation:
        def change(call: OperationCall) -> Any:
            use_cases, expected = self._service(call), call.expected_version
            return use_cases.change(call.entity.id, call.command, principal=call.principal, expected_version=expected)

        return self.action_operation("change", "PATCH", summary, change, command=command, at="", **more)

    def deactivate_operation(self, summary: str, **more: Any) -> Operation:
        return self.action_operation("deactivate", "POST", summary, self._entity_handler("deactivate"), **more)

    def reactivate_operation(self, summary: str, **more: Any) -> Operation:
        return self.action_operation("reactivate", "POST", summary, self._entity_handler("reactivate"), **more)

    def action_operation(
        self,
        verb: str,
        method: Any,
        summary: str,
        do: Callable[[OperationCall], Any],
        *,
        name: str = "",
        path: str = "",
        at: str | None = None,
        **more: Any,
    ) -> Operation:
        """An action at a path below the entity's; ``do`` returns the changed entity."""
        below = f"/{verb}" if at is None else at
        return Operation(
            name=name or f"{verb}_{self.kind}",
            method=method,
            path=path or f"{self.path}{below}",
            summary=summary,
            handler=lambda call: self._represent(call, do(call)),
            context_factory=self.context_factory,
            **_merge_options(
                {"permission": f"{self.permission_subject or self.kind}.write", "representation": self.representation},
                more,
            ),
        )

    def delete_operation(
        self, summary: str, remove: Callable[[OperationCall], Any] | None = None, *, verb: str = "delete", **more: Any
    ) -> Operation:
        end = remove or self._entity_handler("remove")

        def do(call: OperationCall) -> None:
            end(call)

        return self.action_operation(
            verb,
            "DELETE",
            summary,
            do,
            at="",
            **_merge_options(
                {
                    "permission": f"{self.permission_subject or self.kind}.{self.delete_permission}",
                    "representation": None,
                },
                more,
            ),
        )

    def find_child(self, call: OperationCall, found: Iterable[Any], attribute: str = "id") -> Any:
        """The child whose ``attribute`` equals the last path variable. Raises NotFound."""
        identifier = self.child_id(call)
        for item in found:
            if getattr(item, attribute) == identifier:
                return item
        raise NotFound(self._path_variable.replace("_", " "), identifier)

    def child_id(self, call: OperationCall) -> str:
        return call.path_values[self._path_variable]

    def child_handler(self, use_case: str) -> Callable[[OperationCall], Any]:
        """A handler that calls a service method for the child."""
        return lambda call: getattr(self._service(call), use_case)(
            call.entity.id, self.child_id(call), principal=call.principal
        )

    @property
    def _path_variable(self) -> str:
        return self.path.rpartition("{")[2].rstrip("}").partition(":")[0]

    @property
    def _list_path(self) -> str:
        return self.list_path or self.path.rpartition("/")[0]

    def _service(self, call: OperationCall) -> Any:
        return getattr(call.services, self.service or f"{self.kind}s")

    def _entity_handler(self, use_case: str) -> Callable[[OperationCall], Any]:
        return lambda call: getattr(self._service(call), use_case)(call.entity.id, principal=call.principal)

    def _represent(self, call: OperationCall, value: Any) -> Representation | None:
        if value is None or isinstance(value, Representation):
            return value
        return self.representation.from_value(value) if self.represent is None else self.represent(call, value)

    def _represent_all(self, call: OperationCall, values: ResultPage[Any] | Iterable[Any]) -> ResultPage[Any]:
        items = tuple(self._represent(call, value) for value in values)
        return values.with_items(items) if isinstance(values, ResultPage) else ResultPage(items)


def _merge_options(usual: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    return usual | overrides

"""ApiResource makes the operations on one kind of resource, with the names and permissions that follow from it."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import IO, Any, Generic, Literal, Protocol, TypedDict, TypeVar, Unpack

from identity.plugins.management.operation import EmptyCommand, EntityPath, EntityT, Operation, OperationCall
from identity.plugins.management.representation import Representation
from identity.services.access_control import Principal
from identity.services.commands import Command
from identity.services.container import Services
from identity.storage.paging import Identified, ResultPage

ChangeT = TypeVar("ChangeT", bound=Command)
ChangeT_contra = TypeVar("ChangeT_contra", bound=Command, contravariant=True)
CommandT = TypeVar("CommandT", bound=Command)
IdentifiedT = TypeVar("IdentifiedT", bound=Identified)
IdentifiedT_co = TypeVar("IdentifiedT_co", bound=Identified, covariant=True)
ValueT = TypeVar("ValueT")


class OperationOptions(TypedDict, total=False):
    """Members of an Operation where they differ from the usual ones."""

    permission: str
    description: str
    representation: type[Representation] | None
    filters: type[Command]
    file_handler: Callable[[OperationCall[Any], IO[bytes]], Any]
    is_read_only: bool


class _Members(OperationOptions):
    name: str


@dataclass(frozen=True)
class ApiResource(Generic[ValueT]):
    """Each method creates an operation at a path. Its handler gets the call, with the entity that the path names, and
    the command if there is one. It returns the value, or the representation if that has members of its own.

    ``represent`` builds a representation that needs more than the value. Permissions are those on the kind, or on
    ``permission_subject`` if the kind is part of it.
    """

    kind: str
    representation: type[Representation]
    represent: Callable[[OperationCall[Any], ValueT], Representation] | None = None
    permission_subject: str = ""

    def list(
        self,
        at: EntityPath[EntityT],
        summary: str,
        fetch: Callable[[OperationCall[EntityT]], Iterable[ValueT | Representation]],
        *,
        name: str = "",
        orders: Collection[str] = (),
        is_paged: bool = True,
        has_states: bool = True,
        **options: Unpack[OperationOptions],
    ) -> Operation:
        """A list; ``orders`` make it searchable and sortable."""
        return Operation(
            method="GET",
            path=at.template,
            context_factory=at.context_factory,
            summary=summary,
            handler=lambda call, _: self._represent_all(call, fetch(call)),
            returns_list=True,
            is_paged=is_paged,
            has_states=is_paged and has_states,
            orders=orders,
            **self._members(name or f"list_{self.kind}s", "read", options),
        )

    def get(
        self,
        at: EntityPath[EntityT],
        summary: str,
        find: Callable[[OperationCall[EntityT]], ValueT | Representation],
        *,
        name: str = "",
        **options: Unpack[OperationOptions],
    ) -> Operation:
        members = self._members(name or f"show_{self.kind}", "read", options)
        return self._operation("GET", at, summary, EmptyCommand, lambda call, _: find(call), members)

    def create(
        self,
        name: str,
        at: EntityPath[EntityT],
        summary: str,
        command: type[CommandT],
        make: Callable[[OperationCall[EntityT], CommandT], ValueT | Representation],
        *,
        location: str = "",
        **options: Unpack[OperationOptions],
    ) -> Operation:
        """``location`` is the path of the new entity, by default its id below the path of the list. ``file_handler``
        makes one of a file."""
        members = self._members(name, "write", options)
        make_from_file = options.get("file_handler")
        if make_from_file is not None:
            members["file_handler"] = lambda call, file: self._represent(call, make_from_file(call, file))
        return self._operation("POST", at, summary, command, make, members, location or f"{at.template}/{{id}}")

    def change(
        self,
        at: EntityPath[EntityT],
        summary: str,
        command: type[CommandT],
        change: Callable[[OperationCall[EntityT], CommandT], ValueT | Representation],
        **options: Unpack[OperationOptions],
    ) -> Operation:
        members = self._members(f"change_{self.kind}", "write", options)
        return self._operation("PATCH", at, summary, command, change, members)

    def action(
        self,
        name: str,
        at: EntityPath[EntityT],
        summary: str,
        command: type[CommandT],
        act: Callable[[OperationCall[EntityT], CommandT], ValueT | Representation],
        **options: Unpack[OperationOptions],
    ) -> Operation:
        return self._operation("POST", at, summary, command, act, self._members(name, "write", options))

    def delete(
        self,
        name: str,
        at: EntityPath[EntityT],
        summary: str,
        remove: Callable[[OperationCall[EntityT]], object],
        **options: Unpack[OperationOptions],
    ) -> Operation:
        def handler(call: OperationCall[EntityT], _: Command) -> None:
            remove(call)

        options.setdefault("representation", None)
        members = self._members(name, "delete", options)
        return self._operation("DELETE", at, summary, EmptyCommand, handler, members)

    def _members(self, name: str, action: str, options: OperationOptions) -> _Members:
        permission = f"{self.permission_subject or self.kind}.{action}"
        return {"name": name, "permission": permission, "representation": self.representation, **options}

    def _operation(
        self,
        method: Literal["GET", "POST", "PATCH", "DELETE"],
        at: EntityPath[EntityT],
        summary: str,
        command: type[CommandT],
        handler: Callable[[OperationCall[EntityT], CommandT], ValueT | Representation | None],
        members: _Members,
        location: str | None = None,
    ) -> Operation:
        return Operation(
            method=method,
            path=at.template,
            context_factory=at.context_factory,
            summary=summary,
            command=command,
            handler=lambda call, command: self._represent(call, handler(call, command)),
            location=location,
            **members,
        )

    def _represent(self, call: OperationCall[Any], value: ValueT | Representation | None) -> Representation | None:
        if value is None or isinstance(value, Representation):
            return value
        return self.representation.from_value(value) if self.represent is None else self.represent(call, value)

    def _represent_all(
        self, call: OperationCall[Any], values: Iterable[ValueT | Representation]
    ) -> ResultPage[Representation | None]:
        items = tuple(self._represent(call, value) for value in values)
        return values.with_items(items) if isinstance(values, ResultPage) else ResultPage(items)


class ApiEntityService(Protocol[IdentifiedT_co, ChangeT_contra]):
    """What the services of entities with a path of their own have in common."""

    def change(
        self, entity_id: str, command: ChangeT_contra, /, *, principal: Principal, expected_version: int | None
    ) -> IdentifiedT_co: ...

    def deactivate(self, entity_id: str, /, *, principal: Principal) -> IdentifiedT_co: ...

    def reactivate(self, entity_id: str, /, *, principal: Principal) -> IdentifiedT_co: ...

    def remove(self, entity_id: str, /, *, principal: Principal) -> None: ...


@dataclass(frozen=True, kw_only=True)
class EntityApiResource(ApiResource[IdentifiedT], Generic[IdentifiedT, ChangeT]):
    """A kind of entities at ``at``, changed by ``change_command``; ``service`` finds the service that does it."""

    at: EntityPath[IdentifiedT]
    change_command: type[ChangeT]
    service: Callable[[Services], ApiEntityService[IdentifiedT, ChangeT]]

    def show(self, summary: str) -> Operation:
        return self.get(self.at, summary, lambda call: call.entity)

    def update(self, summary: str, **options: Unpack[OperationOptions]) -> Operation:
        def change(call: OperationCall[IdentifiedT], command: ChangeT) -> IdentifiedT:
            service, version = self.service(call.services), call.expected_version
            return service.change(call.entity.id, command, principal=call.principal, expected_version=version)

        return self.change(self.at, summary, self.change_command, change, **options)

    def deactivate(self, summary: str, **options: Unpack[OperationOptions]) -> Operation:
        def act(call: OperationCall[IdentifiedT], _: Command) -> IdentifiedT:
            return self.service(call.services).deactivate(call.entity.id, principal=call.principal)

        return self.action(f"deactivate_{self.kind}", self.at / "deactivate", summary, EmptyCommand, act, **options)

    def reactivate(self, summary: str, **options: Unpack[OperationOptions]) -> Operation:
        def act(call: OperationCall[IdentifiedT], _: Command) -> IdentifiedT:
            return self.service(call.services).reactivate(call.entity.id, principal=call.principal)

        return self.action(f"reactivate_{self.kind}", self.at / "reactivate", summary, EmptyCommand, act, **options)

    def remove(self, summary: str, *, verb: str = "delete", **options: Unpack[OperationOptions]) -> Operation:
        def remove(call: OperationCall[IdentifiedT]) -> None:
            self.service(call.services).remove(call.entity.id, principal=call.principal)

        return self.delete(f"{verb}_{self.kind}", self.at, summary, remove, **options)

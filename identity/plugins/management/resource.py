"""Resource: one kind of thing at the API. Whatever is alike for every kind is said here, once."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pyramid.request import Request

from identity.domain.errors import NotFound
from identity.http.targets import Target
from identity.plugins.management.operation import PAGED, SEARCH, STATES, Call, Operation, Parameter, sorted_by
from identity.plugins.management.representation import Representation
from identity.services.commands import Command
from identity.storage.paging import Page

Show = Callable[[Call, Any], Representation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Makes the operations on things of one kind, which stand at ``path``, and in lists at ``list_path``: one step up
    unless given.

    ``target`` finds the thing that an address names, ``owner`` that to which a list belongs. Of parts of a thing the
    target finds the thing, which is their owner, and the last name in the path is theirs. ``use_cases`` names the
    service. ``show`` makes a representation where that takes more than the thing. Permissions are those on the kind, or
    on that which it is a part ``of``.
    """

    kind: str
    answers: type[Representation]
    path: str
    target: Callable[[Request], Target]
    owner: Callable[[Request], Target] | None = None
    list_path: str = ""
    use_cases: str = ""
    of: str = ""
    show: Show | None = None
    delete: str = "delete"

    def lists(
        self,
        summary: str,
        fetch: Callable[[Call], Page[Any] | Iterable[Any]],
        *,
        name: str = "",
        path: str = "",
        owner: Callable[[Request], Target] | None = None,
        orders: Collection[str] = (),
        paged: bool = True,
        states: bool = True,
        **more: Any,
    ) -> Operation:
        """A list; with ``orders`` it can be searched and sorted."""
        parameters: tuple[Parameter, ...] = PAGED if paged else ()
        parameters += (SEARCH,) if orders else ()
        parameters += (STATES,) if paged and states else ()
        parameters += (sorted_by(orders),) if orders else ()
        return Operation(
            name=name or f"list_{self.kind}s",
            method="GET",
            path=path or self._list_path,
            summary=summary,
            handle=lambda call: self._shown_all(call, fetch(call)),
            answers=self.answers,
            many=True,
            parameters=parameters,
            target=owner or self.owner or self.target,
            **_with({"permission": f"{self.of or self.kind}.read"}, more),
        )

    def makes(
        self,
        verb: str,
        summary: str,
        command: type[Command] | None,
        make: Callable[[Call], Any],
        *,
        name: str = "",
        path: str = "",
        owner: Callable[[Request], Target] | None = None,
        location: str = "",
        **more: Any,
    ) -> Operation:
        """What makes one; ``make`` returns the thing, or the representation where it says more than others."""
        return Operation(
            name=name or f"{verb}_{self.kind}",
            method="POST",
            path=path or self._list_path,
            summary=summary,
            handle=lambda call: self._shown(call, make(call)),
            command=command,
            location=location or self.path.rpartition("/")[0] + "/{id}",
            target=owner or self.owner or self.target,
            **_with({"permission": f"{self.of or self.kind}.write", "answers": self.answers}, more),
        )

    def shows(self, summary: str, find: Callable[[Call], Any] = lambda call: call.value, **more: Any) -> Operation:
        """What shows one."""
        usual = {"name": f"show_{self.kind}", "permission": f"{self.of or self.kind}.read"}
        return Operation(
            method="GET",
            path=self.path,
            summary=summary,
            handle=lambda call: self._shown(call, find(call)),
            answers=self.answers,
            target=self.target,
            **_with(usual, more),
        )

    def changes(self, summary: str, command: type[Command], **more: Any) -> Operation:
        """What changes one."""

        def change(call: Call) -> Any:
            use_cases, expected = self._use_cases(call), call.expected_version
            return use_cases.change(call.value.id, call.command, by=call.by, expected_version=expected)

        return self.does("change", "PATCH", summary, change, command=command, at="", **more)

    def deactivates(self, summary: str, **more: Any) -> Operation:
        """What deactivates one."""
        return self.does("deactivate", "POST", summary, self._of_value("deactivate"), **more)

    def reactivates(self, summary: str, **more: Any) -> Operation:
        """What undoes that."""
        return self.does("reactivate", "POST", summary, self._of_value("reactivate"), **more)

    def does(
        self,
        verb: str,
        method: Any,
        summary: str,
        do: Callable[[Call], Any],
        *,
        name: str = "",
        path: str = "",
        at: str | None = None,
        **more: Any,
    ) -> Operation:
        """What does something with one, at an address of its own below it; ``do`` returns it as it is then."""
        below = f"/{verb}" if at is None else at
        return Operation(
            name=name or f"{verb}_{self.kind}",
            method=method,
            path=path or f"{self.path}{below}",
            summary=summary,
            handle=lambda call: self._shown(call, do(call)),
            target=self.target,
            **_with({"permission": f"{self.of or self.kind}.write", "answers": self.answers}, more),
        )

    def removes(
        self, summary: str, remove: Callable[[Call], Any] | None = None, *, verb: str = "delete", **more: Any
    ) -> Operation:
        """What ends one for good."""
        end = remove or self._of_value("remove")

        def do(call: Call) -> None:
            end(call)

        return self.does(
            verb,
            "DELETE",
            summary,
            do,
            at="",
            **_with({"permission": f"{self.of or self.kind}.{self.delete}", "answers": None}, more),
        )

    def pick(self, call: Call, found: Iterable[Any], by: str = "id") -> Any:
        """That part of those found which the address names. Raises NotFound."""
        wanted = self.part(call)
        for one in found:
            if getattr(one, by) == wanted:
                return one
        raise NotFound(self._place.replace("_", " "), wanted)

    def part(self, call: Call) -> str:
        """What the address calls a part."""
        return call.names[self._place]

    def of_part(self, use_case: str) -> Callable[[Call], Any]:
        """What calls a use case for the part that the address names."""
        return lambda call: getattr(self._use_cases(call), use_case)(call.value.id, self.part(call), by=call.by)

    @property
    def _place(self) -> str:
        """The last name in the path."""
        return self.path.rpartition("{")[2].rstrip("}").partition(":")[0]

    @property
    def _list_path(self) -> str:
        return self.list_path or self.path.rpartition("/")[0]

    def _use_cases(self, call: Call) -> Any:
        return getattr(call.services, self.use_cases or f"{self.kind}s")

    def _of_value(self, use_case: str) -> Callable[[Call], Any]:
        return lambda call: getattr(self._use_cases(call), use_case)(call.value.id, by=call.by)

    def _shown(self, call: Call, value: Any) -> Representation | None:
        if value is None or isinstance(value, Representation):
            return value
        return self.answers.of(value) if self.show is None else self.show(call, value)

    def _shown_all(self, call: Call, values: Page[Any] | Iterable[Any]) -> Page[Any]:
        items = tuple(self._shown(call, value) for value in values)
        return values.showing(items) if isinstance(values, Page) else Page(items)


def _with(usual: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return usual | given

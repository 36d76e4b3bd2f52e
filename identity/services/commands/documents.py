"""Documents: values that hold others, read as far as they can be, so that everything wrong is told at once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from pydantic import PrivateAttr, ValidationError

from identity.domain.errors import Invalid
from identity.domain.words import say_many
from identity.services.commands import Command, Place, inside, path_of, texts_in, told
from identity.services.commands.spooled import Spooled

#: So many problems of a document are told.
MOST_TOLD = 100
#: Where it is told how many more there are.
MORE = "more"

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class Reading:
    """What could not be read of a document: the problem at each place, and all texts that were left out with it.

    ``spooled`` are the lists that are not in the document itself, by their places.
    """

    problems: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    spooled: Mapping[str, Spooled[Any]] = field(default_factory=dict)

    def together(self, found: Mapping[str, str]) -> dict[str, str]:
        """These problems, and those that were found with what was read, at their places in the whole document.

        What was found where something was left out comes from that, and is not told.
        """
        problems = dict(self.problems)
        for path, sentence in found.items():
            place = self._whole(path)
            if not any(one == place or one.startswith((f"{place}.", f"{place}[")) for one in self.problems):
                problems.setdefault(place, sentence)
        return problems

    def first_of(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """As many of the problems as people read, and how many more there are."""
        return first_of(problems, self.spooled)

    def _whole(self, path: str) -> str:
        """Where this place of what was read is in the whole document: items that were left out count there."""
        read: Place = ()
        whole: Place = ()
        for number, name in _STEP.findall(path):
            step = name or int(number)
            kept = self.numbers.get(path_of(read), ())
            whole = (*whole, kept[step] if isinstance(step, int) and step < len(kept) else step)
            read = (*read, step)
        return path_of(whole)


def first_of(problems: Mapping[str, str], spooled: Mapping[str, Spooled[Any]]) -> Mapping[str, str]:
    """As many of the problems as people read, and how many more were found."""
    more = len(problems) - MOST_TOLD + sum(one.more for one in spooled.values())
    if more <= 0:
        return problems
    more_words = say_many("{n} more place needs a change.", "{n} more places need a change.", more)
    return {**dict(islice(problems.items(), MOST_TOLD)), MORE: more_words}


class Document(Command):
    """A command that holds others. With problems in its reading it may be walked, but nothing may come of it."""

    _reading: Reading = PrivateAttr(default_factory=Reading)

    @property
    def reading(self) -> Reading:
        """How far it could be read."""
        return self._reading


Read = TypeVar("Read", bound=Document)


def decode_document(
    document: type[Read],
    values: Mapping[str, object],
    problems: Mapping[str, str] | None = None,
    spooled: Mapping[str, Spooled[Any]] | None = None,
) -> Read:
    """The document made from plain values, as far as it can be read; ``problems`` were found in it before, and in
    lists that were ``spooled``.

    Its reading holds a sentence for every place that is wrong, such as ``projects[0].roles[2].key``. Raises Invalid
    with them if nothing can be read.
    """
    rest = _Rest(values)
    lists = spooled or {}
    found = dict(problems or {})
    for one in lists.values():
        found.update(one.problems)
    while True:
        try:
            read = document.model_validate(rest.values)
        except ValidationError as refusal:
            if not rest.left_out:
                found = {**told(refusal, path_of), **found}
            # What misses something cannot stand without it.
            errors = refusal.errors(include_url=False, include_input=False)
            places = {one["loc"][:-1] if one["type"] == "missing" else one["loc"] for one in errors}
            if () in places:
                raise Invalid(first_of(found, lists)) from None
            rest.leave_out(places)
        else:
            unread = rest.left_out.union(*(one.unread for one in lists.values()))
            read._reading = Reading(found, frozenset(unread), dict(rest.numbers(rest.values, ())), lists)
            return read


class _Rest:
    """A copy of the values, from which what cannot be read is taken out."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._numbers: dict[int, list[int]] = {}
        self.values = self._copy(values)
        self.left_out: set[str] = set()

    def leave_out(self, places: Iterable[Place]) -> None:
        """Take out what stands at these places, or what it stands in. The last of a list goes first."""
        last: Any
        for *way, last in sorted({*map(self._standing, places)}, key=_order, reverse=True):
            holder = self.values
            for step in way:
                holder = holder[step]
            if isinstance(holder, list):
                self._numbers[id(holder)].pop(last)
            self.left_out.update(texts_in(holder.pop(last)))

    def numbers(self, value: Any, place: Place) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The numbers that items had at first, by the place of their list."""
        if isinstance(value, list):
            yield path_of(place), tuple(self._numbers[id(value)])
        for step, one in inside(value):
            yield from self.numbers(one, (*place, step))

    def _copy(self, value: object) -> Any:
        if isinstance(value, Mapping):
            return {name: self._copy(one) for name, one in value.items()}
        if not isinstance(value, list | tuple):
            return value
        copy = [self._copy(one) for one in value]
        self._numbers[id(copy)] = list(range(len(copy)))
        return copy

    def _standing(self, place: Place) -> Place:
        """As much of the place as there is."""
        value: Any = self.values
        standing: Place = ()
        for step in place:
            parts = dict(inside(value))
            if step not in parts:
                break
            value, standing = parts[step], (*standing, step)
        return standing


def _order(place: Place) -> list[tuple[bool, int | str]]:
    """Names may be numbers, too: YAML has such."""
    return [(isinstance(step, str), step) for step in place]

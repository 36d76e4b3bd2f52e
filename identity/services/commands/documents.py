"""Documents: values that hold others, read as far as they can be, so that everything wrong is told at once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from pydantic import PrivateAttr, ValidationError

from identity.domain.errors import Invalid
from identity.domain.messages import ngettext_lazy
from identity.services.commands import (
    Command,
    FieldPath,
    field_error_messages,
    format_field_path,
    iter_items,
    iter_texts,
)
from identity.services.commands.streaming_import import StreamedList

#: So many problems of a document are told.
MAX_REPORTED_PROBLEMS = 100
#: Where it is told how many more there are.
FURTHER_PROBLEMS_KEY = "more"

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class ParseReport:
    """What could not be read of a document: the problem at each place, and all texts that were left out with it.

    ``streamed_lists`` are the lists that are not in the document itself, by their places.
    """

    problems: Mapping[str, str] = field(default_factory=dict)
    rejected_texts: frozenset[str] = frozenset()
    original_indexes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    streamed_lists: Mapping[str, StreamedList[Any]] = field(default_factory=dict)

    def merge_problems(self, found: Mapping[str, str]) -> dict[str, str]:
        """These problems, and those that were found with what was read, at their places in the whole document.

        What was found where something was left out comes from that, and is not told.
        """
        problems = dict(self.problems)
        for path, sentence in found.items():
            place = self._whole(path)
            if not any(problem == place or problem.startswith((f"{place}.", f"{place}[")) for problem in self.problems):
                problems.setdefault(place, sentence)
        return problems

    def truncate_problems(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """As many of the problems as people read, and how many more there are."""
        return truncate_problems(problems, self.streamed_lists)

    def _whole(self, path: str) -> str:
        """Where this place of what was read is in the whole document: items that were left out count there."""
        read: FieldPath = ()
        whole: FieldPath = ()
        for number, name in _STEP.findall(path):
            step = name or int(number)
            kept = self.original_indexes.get(format_field_path(read), ())
            whole = (*whole, kept[step] if isinstance(step, int) and step < len(kept) else step)
            read = (*read, step)
        return format_field_path(whole)


def truncate_problems(problems: Mapping[str, str], spooled: Mapping[str, StreamedList[Any]]) -> Mapping[str, str]:
    """As many of the problems as people read, and how many more were found."""
    more = (
        len(problems)
        - MAX_REPORTED_PROBLEMS
        + sum(streamed_list.further_problem_count for streamed_list in spooled.values())
    )
    if more <= 0:
        return problems
    more_words = ngettext_lazy("{n} more place needs a change.", "{n} more places need a change.", more)
    return {**dict(islice(problems.items(), MAX_REPORTED_PROBLEMS)), FURTHER_PROBLEMS_KEY: more_words}


class Document(Command):
    """A command that holds others. With problems in its reading it may be walked, but nothing may come of it."""

    _reading: ParseReport = PrivateAttr(default_factory=ParseReport)

    @property
    def parse_report(self) -> ParseReport:
        """How far it could be read."""
        return self._reading


DocumentT = TypeVar("DocumentT", bound=Document)


def decode_document(
    document: type[DocumentT],
    values: Mapping[str, object],
    problems: Mapping[str, str] | None = None,
    spooled: Mapping[str, StreamedList[Any]] | None = None,
) -> DocumentT:
    """The document made from plain values, as far as it can be read; ``problems`` were found in it before, and in
    lists that were ``spooled``.

    Its reading holds a sentence for every place that is wrong, such as ``projects[0].roles[2].key``. Raises Invalid
    with them if nothing can be read.
    """
    rest = _PrunedCopy(values)
    lists = spooled or {}
    found = dict(problems or {})
    for streamed_list in lists.values():
        found.update(streamed_list.problems)
    while True:
        try:
            read = document.model_validate(rest.values)
        except ValidationError as refusal:
            if not rest.left_out:
                found = {**field_error_messages(refusal, format_field_path), **found}
            # What misses something cannot stand without it.
            errors = refusal.errors(include_url=False, include_input=False)
            places = {error["loc"][:-1] if error["type"] == "missing" else error["loc"] for error in errors}
            if () in places:
                raise Invalid(truncate_problems(found, lists)) from None
            rest.leave_out(places)
        else:
            unread = rest.left_out.union(*(streamed_list.rejected_texts for streamed_list in lists.values()))
            read._reading = ParseReport(found, frozenset(unread), dict(rest.numbers(rest.values, ())), lists)
            return read


class _PrunedCopy:
    """A copy of the values, from which what cannot be read is taken out."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._numbers: dict[int, list[int]] = {}
        self.values = self._copy(values)
        self.left_out: set[str] = set()

    def leave_out(self, places: Iterable[FieldPath]) -> None:
        """Take out what stands at these places, or what it stands in. The last of a list goes first."""
        last: Any
        for *way, last in sorted({*map(self._standing, places)}, key=_order, reverse=True):
            holder = self.values
            for step in way:
                holder = holder[step]
            if isinstance(holder, list):
                self._numbers[id(holder)].pop(last)
            self.left_out.update(iter_texts(holder.pop(last)))

    def numbers(self, value: Any, place: FieldPath) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The numbers that items had at first, by the place of their list."""
        if isinstance(value, list):
            yield format_field_path(place), tuple(self._numbers[id(value)])
        for step, one in iter_items(value):
            yield from self.numbers(one, (*place, step))

    def _copy(self, value: object) -> Any:
        if isinstance(value, Mapping):
            return {name: self._copy(item) for name, item in value.items()}
        if not isinstance(value, list | tuple):
            return value
        copy = [self._copy(item) for item in value]
        self._numbers[id(copy)] = list(range(len(copy)))
        return copy

    def _standing(self, place: FieldPath) -> FieldPath:
        """As much of the place as there is."""
        value: Any = self.values
        standing: FieldPath = ()
        for step in place:
            parts = dict(iter_items(value))
            if step not in parts:
                break
            value, standing = parts[step], (*standing, step)
        return standing


def _order(place: FieldPath) -> list[tuple[bool, int | str]]:
    """Names may be numbers, too: YAML has such."""
    return [(isinstance(step, str), step) for step in place]

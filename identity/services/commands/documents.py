"""Nested documents, decoded as far as possible, so that all errors are reported at once."""

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

#: The maximum number of reported problems of a document.
MAX_REPORTED_PROBLEMS = 100
#: The key that reports how many more there are.
FURTHER_PROBLEMS_KEY = "more"

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class ParseReport:
    """What could not be decoded of a document: the problem at each path, and all texts that were left out with it.

    ``streamed_lists`` are the lists outside of the document, by their paths."""

    problems: Mapping[str, str] = field(default_factory=dict)
    rejected_texts: frozenset[str] = frozenset()
    original_indexes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    streamed_lists: Mapping[str, StreamedList[Any]] = field(default_factory=dict)

    def merge_problems(self, found: Mapping[str, str]) -> dict[str, str]:
        """These problems and those found in the decoded part, at their paths in the whole document. Problems that only
        follow from left-out items are dropped."""
        problems = dict(self.problems)
        for path, sentence in found.items():
            whole_path = self._whole(path)
            if not any(
                problem == whole_path or problem.startswith((f"{whole_path}.", f"{whole_path}["))
                for problem in self.problems
            ):
                problems.setdefault(whole_path, sentence)
        return problems

    def truncate_problems(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """The first problems, and the number of further ones."""
        return truncate_problems(problems, self.streamed_lists)

    def _whole(self, path: str) -> str:
        """The path in the whole document, counting the items that were left out."""
        read: FieldPath = ()
        whole: FieldPath = ()
        for number, name in _STEP.findall(path):
            step = name or int(number)
            original = self.original_indexes.get(format_field_path(read), ())
            whole = (*whole, original[step] if isinstance(step, int) and step < len(original) else step)
            read = (*read, step)
        return format_field_path(whole)


def truncate_problems(problems: Mapping[str, str], spooled: Mapping[str, StreamedList[Any]]) -> Mapping[str, str]:
    """The first problems, and the number of further ones."""
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
    """A nested command. If decoding found problems, you may check it further but must not apply it."""

    _reading: ParseReport = PrivateAttr(default_factory=ParseReport)

    @property
    def parse_report(self) -> ParseReport:
        """How far it could be decoded."""
        return self._reading


DocumentT = TypeVar("DocumentT", bound=Document)


def decode_document(
    document: type[DocumentT],
    values: Mapping[str, object],
    problems: Mapping[str, str] | None = None,
    spooled: Mapping[str, StreamedList[Any]] | None = None,
) -> DocumentT:
    """Decode as much of the document as possible; ``problems`` were found before, also in the ``spooled`` lists. Its
    parse report has a message for every wrong path, such as ``projects[0].roles[2].key``. Raises Invalid with them if
    nothing can be decoded."""
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
            # An object without a required member is left out as a whole.
            errors = refusal.errors(include_url=False, include_input=False)
            paths = {error["loc"][:-1] if error["type"] == "missing" else error["loc"] for error in errors}
            if () in paths:
                raise Invalid(truncate_problems(found, lists)) from None
            rest.leave_out(paths)
        else:
            unread = rest.left_out.union(*(streamed_list.rejected_texts for streamed_list in lists.values()))
            read._reading = ParseReport(found, frozenset(unread), dict(rest.numbers(rest.values, ())), lists)
            return read


class _PrunedCopy:
    """A copy of the values without what cannot be decoded."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._numbers: dict[int, list[int]] = {}
        self.values = self._copy(values)
        self.left_out: set[str] = set()

    def leave_out(self, paths: Iterable[FieldPath]) -> None:
        """Remove the values at these paths, or what contains them; the last items of a list first."""
        last: Any
        for *parents, last in sorted({*map(self._existing_path, paths)}, key=_path_sort_key, reverse=True):
            holder = self.values
            for step in parents:
                holder = holder[step]
            if isinstance(holder, list):
                self._numbers[id(holder)].pop(last)
            self.left_out.update(iter_texts(holder.pop(last)))

    def numbers(self, value: Any, path: FieldPath) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The original indexes of items, by the path of their list."""
        if isinstance(value, list):
            yield format_field_path(path), tuple(self._numbers[id(value)])
        for step, member in iter_items(value):
            yield from self.numbers(member, (*path, step))

    def _copy(self, value: object) -> Any:
        if isinstance(value, Mapping):
            return {name: self._copy(item) for name, item in value.items()}
        if not isinstance(value, list | tuple):
            return value
        copy = [self._copy(item) for item in value]
        self._numbers[id(copy)] = list(range(len(copy)))
        return copy

    def _existing_path(self, path: FieldPath) -> FieldPath:
        """The part of the path that exists."""
        value: Any = self.values
        standing: FieldPath = ()
        for step in path:
            parts = dict(iter_items(value))
            if step not in parts:
                break
            value, standing = parts[step], (*standing, step)
        return standing


def _path_sort_key(path: FieldPath) -> list[tuple[bool, int | str]]:
    """Names can be numbers, too, as in YAML."""
    return [(isinstance(step, str), step) for step in path]

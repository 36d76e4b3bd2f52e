"""Lists of a document that are too long for memory: their items are checked as they come, and wait in a file."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from identity.services.commands import Command, field_error_messages, format_field_path, iter_texts

Item = TypeVar("Item", bound=Command)

#: What is wrong with the types of some members, by their places.
TypeErrorFinder = Callable[[type[Command], Mapping[str, Any]], Mapping[str, str]]

#: Of so many problems each is told; further ones are counted.
MAX_PROBLEMS = 1000


class StreamedList(Generic[Item]):
    """One list, read once and then walked as often as needed. The file has no name, and ends with the object.

    ``problems`` are those of items that cannot be read, by their places, ``further_problem_count`` how many there are
    besides, and ``rejected_texts`` all texts in such items.
    """

    def __init__(self, path: str, command: type[Item], wrong_types: TypeErrorFinder) -> None:
        self.problems: dict[str, str] = {}
        self.rejected_texts: set[str] = set()
        self.further_problem_count = 0
        self.count = 0
        self._path = path
        self._command = command
        self._wrong_types = wrong_types
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as the object

    def append(self, number: int, values: Any) -> None:
        """Check an item and keep it, or what is wrong with it."""
        problems = self._problems(values)
        if not problems:
            self._file.write(f"{json.dumps([number, values])}\n")
            self.count += 1
            return
        self.rejected_texts.update(iter_texts(values))
        for place, sentence in problems.items():
            if len(self.problems) < MAX_PROBLEMS:
                self.problems[f"{self._path}[{number}]{place}"] = sentence
            else:
                self.further_problem_count += 1

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        """The items that can be read, with the numbers that they have in the document."""
        self._file.seek(0)
        for line in self._file:
            number, values = json.loads(line)
            yield number, self._command.model_validate(values)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _problems(self, values: Any) -> Mapping[str, str]:
        if not isinstance(values, dict):
            return {"": self._refusal(values)["request"]}
        problems = {**self._refusal(values), **self._wrong_types(self._command, values)}
        return {f".{place}": sentence for place, sentence in problems.items()}

    def _refusal(self, values: Any) -> Mapping[str, str]:
        try:
            self._command.model_validate(values)
        except ValidationError as refusal:
            return field_error_messages(refusal, format_field_path)
        return {}

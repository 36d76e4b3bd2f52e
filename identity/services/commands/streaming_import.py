"""Lists of a document that are too long for memory: items are validated as they arrive and spooled to a file."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from identity.services.commands import Command, field_error_messages, format_field_path, iter_texts

Item = TypeVar("Item", bound=Command)

#: Type errors of some members, by their paths.
TypeErrorFinder = Callable[[type[Command], Mapping[str, Any]], Mapping[str, str]]

#: The number of problems that are reported one by one; further ones are counted.
MAX_PROBLEMS = 1000


class StreamedList(Generic[Item]):
    """One list, read once and then iterated as often as needed. Its temporary file is deleted with the object.

    ``problems`` are those of invalid items, by path, ``further_problem_count`` is the number of further ones, and
    ``rejected_texts`` are all texts in invalid items."""

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
        """Validate an item and spool it, or remember its problems."""
        problems = self._problems(values)
        if not problems:
            self._file.write(f"{json.dumps([number, values])}\n")
            self.count += 1
            return
        self.rejected_texts.update(iter_texts(values))
        for path, sentence in problems.items():
            if len(self.problems) < MAX_PROBLEMS:
                self.problems[f"{self._path}[{number}]{path}"] = sentence
            else:
                self.further_problem_count += 1

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        """The valid items with their indexes in the document."""
        self._file.seek(0)
        for line in self._file:
            number, values = json.loads(line)
            yield number, self._command.model_validate(values)

    def close(self) -> None:
        self._file.close()

    def _problems(self, values: Any) -> Mapping[str, str]:
        if not isinstance(values, dict):
            return {"": self._refusal(values)["request"]}
        problems = {**self._refusal(values), **self._wrong_types(self._command, values)}
        return {f".{path}": sentence for path, sentence in problems.items()}

    def _refusal(self, values: Any) -> Mapping[str, str]:
        try:
            self._command.model_validate(values)
        except ValidationError as refusal:
            return field_error_messages(refusal, format_field_path)
        return {}

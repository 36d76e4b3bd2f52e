"""One question for many: how greenlets look things up at a PostgreSQL server.

To ask it costs both sides as much as finding a row or more: each of the two has to be woken. Greenlets that look for
the same kind of thing at the same time (``identity.concurrency``) therefore ask together:

1. Whoever is the first to ask steps aside, so that all others that are ready come to where they ask, too. So the more
   there is to do, the more of them ask together, and nobody waits for somebody who may not come.
2. Then it asks for all of them, over its own connection.
3. Each takes the rows that it looked for. Nothing is kept: whoever comes later asks anew.

If the question fails, each asks for itself and meets its own failure, unless all have waited for long.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Select, bindparam

from identity.concurrency import Event, running_loop, sleep
from identity.plugins.sql.errors import FAILURES
from identity.plugins.sql.link import Link
from identity.plugins.sql.mapping import Row, Values
from identity.plugins.sql.prepared import Prepared, Text
from identity.watching import STATEMENT, timed

#: Seconds after which a failure is everybody's: the server is silent, and would be so to each of them again.
_LONG = 1.0

#: How many ask together at most. Where there are fewer, the last key is given again: with an array of keys the server
#: would take whatever is planned once for all to be dearer than what is planned for these, and plan each time.
MOST = 8
_KEYS = tuple(f"key_{number}" for number in range(MOST))

Key = tuple[Any, ...]


class Lookup(Prepared):
    """A select of the rows in which some columns have given values, by parameters of these names.

    Rows are told apart by the first of the columns, which are among those that are selected. Where many ask together,
    they ask by that one, and take the rows that fit the others.
    """

    def __init__(self, statement: Select[Any], by: Mapping[str, Column[Any]]) -> None:
        super().__init__(statement.where(*(column == bindparam(name) for name, column in by.items())))
        first, *_ = by.values()
        selected = list(statement.selected_columns)
        self._names = tuple(by)
        self._places = tuple(next(at for at, one in enumerate(selected) if one is column) for column in by.values())
        self._of_many = statement.where(first.in_([bindparam(name, type_=first.type) for name in _KEYS]))
        self._text_of_many: Text | None = None

    def first(self, link: Link, parameters: Values) -> Row | None:
        """The first row, or None. Raises SQLAlchemyError."""
        if link.together is None:
            return super().first(link, parameters)
        rows = self.all(link, parameters)
        return rows[0] if rows else None

    def all(self, link: Link, parameters: Values) -> Sequence[Row]:
        """All rows. Raises SQLAlchemyError."""
        loop, together = running_loop(), link.together
        if loop is None or together is None or link.in_transaction:
            return super().all(link, parameters)
        key = tuple([parameters[name] for name in self._names])
        place = loop, self
        question = together.get(place)
        if question is None or len(question.keys) == len(_KEYS):
            question = together[place] = Question(key)
            self._ask(question, place, together, link)
        else:
            with timed(STATEMENT, self._for_many(link).sql):
                question.join(key)
        if question.failure is not None:
            raise question.failure
        return super().all(link, parameters) if question.rows is None else question.rows.get(key, ())

    def _ask(self, question: "Question", place: "Place", together: "Together", link: Link) -> None:
        """Ask for all who come until everybody who is ready has had a turn."""
        try:
            try:
                sleep(0)
            finally:
                if together.get(place) is question:
                    del together[place]
            began = time.monotonic()
            try:
                if len(question.keys) > 1:
                    question.rows = self._found(question, link)
            except FAILURES as error:
                if time.monotonic() - began > _LONG:
                    question.failure = error
        finally:
            question.asked.set()

    def _found(self, question: "Question", link: Link) -> dict[Key, list[Row]]:
        """The rows for each key that there are any for. Raises SQLAlchemyError."""
        found: dict[Key, list[Row]] = {}
        keys = [key[0] for key in question.keys]
        keys += keys[-1:] * (len(_KEYS) - len(keys))
        for row in self._for_many(link).all(link, dict(zip(_KEYS, keys, strict=True))):
            found.setdefault(tuple([row[place] for place in self._places]), []).append(row)
        return found

    def _for_many(self, link: Link) -> Text:
        text = self._text_of_many
        if text is None:
            text = self._text_of_many = Text.of(self._of_many, link.dialect)
        return text


class Question:
    """What is looked for, and, once it was asked, what was found."""

    __slots__ = ("asked", "failure", "keys", "rows")

    def __init__(self, key: Key) -> None:
        self.keys = [key]
        self.asked = Event()
        self.rows: Mapping[Key, Sequence[Row]] | None = None
        self.failure: Any = None

    def join(self, key: Key) -> None:
        """Return when it was asked."""
        self.keys.append(key)
        self.asked.wait()


#: Which greenlets, those of a loop, ask for what.
Place = tuple[asyncio.AbstractEventLoop, Lookup]
#: What is about to be asked by connections that are alike, and can still be joined.
Together = dict[Place, Question]

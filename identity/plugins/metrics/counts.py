"""Counts: what one process has counted, cheap enough for the middle of a request, and added up over processes."""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Any

from identity import watching
from identity.domain.audit import EVENTS as ALL_EVENTS
from identity.plugins.metrics.families import (
    COUNTED,
    EVENTS,
    GRANTS,
    PASSWORD_SECONDS,
    PURGE_SECONDS,
    READS,
    REQUEST_SECONDS,
    REQUESTS,
    SIGN_INS,
    SIGNATURE_SECONDS,
    STANDBY_AGE,
    STATEMENT_SECONDS,
    Family,
)
from identity.watching import OUTCOMES, Watcher

#: What a request for tokens can come to beside the error codes of the protocol; failed are those that failed by us.
ISSUED, FAILED = "issued", "failed"
#: What is not among the words that were known beforehand: labels come from closed sets, never from a request.
OTHER = "other"

#: The labels of a sample, and its values: a number, or of a histogram the sum and each bucket by itself.
Samples = dict[tuple[str, ...], list[float]]

_BY_NAME = {family.name: family for family in COUNTED}
_WORDS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "COMMIT", "BEGIN", "SAVEPOINT", "RELEASE"})
_MOST_KNOWN = 2000


class Counts(Watcher):
    """What this process has counted. ``on_change`` is called when there is something new since ``snapshot``."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self.on_change = on_change
        #: The ways to sign in that there are.
        self.methods: frozenset[str] = frozenset()
        self._samples: dict[str, Samples] = {family.name: {} for family in COUNTED}
        self._lock = threading.Lock()
        self._words: dict[str, tuple[str, ...]] = {}
        self._told = False
        self._under_way = 0

    def count(self, family: Family, *labels: str) -> None:
        """One more."""
        samples = self._samples[family.name]
        with self._lock:
            cell = samples.get(labels)
            if cell is None:
                cell = samples[labels] = [0]
            cell[0] += 1
        self._note()

    def time(self, family: Family, seconds: float, *labels: str) -> None:
        """One more of so many seconds."""
        samples = self._samples[family.name]
        with self._lock:
            cell = samples.get(labels)
            if cell is None:
                cell = samples[labels] = [0.0] * (len(family.bounds) + 2)
            cell[0] += seconds
            cell[bisect_left(family.bounds, seconds) + 1] += 1
        self._note()

    def began(self) -> None:
        """A request is at work. That is news: it may have nothing to count for long, and wait."""
        with self._lock:
            self._under_way += 1
        self._note()

    def ended(self) -> None:
        """It is no longer."""
        with self._lock:
            self._under_way -= 1

    def busy(self) -> bool:
        """True while a request is at work."""
        return self._under_way > 0

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.count(REQUESTS, endpoint, str(status))
        self.time(REQUEST_SECONDS, seconds, endpoint)

    def granted(self, grant_type: str, outcome: str) -> None:
        """A request for tokens has come to this."""
        self.count(GRANTS, grant_type, outcome)

    def took(self, what: str, name: str, seconds: float) -> None:
        """A hash, a signature, a statement or a batch of a purge has ended."""
        if what == watching.STATEMENT:
            self.time(STATEMENT_SECONDS, seconds, *self._first_word(name))
        elif what == watching.SIGNATURE:
            self.time(SIGNATURE_SECONDS, seconds, name)
        elif what == watching.HASH:
            self.time(PASSWORD_SECONDS, seconds)
        elif what == watching.PURGE:
            self.time(PURGE_SECONDS, seconds, name)

    def came_to(self, what: str, name: str, outcome: str) -> None:
        """A sign-in was tried, an endpoint has answered from here or there, or the web server has refused a request."""
        if what == watching.SIGN_IN:
            method = name if name in self.methods else OTHER
            self.count(SIGN_INS, method, outcome if outcome in OUTCOMES else OTHER)
        elif what == watching.READ:
            self.count(READS, name, outcome)
        elif what == watching.REFUSAL:
            self.count(REQUESTS, name, outcome)

    def aged(self, what: str, seconds: float) -> None:
        """Something was read from a standby."""
        if what == watching.STANDBY:
            self.time(STANDBY_AGE, seconds)

    def snapshot(self) -> dict[str, Samples]:
        """What was counted until now."""
        self._told = False
        with self._lock:
            return {
                name: {labels: list(cell) for labels, cell in samples.items()}
                for name, samples in self._samples.items()
            }

    def forget(self) -> None:
        """Begin at nought: what was counted before a fork would otherwise be each process's own."""
        with self._lock:
            for samples in self._samples.values():
                samples.clear()

    def _first_word(self, statement: str) -> tuple[str, ...]:
        known = self._words.get(statement)
        if known is None:
            word = statement.split(None, 1)[0].upper() if statement.strip() else ""
            known = (word if word in _WORDS else OTHER,)
            if len(self._words) < _MOST_KNOWN:
                self._words[statement] = known
        return known

    def _note(self) -> None:
        if not self._told:
            self._told = True
            self.on_change()


def noughts(grants: Iterable[str], methods: Iterable[str]) -> dict[str, Samples]:
    """What can be counted by names that are known before: of a counter that begins at one, nobody sees that it grew."""
    return {
        GRANTS.name: {(name, outcome): [0] for name in grants for outcome in (ISSUED, FAILED)},
        SIGN_INS.name: {(name, outcome): [0] for name in methods for outcome in OUTCOMES},
        EVENTS.name: {(name,): [0] for name in ALL_EVENTS},
    }


def added(counted: Sequence[Mapping[str, Samples]]) -> dict[str, Samples]:
    """What several processes have counted, together."""
    together: dict[str, Samples] = {family.name: {} for family in COUNTED}
    for one in counted:
        for name, samples in one.items():
            join = max if _BY_NAME[name].common else add
            for labels, cell in samples.items():
                before = together[name].get(labels)
                cells = cell if before is None else [join(a, b) for a, b in zip(before, cell, strict=True)]
                together[name][labels] = cells
    return together


def written(counted: Mapping[str, Samples]) -> dict[str, Any]:
    """The same as JSON can hold it."""
    return {name: [[list(labels), cell] for labels, cell in samples.items()] for name, samples in counted.items()}


def read(members: Mapping[str, Any]) -> dict[str, Samples]:
    """What ``written`` made; metrics that another version has counted otherwise are left out."""
    return {name: dict(_fitting(_BY_NAME[name], rows)) for name, rows in members.items() if name in _BY_NAME}


def _fitting(family: Family, rows: Sequence[Any]) -> Iterator[tuple[tuple[str, ...], list[float]]]:
    size = len(family.bounds) + 2 if family.bounds else 1
    for labels, cell in rows:
        # What is common has its generation beside its labels.
        if len(cell) == size and len(labels) == len(family.labels) + family.common:
            yield tuple(labels), cell

"""``pytest --search-logs``: all runs with DEBUG logging, and no line of it holds a secret that was made or given.

What makes secrets, and what is handed them, is wrapped before anything else is imported: whoever imports such a
function by its name gets the wrapped one.
"""

import functools
import json
import logging
import os
import re
import sys
from collections.abc import Callable
from typing import Any

OPTION = "--search-logs"
#: Processes of a test run inherit it.
_VARIABLE = "IDENTITY_SEARCH_LOGS"

#: What is shorter stands in texts by chance. Codes of digits are searched for as words.
_SHORTEST = 8
#: What tests type that is an everyday word.
_WORDS = frozenset({"password", "wrong password"})
_DIGITS = re.compile(r"[0-9]{6,}")
_PRIVATE = "PRIVATE KEY"
#: What mail servers of tests log, to which the service has sent it.
_OTHERS = frozenset({"mail.log"})


class Search:
    """What was logged in the test that runs, and the secrets that were made or given in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.secrets: set[str] = set()
        self._formatter = logging.Formatter("%(name)s %(message)s")

    def note(self, secret: object) -> None:
        """Look for it from now on, up to the end of the test."""
        if not isinstance(secret, str) or secret in _WORDS:
            return
        if len(secret) >= _SHORTEST or _DIGITS.fullmatch(secret):
            self.secrets.add(secret)

    def note_sealed(self, plain: bytes) -> None:
        """The codes and secrets in what is to be sealed."""
        try:
            members = json.loads(plain)
        except ValueError:
            return
        if isinstance(members, dict):
            for name in ("code", "secret"):
                self.note(members.get(name))

    def hear(self, record: logging.LogRecord) -> None:
        """Keep a line as a person would read it."""
        if record.name in _OTHERS:
            return
        try:
            self.lines.append(self._formatter.format(record))
        except Exception as problem:
            self.lines.append(f"{record.name} {record.msg!r} cannot be formatted: {problem!r}")

    def found(self) -> list[str]:
        """The lines that hold a secret; then begin anew."""
        lines, self.lines = self.lines, []
        secrets, self.secrets = self.secrets, set()
        told = "\n".join(lines)
        shown = [one for one in secrets if one in told and (not one.isdecimal() or re.search(rf"\b{one}\b", told))]
        return [line for line in lines if _PRIVATE in line or any(one in line for one in shown)]


def wanted() -> bool:
    """True if this run is to search; so are the processes that it starts."""
    if OPTION in sys.argv:
        os.environ[_VARIABLE] = "1"
    return _VARIABLE in os.environ


def begin() -> Search:
    """Wrap what makes secrets, and listen to all loggers, each at DEBUG; others go on to hear what they would."""
    search = Search()
    _wrap_makers(search)
    _listen(search)
    return search


def _wrap_makers(search: Search) -> None:
    from identity.crypto import secrets

    unwrapped = secrets.new_token
    for name in ("new_token", "new_password"):
        setattr(secrets, name, _noting(search.note, getattr(secrets, name)))
    from identity.crypto import jwt, passwords, sealing

    jwt.sign = _noting(search.note, jwt.sign)
    passwords.hash_password = _given(search.note, passwords.hash_password, 0)
    passwords.verify_password = _given(search.note, passwords.verify_password, 1)
    sealing.Sealer.seal = _given(search.note_sealed, sealing.Sealer.seal, 1)  # type: ignore[method-assign]
    from identity.plugins.recovery_codes import factor as paper
    from identity.plugins.totp import factor as app
    from identity.services import domains

    # What proves a domain is published in its DNS.
    domains.new_token = unwrapped  # type: ignore[attr-defined]
    app.new_secret = _noting(search.note, app.new_secret)
    paper.new_codes = _noting(lambda codes: [search.note(code) for code in codes], paper.new_codes)


def _noting(note: Callable[[Any], object], make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*arguments: Any, **named: Any) -> Any:
        secret = make(*arguments, **named)
        note(secret)
        return secret

    return made


def _given(note: Callable[[Any], object], take: Callable[..., Any], at: int) -> Callable[..., Any]:
    @functools.wraps(take)
    def taken(*arguments: Any, **named: Any) -> Any:
        note(arguments[at])
        return take(*arguments, **named)

    return taken


def _listen(search: Search) -> None:
    call_handlers = logging.Logger.callHandlers

    def hear(logger: logging.Logger, record: logging.LogRecord) -> None:
        search.hear(record)
        if record.levelno >= logger.getEffectiveLevel():
            call_handlers(logger, record)

    logging.Logger.callHandlers = hear  # type: ignore[method-assign]
    logging.Logger.isEnabledFor = lambda logger, level: level >= logging.DEBUG  # type: ignore[method-assign]

"""Log formatters: one JSON object per line for machines, plain lines for people.

Both escape control characters, so that a record can neither imitate another record nor send commands to a terminal.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

#: Further members for each line written during a request; called when a line is written.
log_context: ContextVar[Callable[[], Mapping[str, str]] | None] = ContextVar("about", default=None)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DELETE = "\x7f"
_REPEAT_SECONDS = 60.0


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, exception, and during a request request_id and
    trace_id, if known. Ignores the ini file's ``format``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of ASCII."""
        members: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        context = log_context.get()
        if context is not None:
            members.update(context())
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            members["exception"] = record.exc_text
        if record.stack_info:
            members["stack"] = self.formatStack(record.stack_info)
        # JSON escapes all other control characters.
        return json.dumps(members, ensure_ascii=True).replace(_DELETE, "\\u007f")


class PlainFormatter(logging.Formatter):
    """Lines in the ini file's ``format``; only tracebacks take more than one."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line with escaped control characters."""
        return _CONTROL.sub(_escape, super().formatMessage(record))


class RepeatedMessageFilter(logging.Filter):
    """Passes a message once a minute, whatever its arguments, so that a flood of requests does not flood the log."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def reset(self) -> None:
        self._logged_at.clear()

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the message was not logged within the last minute."""
        now = time.monotonic()
        if now - self._logged_at.get(record.msg, float("-inf")) < _REPEAT_SECONDS:
            return False
        self._logged_at[record.msg] = now
        return True


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")

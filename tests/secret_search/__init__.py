"""``pytest --search-logs``: all runs with DEBUG logging, and no line of it holds a secret that was made or given.

Lines are those of all loggers, what the processes write that tests start (``processes``), and the audit trail. Secrets
are what the service makes (``makers``), what passes between it and whoever asks it (``exchanges``), what closed files
hold, and whatever looks like one (``search``). What makes secrets, and what is handed them, is wrapped before anything
else is imported: whoever imports such a function by its name gets the wrapped one.
"""

import logging
import os
import sys

from tests.secret_search import http_capture, process_output, secret_recorders
from tests.secret_search.search import SecretSearch

OPTION = "--search-logs"
#: Processes of a test run inherit it.
_VARIABLE = "IDENTITY_SEARCH_LOGS"


def is_enabled() -> bool:
    """True if this run is to search; so are the processes that it starts."""
    if OPTION in sys.argv:
        os.environ[_VARIABLE] = "1"
    return _VARIABLE in os.environ


def begin() -> SecretSearch:
    """Wrap what makes secrets, and listen to all loggers, each at DEBUG; others go on to hear what they would."""
    search = SecretSearch()
    secret_recorders.wrap(search)
    http_capture.wrap(search)
    process_output.wrap(search)
    _listen(search)
    return search


def _listen(search: SecretSearch) -> None:
    call_handlers = logging.Logger.callHandlers

    def hear(logger: logging.Logger, record: logging.LogRecord) -> None:
        search.hear(record)
        if record.levelno >= logger.getEffectiveLevel():
            call_handlers(logger, record)

    logging.Logger.callHandlers = hear  # type: ignore[method-assign]
    logging.Logger.isEnabledFor = lambda logger, level: level >= logging.DEBUG  # type: ignore[method-assign]

"""``pytest --search-logs``: run everything with DEBUG logging and fail if a line contains a secret of the test.

Lines come from all loggers, from processes that tests start (``process_output``), and from the audit trail. Secrets
are those that the service creates (``secret_recorders``), those in requests and responses (``http_capture``), those
in private files, and whatever looks like one (``search``). The functions that create or receive secrets are wrapped
before anything else is imported, because ``from module import function`` would keep the unwrapped one.
"""

import logging
import os
import sys

from tests.secret_search import http_capture, process_output, secret_recorders
from tests.secret_search.search import SecretSearch

OPTION = "--search-logs"
#: Child processes of the run inherit it.
_VARIABLE = "IDENTITY_SEARCH_LOGS"


def is_enabled() -> bool:
    """True in a run with --search-logs, and in its child processes."""
    if OPTION in sys.argv:
        os.environ[_VARIABLE] = "1"
    return _VARIABLE in os.environ


def begin() -> SecretSearch:
    """Wrap the functions that create secrets and listen to all loggers at DEBUG; other handlers keep their levels."""
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

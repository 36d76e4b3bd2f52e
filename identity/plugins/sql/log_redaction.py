"""SQLAlchemy engines that log statements without parameters and rows, at any log level."""

import logging
from typing import Any

from sqlalchemy import URL, Engine, NullPool, create_engine


def create_redacted_engine(url: URL, **options: Any) -> Engine:
    """An engine without a pool that logs neither parameters nor rows."""
    # At DEBUG this logger logs every row despite hide_parameters: password hashes and sealed keys among them. Adding
    # the same filter again has no effect.
    logging.getLogger("sqlalchemy.engine.Engine").addFilter(_is_statement_record)
    return create_engine(url, hide_parameters=True, poolclass=NullPool, **options)


def _is_statement_record(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG

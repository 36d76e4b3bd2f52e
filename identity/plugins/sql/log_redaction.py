"""Engines of SQLAlchemy whose log holds statements alone, at whichever level an operator turns it on."""

import logging
from typing import Any

from sqlalchemy import URL, Engine, NullPool, create_engine


def create_redacted_engine(url: URL, **options: Any) -> Engine:
    """An engine without a pool that tells neither what is given to a statement nor which rows it brings."""
    # At DEBUG this logger tells every row, whatever hide_parameters says: password hashes and sealed keys among them.
    # A filter is added once, however often it is given.
    logging.getLogger("sqlalchemy.engine.Engine").addFilter(_is_statement_record)
    return create_engine(url, hide_parameters=True, poolclass=NullPool, **options)


def _is_statement_record(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG

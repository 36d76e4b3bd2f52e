"""Imported by servers that tests start: all loggers log at DEBUG, regardless of the ini file."""

import logging

logging.Logger.isEnabledFor = lambda logger, level: level >= logging.DEBUG  # type: ignore[method-assign]

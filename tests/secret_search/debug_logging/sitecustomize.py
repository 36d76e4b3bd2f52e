"""For servers that tests start: all loggers speak at DEBUG, whatever the ini file says."""

import logging

logging.Logger.isEnabledFor = lambda logger, level: level >= logging.DEBUG  # type: ignore[method-assign]

"""waitress for ``pserve``."""

import signal
from collections.abc import Mapping
from typing import Any

from waitress import serve

from identity.ini_file import apply_variables


def run(app: Any, global_config: Mapping[str, str], **settings: str) -> None:
    """Serve until stopped. waitress's own entry point does not take variables of the command line over [DEFAULT]."""
    # As Ctrl-C: waitress stops its threads, and background work comes to the end of its step. SIGINT is ignored where a
    # script has started this in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with app.registry.application.lifespan():
        serve(app, **apply_variables(global_config, settings))

"""waitress for ``pserve``."""

import signal
from collections.abc import Mapping
from typing import Any

from waitress import serve

from identity.ini_file import apply_variables


def run(app: Any, global_config: Mapping[str, str], **settings: str) -> None:
    """Serve until stopped. Unlike waitress's own entry point, variables of the command line win over [DEFAULT]."""
    # Like Ctrl-C: waitress stops its threads and background jobs finish their step. A shell ignores SIGINT for programs
    # that a script starts in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with app.registry.application.lifespan():
        serve(app, **apply_variables(global_config, settings))

"""The web servers: waitress with a loop of our own, and granian. ``listen`` is what ini files name."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from identity.server.serving import Application


def listen(global_config: Mapping[str, str], **settings: str) -> "Callable[[Application], None]":
    """A function that serves an application on a port that is taken now.

    PasteDeploy calls this before it makes the application: if the port is taken by another program, nothing has been
    made and no password been printed. Raises SystemExit, saying what to change.
    """
    from identity.ini_file import with_variables
    from identity.ini_values import BadSetting
    from identity.server.serving import taken
    from identity.server.waitress_server import Server

    try:
        settings = with_variables(global_config, settings)
    except BadSetting as problem:
        raise SystemExit(f"identity cannot start. {problem}") from None
    return taken(Server, settings)

"""The web servers under which the service runs."""

from collections.abc import Callable, Mapping
from typing import Any

from identity.server import granian_server, waitress_server

Kind = Callable[[Mapping[str, Any]], Any]

SERVERS: Mapping[str, Kind] = {"waitress": waitress_server.Server, "granian": granian_server.Server}

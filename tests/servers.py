"""The web servers under which the service runs."""

from collections.abc import Callable, Mapping
from typing import Any

from identity import granian_server, server

Kind = Callable[[Mapping[str, Any]], Any]

SERVERS: Mapping[str, Kind] = {"waitress": server.Server, "granian": granian_server.Server}

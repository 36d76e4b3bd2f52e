"""The service as an application that notes in a file which paths are requested."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from identity.app import main as service
from identity.asgi import Application


def main(global_config: Mapping[str, str], requested: str, **settings: str) -> Any:
    """For ``paste.app_factory``: the ASGI application of these settings, and the file."""
    application, file = Application(service(global_config, **settings)), Path(requested)

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        # Some proxies ask whether the service is well.
        if scope["type"] == "http" and scope["path"] != "/healthz":
            with file.open("a") as lines:
                lines.write(f"{scope['path']}\n")
        await application(scope, receive, send)

    return watched

"""The service as an ASGI 3 application: protocol endpoints run in the event loop, all else in Pyramid in threads."""

import os
from collections.abc import Mapping

from identity.asgi.application import Application

__all__ = ["Application", "from_environment", "main"]


def main(global_config: Mapping[str, str], **settings: str) -> Application:
    """For PasteDeploy: ``use = egg:identity#asgi``. Raises SystemExit as ``identity.app.main`` does."""
    from identity import app

    return Application(app.main(global_config, **settings))


def from_environment() -> Application:
    """For ``uvicorn --factory identity.asgi:from_environment``: the service of the ini file that IDENTITY_INI names.

    Raises KeyError without it, BadSetting and OSError for a file that cannot be read, and SystemExit.
    """
    from identity.ini_file import application, set_up_logging

    ini = os.environ["IDENTITY_INI"]
    set_up_logging(ini, {})
    return Application(application(ini, {}))

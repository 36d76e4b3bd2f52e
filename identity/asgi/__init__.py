"""The service as an ASGI 3 application: protocol endpoints run in the event loop, everything else in Pyramid in
threads.
"""

import os
from collections.abc import Mapping

from identity.asgi.application import AsgiApplication

__all__ = ["AsgiApplication", "create_application_from_environment", "main"]


def main(global_config: Mapping[str, str], **settings: str) -> AsgiApplication:
    """For PasteDeploy: ``use = egg:identity-iam#asgi``. Raises SystemExit as ``identity.application_factory.main``
    does."""
    from identity import application_factory

    return AsgiApplication(application_factory.main(global_config, **settings))


def create_application_from_environment() -> AsgiApplication:
    """For ``uvicorn --factory identity.asgi:create_application_from_environment``: reads the ini file named by
    IDENTITY_INI.

    Raises KeyError without it, InvalidSetting and OSError for a file that cannot be read, and SystemExit.
    """
    from identity.ini_file import load_wsgi_app, setup_logging

    ini = os.environ["IDENTITY_INI"]
    setup_logging(ini, {})
    return AsgiApplication(load_wsgi_app(ini, {}))

"""The service as a WSGI application for servers that know no ini files; the ini is named by the environment."""

import os

from pyramid.paster import get_app, setup_logging

from benchmarks import INI_VARIABLE

_ini = os.environ[INI_VARIABLE]
setup_logging(_ini)
application = get_app(_ini)

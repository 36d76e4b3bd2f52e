"""Sphinx: ``make docs``, or ``python -m sphinx -W -b html docs docs/_build/html``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from identity import __version__

project = "identity"
version = release = __version__
extensions = ["reference"]
exclude_patterns = ["_build"]
nitpicky = True
highlight_language = "none"
html_theme = "alabaster"
html_theme_options = {
    "description": "OAuth 2.0 and OpenID Connect for people and programs",
    "page_width": "64rem",
    "sidebar_width": "15rem",
    "fixed_sidebar": False,
}
html_copy_source = False
html_show_sphinx = False

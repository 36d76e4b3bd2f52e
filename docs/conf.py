"""Sphinx: ``make docs``, or ``python -m sphinx -W -b html docs docs/_build/html``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from identity import __version__

project = "identity"
version = release = __version__
extensions = ["diagram_directives", "reference_pages", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True
# Signatures name private types, too.
nitpick_ignore_regex = [("py:.*", ".*")]
add_module_names = False
python_use_unqualified_type_names = True
# With every name in them the contents of each page would take minutes to make.
toc_object_entries = False
python_maximum_signature_line_length = 100
highlight_language = "none"
html_theme = "furo"
html_title = f"identity {__version__}"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["wide.css"]
pygments_style = "tango"
pygments_dark_style = "monokai"
# What a prompt shows is not part of what is copied.
copybutton_prompt_text = r"\$ |> "
copybutton_prompt_is_regexp = True
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = False

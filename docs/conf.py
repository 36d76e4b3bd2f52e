"""Sphinx: ``make docs``, or ``python -m sphinx -W -b html docs docs/_build/html``."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from identity import __version__

project = "identity"
version = release = __version__
extensions = ["diagram_directives", "reference_pages", "sphinx.ext.autodoc", "sphinx_copybutton"]
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
html_css_files = ["docs.css"]
pygments_style = "tango"
pygments_dark_style = "monokai"
# What a prompt shows is not part of what is copied.
copybutton_prompt_text = r"\$ |> "
copybutton_prompt_is_regexp = True
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = False

#: Pages that neither the navigation nor the search leads to: only links do.
NOT_SEARCHED = ("contributors/decisions/", "reference/plugin-api/")


def setup(app: Any) -> None:
    """Keep those pages, and the names on them, out of the search."""

    def leave_out_of_search(app: Any, env: Any) -> None:
        for page in env.all_docs:
            if page.startswith(NOT_SEARCHED):
                env.metadata[page]["no-search"] = True
        names = env.get_domain("py").objects
        # Sphinx's search leaves out aliases.
        names.update({name: entry._replace(aliased=True) for name, entry in names.items()})

    app.connect("env-updated", leave_out_of_search)

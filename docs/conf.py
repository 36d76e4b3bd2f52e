"""Sphinx: ``make docs``."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from identity import __version__

project = "identity"
version = release = __version__
extensions = ["llms_txt", "reference_pages", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "separated"
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
html_css_files = ["docs.css", "pictures.css"]
pygments_style = "tango"
pygments_dark_style = "monokai"
# What a prompt shows is not part of what is copied.
copybutton_prompt_text = r"\$ |> "
copybutton_prompt_is_regexp = True
# /llms.txt links to the sources.
html_copy_source = True
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = False

#: Pages that neither the navigation nor the search leads to: only links do.
NOT_SEARCHED = ("contributors/decisions/", "reference/plugin-api/")


def setup(app: Any) -> None:
    """Keep those pages, and the names on them, out of the search, and tidy what autodoc reads."""

    def leave_out_of_search(app: Any, env: Any) -> None:
        for page in env.all_docs:
            if page.startswith(NOT_SEARCHED):
                env.metadata[page]["no-search"] = True
        names = env.get_domain("py").objects
        # Sphinx's search leaves out aliases.
        names.update({name: entry._replace(aliased=True) for name, entry in names.items()})

    app.connect("env-updated", leave_out_of_search)

    def leave_out_generated_signature(_: Any, __: str, name: str, ___: Any, ____: Any, lines: list[str]) -> None:
        # The docstring of a dataclass that has none.
        if lines and lines[0].startswith(f"{name.rpartition('.')[2]}("):
            lines.clear()

    def leave_out_test_cases(_: Any, __: str, name: str, ___: Any, is_skipped: bool, ____: Any) -> bool | None:
        return name.startswith("test_") or None

    def link_only_own_names(_: Any, page: Any) -> None:
        # Sphinx would link the builtin "type" to any attribute of that name.
        for reference in list(page.findall(pending_xref)):
            if reference["refdomain"] == "py" and not reference["reftarget"].startswith("identity."):
                reference.replace_self(nodes.Text(reference.children[-1].astext()))

    app.connect("doctree-read", link_only_own_names)
    app.connect("autodoc-process-docstring", leave_out_generated_signature)
    app.connect("autodoc-skip-member", leave_out_test_cases)

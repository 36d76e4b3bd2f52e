"""The directives ``sequence``, ``tables`` and ``house``: pictures from text, drawn when the page is built.

The title is the argument, the notation the content: ``sequence_diagrams.py`` and ``code_diagrams.py`` describe it. A
line that cannot be drawn is an error at that line.
"""

from collections.abc import Callable, Sequence
from typing import Any

import code_diagrams
import sequence_diagrams
from docutils import nodes
from docutils.parsers.rst import Directive
from svg_diagram import DiagramError, SvgDiagram

#: What draws each kind of picture, and tells it in words.
DIAGRAM_TYPES: dict[str, Callable[[Sequence[str]], tuple[SvgDiagram, str]]] = {
    "sequence": sequence_diagrams.sequence_diagram,
    "tables": code_diagrams.table_diagram,
    "house": code_diagrams.layer_diagram,
}


class DiagramDirective(Directive):
    """A picture with its title below."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The picture in place, or an error where the notation is broken."""
        title = " ".join(self.arguments[0].split())
        try:
            picture, description = DIAGRAM_TYPES[self.name](list(self.content))
        except DiagramError as broken:
            place = self.content.items[broken.line] if self.content else self.state_machine.get_source_and_line()
            return [self.state.document.reporter.error(str(broken), source=place[0], line=(place[1] or 0) + 1)]
        drawn = picture.render_svg(title, description, f"picture-{nodes.make_id(title)}")
        return [nodes.figure("", nodes.raw("", drawn, format="html"), nodes.caption(title, title), classes=["drawn"])]


def setup(app: Any) -> dict[str, bool]:
    """Make the directives known to Sphinx."""
    for kind in DIAGRAM_TYPES:
        app.add_directive(kind, DiagramDirective)
    app.add_css_file("pictures.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

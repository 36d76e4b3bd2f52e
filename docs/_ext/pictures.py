"""The directives ``sequence``, ``tables`` and ``house``: pictures from text, drawn when the page is built.

The title is the argument, the notation the content: ``sequences.py`` and ``made_pictures.py`` tell them. What cannot be
drawn is an error at its own line.
"""

from collections.abc import Callable, Sequence
from typing import Any

import made_pictures
import sequences
from docutils import nodes
from docutils.parsers.rst import Directive
from drawing import Broken, Picture

#: What draws each kind of picture, and tells it in words.
KINDS: dict[str, Callable[[Sequence[str]], tuple[Picture, str]]] = {
    "sequence": sequences.drawn,
    "tables": made_pictures.tables,
    "house": made_pictures.house,
}


class Drawn(Directive):
    """A picture with its title below."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The picture in place, or an error where the notation is broken."""
        title = " ".join(self.arguments[0].split())
        try:
            picture, told = KINDS[self.name](list(self.content))
        except Broken as broken:
            place = self.content.items[broken.line] if self.content else self.state_machine.get_source_and_line()
            return [self.state.document.reporter.error(str(broken), source=place[0], line=(place[1] or 0) + 1)]
        drawn = picture.svg(title, told, f"picture-{nodes.make_id(title)}")
        return [nodes.figure("", nodes.raw("", drawn, format="html"), nodes.caption(title, title), classes=["drawn"])]


def setup(app: Any) -> dict[str, bool]:
    """Make the directives known to Sphinx."""
    for kind in KINDS:
        app.add_directive(kind, Drawn)
    app.add_css_file("pictures.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

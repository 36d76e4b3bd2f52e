"""What pictures are drawn with: words as wide as they will be, lines of them, boxes and arrows, as SVG.

Colours and fonts are the page's own (``_static/pictures.css``), so that a picture fits its light and dark forms.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import atan2, degrees

#: Height of a line of words.
LINE_HEIGHT = 18
_SIZE = 13.5
_CODE = '<tspan class="code">{}</tspan>'
_NARROW, _WIDE = frozenset("fijlrtI.,:;'|()[]/ "), frozenset("mwMWOQGD@%…→")


class DiagramError(Exception):
    """A notation that cannot be drawn: what is wrong, and in which of its lines, counted from 0."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def text_width(text: str) -> float:
    """How wide a text will be at most, with `code` between backticks. Fonts differ: this is generous."""
    return _SIZE * sum(0.56 if code else _wide(letter) for part, code in _parts(text) for letter in part)


def _wide(letter: str) -> float:
    return 0.34 if letter in _NARROW else 0.88 if letter in _WIDE else 0.7 if letter.isupper() else 0.57


def wrap_text(text: str, limit: float) -> list[str]:
    """The text in lines that are no wider than the limit, if its words are not. Code stays code over a break."""
    lines: list[str] = []
    for word in (piece for part, code in _parts(text) for piece in _words(part, code)):
        if lines and (text_width(lines[-1] + word.rstrip()) <= limit or not word.strip("`., ")):
            lines[-1] += word
        else:
            lines.append(word)
    return [line.strip().replace("``", "") for line in lines] or [""]


def _parts(text: str) -> list[tuple[str, bool]]:
    return [(part, number % 2 == 1) for number, part in enumerate(text.split("`")) if part]


def _words(part: str, code: bool) -> list[str]:
    return [f"`{word}`" if code else word for word in re.findall(r"\S+\s*|\s+", part)]


@dataclass
class SvgDiagram:
    """An SVG that grows while it is drawn, and takes as much room as what stands in it."""

    elements: list[str] = field(default_factory=list)
    left: float = 0
    right: float = 0
    bottom: float = 0

    def include_point(self, x: float, y: float = 0) -> None:
        """Make room for this point."""
        self.left, self.right, self.bottom = min(self.left, x), max(self.right, x), max(self.bottom, y)

    def add_box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A rectangle; ``kind`` is its class in the style sheet."""
        self.elements.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>')
        self.include_point(x, y)
        self.include_point(x + width, y + height)

    def add_line(
        self, points: Sequence[tuple[float, float]], kind: str = "line", *, has_arrowhead: bool = False
    ) -> None:
        """A line through these points, with the head of an arrow at its end if so wished."""
        self.elements.append(f'<path class="{kind}" d="M{" L".join(f"{x:g} {y:g}" for x, y in points)}"/>')
        for point in points:
            self.include_point(*point)
        if has_arrowhead:
            (x0, y0), (x, y) = points[-2:]
            place = f'transform="translate({x:g} {y:g}) rotate({degrees(atan2(y - y0, x - x0)):g})"'
            self.elements.append(f'<path class="head" d="M0 0 L-8 -4 L-8 4 Z" {place}/>')

    def add_text(self, x: float, y: float, lines: Iterable[str], kind: str = "", *, anchor: str = "start") -> None:
        """Lines of words, the first one with its base at ``y``."""
        for base, text in enumerate(lines):
            at = f'x="{x:g}" y="{y + base * LINE_HEIGHT:g}" text-anchor="{anchor}"'
            spans = [_CODE.format(escape(part)) if code else escape(part) for part, code in _parts(text)]
            self.elements.append(f'<text class="{kind}" {at}>{"".join(spans)}</text>')
            start = x - text_width(text) * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            self.include_point(start, y + base * LINE_HEIGHT + 5)
            self.include_point(start + text_width(text))

    def add_number(self, x: float, y: float, number: str) -> None:
        """A number in a circle."""
        self.elements.append(f'<circle class="number" cx="{x:g}" cy="{y:g}" r="9"/>')
        self.add_text(x, y + 4, [number], "number", anchor="middle")

    def render_svg(self, title: str, description: str, name: str) -> str:
        """The picture, named and told in words for those who cannot see it."""
        wide, high = self.right - self.left + 4, self.bottom + 4
        return (
            f'<div class="picture" tabindex="0" role="group" aria-labelledby="{name}-title">'
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" style="--wide: {wide:.0f}px"'
            f' aria-labelledby="{name}-title" aria-describedby="{name}-description"'
            f' viewBox="{self.left - 2:g} -2 {wide:g} {high:g}">'
            f'<title id="{name}-title">{escape(title)}</title>'
            f'<desc id="{name}-description">{escape(description)}</desc>'
            f"{''.join(self.elements)}</svg></div>"
        )

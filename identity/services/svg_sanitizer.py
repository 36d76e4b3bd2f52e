"""Rebuild SVG images from an allow-list: shapes, colours and gradients stay, everything else is dropped.

Scripts, links, foreign objects, style sheets, filters, patterns, repetition and external references are not on the
list.
"""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, tostring

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from identity.domain.messages import gettext_lazy

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_MOST_ELEMENTS = 3000
_DEEPEST = 40


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHAPES = _names("path rect circle ellipse line polyline polygon text tspan")
_GRADIENTS = _names("linearGradient radialGradient")
_ELEMENTS = _SHAPES | _GRADIENTS | _names("svg g defs stop clipPath title desc")
_WORDED = _names("text tspan title desc")

#: Presentation attributes, which a style can set as well.
_LOOKS = _names(
    "clip-path clip-rule color display fill fill-opacity fill-rule font-family font-size font-style font-weight"
    " letter-spacing opacity stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap"
    " stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-anchor visibility word-spacing"
)
_ATTRIBUTES = _LOOKS | _names(
    "id d x y x1 y1 x2 y2 cx cy r rx ry fx fy fr dx dy rotate width height points transform viewBox preserveAspectRatio"
    " gradientUnits gradientTransform spreadMethod offset clipPathUnits textLength lengthAdjust"
)
#: The only reference that a value may contain: to an element of the same image.
_OWN_PART = re.compile(r"url\(\s*(['\"]?)#[A-Za-z_][\w.:-]*\1\s*\)(\s+(none|#?\w+))?")
_OWN_ID = re.compile(r"#[A-Za-z_][\w.:-]*")
_FUNCTION = re.compile(r"([\w-]*)\s*\(")
_FUNCTIONS = _names("rgb rgba hsl hsla url matrix translate translatex translatey scale rotate skewx skewy")
_NUMBER = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,6})?)(?:px)?")


class UnsafeSvg(Exception):
    """The image is rejected as a whole; the argument is the reason, as a sentence."""


def sanitize_svg(content: bytes) -> bytes:
    """The image with everything unsafe removed. Raises UnsafeSvg if it is not an image, declares entities, is too deep
    or too large, or is coloured by a style sheet and would come out black."""
    try:
        root = fromstring(content, forbid_dtd=False, forbid_entities=True, forbid_external=True)
    except DefusedXmlException:
        raise UnsafeSvg(gettext_lazy("This drawing declares entities. Save it again without them.")) from None
    except (ParseError, ValueError, LookupError, RecursionError):
        raise UnsafeSvg(gettext_lazy("This picture cannot be read. Save it again as PNG, WebP or SVG.")) from None
    if root.tag != f"{{{_SVG}}}svg":
        raise UnsafeSvg(gettext_lazy("This file is not an SVG drawing."))
    if next(root.iter(f"{{{_SVG}}}style"), None) is not None:
        raise UnsafeSvg(
            gettext_lazy("This drawing has a style sheet. Save it again with presentation attributes instead.")
        )
    drawing = _Sanitizer().sanitize(root)
    box = _view_box(root)
    if box is None:
        raise UnsafeSvg(gettext_lazy("This drawing does not state its size (viewBox)."))
    for name in ("x", "y", "width", "height"):
        drawing.attrib.pop(name, None)
    drawing.attrib = {"xmlns": _SVG, "viewBox": box, **{name: item for name, item in drawing.attrib.items() if item}}
    return bytes(tostring(drawing, encoding="utf-8", xml_declaration=False))


class _Sanitizer:
    """One image, and the number of its elements so far."""

    def __init__(self) -> None:
        self._count = 0

    def sanitize(self, element: Element, *, depth: int = 0, clipping: bool = False) -> Element:
        """The element with its safe attributes and children."""
        self._count += 1
        if self._count > _MOST_ELEMENTS or depth > _DEEPEST:
            raise UnsafeSvg(gettext_lazy("This drawing is too complex. Use a simpler one, of at most 40 KiB."))
        name = _local_name(element.tag)
        attributes = dict(_iter_harmless_attributes(element))
        if clipping or name == "clipPath":
            # Nested clipping would take forever to render.
            attributes.pop("clip-path", None)
        copy = Element(name, attributes)
        copy.text = element.text if name in _WORDED else None
        for child in element:
            if (
                isinstance(child.tag, str)
                and child.tag.startswith(f"{{{_SVG}}}")
                and _local_name(child.tag) in _ELEMENTS
            ):
                if _local_name(child.tag) == "svg":
                    continue
                sanitized = self.sanitize(child, depth=depth + 1, clipping=clipping or name == "clipPath")
                sanitized.tail = child.tail if name in _WORDED else None
                copy.append(sanitized)
        return copy


def _iter_harmless_attributes(element: Element) -> Iterator[tuple[str, str]]:
    """Allowed attributes without external references, including those set by the style."""
    for part in element.get("style", "").split(";"):
        name, _, value = (item.strip() for item in part.partition(":"))
        if name in _LOOKS and _is_harmless(value):
            yield name, value
    styled = element.get("style", "")
    for name, value in element.attrib.items():
        if name in _ATTRIBUTES and _is_harmless(value) and not _sets_property(styled, name):
            yield name, value
        elif (
            name in ("href", f"{{{_XLINK}}}href")
            and _local_name(element.tag) in _GRADIENTS
            and _OWN_ID.fullmatch(value)
        ):
            yield "href", value


def _is_harmless(value: str) -> bool:
    """False if it could refer to anything external; a backslash could escape a name that is not recognized here."""
    functions = {name.lower() for name in _FUNCTION.findall(value)}
    if "\\" in value or not functions <= _FUNCTIONS:
        return False
    return "url" not in functions or _OWN_PART.fullmatch(value.strip()) is not None


def _sets_property(style: str, name: str) -> bool:
    """True if the style sets the property: it takes precedence over the attribute."""
    return any(part.partition(":")[0].strip() == name for part in style.split(";"))


def _view_box(root: Element) -> str | None:
    box = root.get("viewBox", "").replace(",", " ").split()
    try:
        numbers = [float(item) for item in box]
    except ValueError:
        return None
    if len(numbers) == 4 and all(abs(number) < 1e6 for number in numbers) and min(numbers[2:]) > 0:
        return " ".join(f"{number:g}" for number in numbers)
    sides = [_NUMBER.fullmatch(root.get(name, "").strip()) for name in ("width", "height")]
    if box or any(side is None or float(side[1]) <= 0 for side in sides):
        return None
    return " ".join(("0 0", *(side[1] for side in sides if side is not None)))


def _local_name(tag: str) -> str:
    return tag.rpartition("}")[2]

"""Contrast of colours on the service's pages, and the nearest readable colour."""

import re
from dataclasses import dataclass
from typing import Final

from identity.domain.messages import gettext_lazy

#: Minimum contrast of text (WCAG 2.2, 1.4.3).
MIN_CONTRAST: Final = 4.5

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_ALL = 255

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ColourScheme:
    """Background colours of the pages, and how strongly the accent tints a background. ``mix_colour`` is added to make
    a colour more readable; ``accent_foreground`` is the text colour on the accent."""

    backgrounds: tuple[str, ...]
    surface: str
    tint: float
    mix_colour: str
    accent_foreground: str


#: Backgrounds of the style sheet: page, surface, sunken.
LIGHT_SCHEME: Final = ColourScheme(("#f4f5fa", "#ffffff", "#edeff5"), "#ffffff", 0.1, "#000000", "#ffffff")
DARK_SCHEME: Final = ColourScheme(("#0e111b", "#161a28", "#202637"), "#161a28", 0.16, "#ffffff", "#0e111b")


@dataclass(frozen=True, slots=True)
class Accent:
    """An accent colour and those derived from it: hover, background, and text on it."""

    base: str
    strong: str
    soft: str
    foreground: str


def is_colour(text: str) -> bool:
    """True for ``#rrggbb``."""
    return _COLOUR.fullmatch(text) is not None


def derive_accent(colour: str, scheme: ColourScheme) -> Accent:
    plain = colour.lower()
    return Accent(plain, _mixed(plain, scheme.mix_colour, 0.25), _soft(plain, scheme), scheme.accent_foreground)


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def min_contrast(colour: str, scheme: ColourScheme) -> float:
    """The contrast of a colour on the background where it is lowest."""
    return min(contrast(colour, ground) for ground in (*scheme.backgrounds, _soft(colour, scheme)))


def nearest_readable_colour(colour: str, scheme: ColourScheme) -> str:
    """The colour itself if it is readable, else mixed with as little black or white as needed."""
    for part in range(_ALL + 1):
        mixed = _mixed(colour, scheme.mix_colour, part / _ALL)
        if min_contrast(mixed, scheme) >= MIN_CONTRAST:
            return mixed
    return scheme.mix_colour


def light_accent_problem(text: str) -> str | None:
    return _format_problem(text) or _contrast_problem(
        text,
        LIGHT_SCHEME,
        gettext_lazy(
            "{colour} is hard to read on light pages: its contrast is {ratio} to 1 and must be at "
            "least 4.5 to 1. The closest readable colour is {nearest}."
        ),
    )


def dark_accent_problem(text: str) -> str | None:
    return _format_problem(text) or _contrast_problem(
        text,
        DARK_SCHEME,
        gettext_lazy(
            "{colour} is hard to read on dark pages: its contrast is {ratio} to 1 and must be at "
            "least 4.5 to 1. The closest readable colour is {nearest}."
        ),
    )


def _format_problem(text: str) -> str | None:
    return None if is_colour(text) else gettext_lazy("Enter a colour such as {example}.", example="#2540ad")


def _contrast_problem(text: str, scheme: ColourScheme, sentence: str) -> str | None:
    ratio = min_contrast(text, scheme)
    if ratio >= MIN_CONTRAST:
        return None
    # Rounded down, so that a refused value never reads like the required one.
    return gettext_lazy(
        sentence, colour=text, ratio=f"{int(ratio * 10) / 10:.1f}", nearest=nearest_readable_colour(text, scheme)
    )


def _soft(colour: str, scheme: ColourScheme) -> str:
    return _mixed(scheme.surface, colour, scheme.tint)


def _mixed(first: str, second: str, part: float) -> str:
    """Mixes ``part`` of the second colour into the first."""
    pairs = zip(_parts(first), _parts(second), strict=True)
    return "#" + "".join(f"{round(start + (end - start) * part):02x}" for start, end in pairs)


def _parts(colour: str) -> Colour:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / _ALL) for part in _parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return float(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)

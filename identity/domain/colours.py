"""Colours as pages use them: how well one is read on our pages, and the nearest that is read well enough."""

import re
from dataclasses import dataclass
from typing import Final

from identity.domain.messages import gettext_lazy

#: What text takes to be read (WCAG 2.2, 1.4.3).
MIN_CONTRAST: Final = 4.5

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_ALL = 255

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ColourScheme:
    """What colours stand on: the grounds of our pages, and how strongly the accent tints a ground of its own.

    ``mix_colour`` is where a colour goes to be read better, ``accent_foreground`` is what stands on it.
    """

    backgrounds: tuple[str, ...]
    surface: str
    tint: float
    mix_colour: str
    accent_foreground: str


#: The grounds of the style sheet: page, surface, sunken.
LIGHT_SCHEME: Final = ColourScheme(("#f4f5f8", "#ffffff", "#eceef3"), "#ffffff", 0.1, "#000000", "#ffffff")
DARK_SCHEME: Final = ColourScheme(("#0f1217", "#171b22", "#20252e"), "#171b22", 0.16, "#ffffff", "#0f1217")


@dataclass(frozen=True, slots=True)
class Accent:
    """An accent colour, and what follows from it: under the pointer, as a ground, and what stands on it."""

    base: str
    strong: str
    soft: str
    foreground: str


def is_colour(text: str) -> bool:
    """True for a colour as it is written here."""
    return _COLOUR.fullmatch(text) is not None


def derive_accent(colour: str, scheme: ColourScheme) -> Accent:
    """What follows from a colour."""
    plain = colour.lower()
    return Accent(plain, _mixed(plain, scheme.mix_colour, 0.25), _soft(plain, scheme), scheme.accent_foreground)


def contrast(first: str, second: str) -> float:
    """How much two colours differ in brightness, from 1 to 21 (WCAG 2.2, contrast ratio)."""
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def min_contrast(colour: str, scheme: ColourScheme) -> float:
    """How well a colour is read where it is read worst."""
    return min(contrast(colour, ground) for ground in (*scheme.backgrounds, _soft(colour, scheme)))


def nearest_readable_colour(colour: str, scheme: ColourScheme) -> str:
    """The colour itself if it is read well enough; else with as little black or white in it as makes it so."""
    for part in range(_ALL + 1):
        mixed = _mixed(colour, scheme.mix_colour, part / _ALL)
        if min_contrast(mixed, scheme) >= MIN_CONTRAST:
            return mixed
    return scheme.mix_colour


def light_accent_problem(text: str) -> str | None:
    """A colour that is read well on light pages."""
    return _format_problem(text) or _contrast_problem(
        text,
        LIGHT_SCHEME,
        gettext_lazy(
            "{colour} is hard to read on light pages: its contrast is {ratio} to 1, and has to be 4.5 to 1. The nearest"
            " colour that is read well is {nearest}."
        ),
    )


def dark_accent_problem(text: str) -> str | None:
    """A colour that is read well on dark pages."""
    return _format_problem(text) or _contrast_problem(
        text,
        DARK_SCHEME,
        gettext_lazy(
            "{colour} is hard to read on dark pages: its contrast is {ratio} to 1, and has to be 4.5 to 1. The nearest"
            " colour that is read well is {nearest}."
        ),
    )


def _format_problem(text: str) -> str | None:
    return None if is_colour(text) else gettext_lazy("Enter a colour such as {example}.", example="#2540ad")


def _contrast_problem(text: str, scheme: ColourScheme, sentence: str) -> str | None:
    ratio = min_contrast(text, scheme)
    if ratio >= MIN_CONTRAST:
        return None
    # Rounded down: what is refused must not read as what is asked for.
    return gettext_lazy(
        sentence, colour=text, ratio=f"{int(ratio * 10) / 10:.1f}", nearest=nearest_readable_colour(text, scheme)
    )


def _soft(colour: str, scheme: ColourScheme) -> str:
    return _mixed(scheme.surface, colour, scheme.tint)


def _mixed(first: str, second: str, part: float) -> str:
    """A colour with so much of another in it."""
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
